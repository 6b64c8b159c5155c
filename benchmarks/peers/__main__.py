"""Bettong beside its peers: a workload from topic to topic, the same records, the same checked answer.

    python -m benchmarks.peers
    python -m benchmarks.peers --messages 200000 --runs 1 --only bytewax --only "Quix Streams"
    python -m benchmarks.peers --workload tumbling
    python -m benchmarks.peers --workload nexmark --query q5 --query q7

Makes what environments are missing, then lets everyone run in turns. Prints a table, and leaves all runs as JSON, by
date, with a plot, beside those of `make bench`.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks import report
from benchmarks.measuring import Measurement, measure_machine
from benchmarks.peers import environments
from benchmarks.peers.entries import Entry, RunSize, entries_of, left_out
from benchmarks.peers.race import RaceError
from benchmarks.peers.workloads import MARKET_SPREAD, NAMES, WORKLOADS, PeerWorkload
from bettong.errors import BettongError
from bettong.lab.facts import facts as machine_facts

_WIDTH = 170


def main(
    workload: Annotated[
        str, typer.Option(help=f"What is done with the messages: {', '.join(NAMES)}.")
    ] = MARKET_SPREAD.name,
    query: Annotated[
        list[str] | None,
        typer.Option(help="Of nexmark: the queries (q5), one after the other; by default all."),
    ] = None,
    messages: Annotated[int, typer.Option(help="Messages of a run.", min=10_000)] = 1_000_000,
    runs: Annotated[int, typer.Option(help="Runs of each; the median counts.", min=1)] = 3,
    partitions: Annotated[int, typer.Option(help="Partitions of every topic.", min=1)] = 4,
    processes: Annotated[int, typer.Option(help="Processes, or slots, that each may use.", min=1)] = 2,
    only: Annotated[list[str] | None, typer.Option(help="Who runs, by the beginning of the name.")] = None,
    s_max: Annotated[float, typer.Option(help="Seconds that a run may take.")] = 300.0,
    results: Annotated[Path, typer.Option(help="Folder for JSON and page.")] = Path("bench-results"),
) -> None:
    """Compares Bettong with its peers. Exits 1 when someone failed; the others run all the same."""
    console = Console()
    console.width = max(console.width, _WIDTH)
    chosen = {of.name: (of, _chosen(of, tuple(only or ("",)))) for of in _workloads(workload, query or [])}
    environments.make(
        entry.peer for _, entries in chosen.values() for entry in entries if entry.peer is not None
    )
    facts, size = machine_facts(), RunSize(messages, partitions, processes, s_max)
    measurements: list[Measurement] = []
    for of, entries in chosen.values():
        _run(console, of, entries, size, runs)
        measured = [entry.measurement for entry in entries if entry.measurement.samples]
        title = f"{of.name}: {of.asked}; {messages:,} messages, {runs} runs, {processes} processes each"
        console.print(report.table(measured, title))
        console.print(_notes(entries))
        who = {entry.measurement.name: entry.note for entry in entries}
        for name, why in left_out(of).items():
            console.print(f"{name} is left out: {why}", highlight=False)
            who[name] = f"left out: {why}"
        query_of = f"{of.query}, " if of.query else ""
        facts |= {f"who: {query_of}{name}": note for name, note in who.items()}
        measurements += [replace(each, name=f"{query_of}{each.name}") for each in measured]
    if measurements:
        asked: dict[str, str | int] = {
            "run": f"{workload}, beside others",
            "messages": messages,
            "runs": runs,
        }
        asked |= {"partitions": partitions, "processes": processes}
        path = report.save(results, measurements, facts, asked)
        console.print(f"{path}, and a page beside it", highlight=False)
    raise typer.Exit(any(entry.fault for _, entries in chosen.values() for entry in entries))


def _run(console: Console, of: PeerWorkload, entries: list[Entry], size: RunSize, runs: int) -> None:
    """Everyone in turns; who fails does not run again."""
    load, loop = of.load(size.messages), partial(of.loop, size.messages)
    for number in range(runs):
        for entry in (each for each in entries if not each.fault):
            with console.status(f"{entry.measurement.name}, run {number + 1} of {runs} ..."):
                before = measure_machine(loop)
                try:
                    sample = entry.once(load, size)
                except (RaceError, BettongError, AssertionError) as error:
                    entry.fault = str(error).strip() or type(error).__name__
                    console.print(f"{entry.measurement.name} failed: {entry.fault}", highlight=False)
                    continue
            entry.measurement.before.append(before)
            entry.measurement.samples.append(sample)
            console.print(f"{entry.measurement.name}: {sample.value:,.0f} messages/s", highlight=False)


def _workloads(name: str, queries: list[str]) -> list[PeerWorkload]:
    """That of the name; of Nexmark, one a query: those that were asked for, else all."""
    of_name = {each.query: each for each in WORKLOADS.values() if each.module.replace("_", "-") == name}
    if not of_name:
        raise typer.BadParameter(f"there is no workload {name!r}: there are {', '.join(NAMES)}")
    if wrong := [query for query in queries if query not in of_name]:
        known = ", ".join(filter(None, of_name)) or "none"
        raise typer.BadParameter(f"{name!r} has no query {wrong[0]!r}: there are {known}")
    return [of_name[query] for query in queries] or list(of_name.values())


def _chosen(of: PeerWorkload, beginnings: tuple[str, ...]) -> list[Entry]:
    """Those whose names begin with what was chosen."""
    entries = entries_of(of)
    wanted = [entry for entry in entries if entry.measurement.name.startswith(beginnings)]
    if not wanted:
        names = ", ".join(repr(entry.measurement.name) for entry in entries)
        raise typer.BadParameter(f"nobody's name begins with {beginnings}: there are {names}")
    return wanted


def _notes(entries: list[Entry]) -> Table:
    notes = Table("", "version", "configured to guarantee", "runs", "failed", title="who ran")
    for entry in entries:
        runs = str(len(entry.measurement.samples))
        notes.add_row(entry.measurement.name, entry.version, entry.guarantee, runs, entry.fault)
    return notes


if __name__ == "__main__":
    typer.run(main)
