"""Bettong beside its peers: a workload from topic to topic, the same records, the same checked answer.

    python -m benchmarks.peers
    python -m benchmarks.peers --messages 200000 --runs 1 --only bytewax --only "Quix Streams"
    python -m benchmarks.peers --workload tumbling
    python -m benchmarks.peers --workload nexmark --query q5 --query q7
    python -m benchmarks.peers --workload word-count --messages-per-s 1000 --seconds 30

Makes what environments are missing, then lets everyone run in turns. Prints a table, and leaves all runs as JSON, by
date, with a plot, beside those of `make bench`.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks import report
from benchmarks.measuring import Measurement, measure_machine
from benchmarks.peers import environments
from benchmarks.peers.ceilings import ceilings
from benchmarks.peers.entries import Entry, RunSize, entries_of, left_out
from benchmarks.peers.fixed_rate import FixedRate
from benchmarks.peers.race import RaceError
from benchmarks.peers.workloads import MARKET_SPREAD, NAMES, WORKLOADS, PeerWorkload
from bettong.errors import BettongError
from bettong.lab.machine.facts import facts as machine_facts
from bettong.lab.numbers import shown
from bettong.local.usable_cpus import usable_cpus

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
    messages_per_s: Annotated[int, typer.Option(help="Of word-count: the rate.", min=1)] = 1000,
    seconds: Annotated[float, typer.Option(help="Of word-count: how long it is measured.", min=1)] = 30.0,
    warm_up_s: Annotated[
        float, typer.Option(help="Of word-count: how long it is not, before.", min=0)
    ] = 10.0,
    partitions: Annotated[
        int | None,
        typer.Option(help="Partitions of every topic; by default 2 of word-count, else 4.", min=1),
    ] = None,
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
    rate = FixedRate(messages_per_s, seconds, warm_up_s)
    facts, asked, measurements = machine_facts(), dict[str, str | int](), list[Measurement]()
    for of, entries in chosen.values():
        of_run = rate.messages if of.at_rate else messages
        size = RunSize(of_run, partitions or of.partitions, processes, s_max, rate)
        asked = _asked(workload, of, size, runs)
        _run(console, of, entries, size, runs)
        measured = [each for entry in entries for each in entry.measurements if each.samples]
        title = f"{of.name}: {of.asked}; {_shown(of, size)}, {runs} runs"
        console.print(report.table([each for each in measured if each.unit != "MB"], title))
        if not of.at_rate:
            console.print(ceilings(entries, usable_cpus()))
            console.print(_footprints(entries, f"{of.name}: memory of all processes, and stored state"))
        console.print(_notes(entries))
        who = {entry.name: entry.note for entry in entries}
        for name, why in left_out(of).items():
            console.print(f"{name} is left out: {why}", highlight=False)
            who[name] = f"left out: {why}"
        query_of = f"{of.query}, " if of.query else ""
        facts |= {f"who: {query_of}{name}": note for name, note in who.items()}
        measurements += [replace(each, name=f"{query_of}{each.name}") for each in measured]
    if measurements:
        path = report.save(results, measurements, facts, asked)
        console.print(f"{path}, and a page beside it", highlight=False)
    raise typer.Exit(any(entry.fault for _, entries in chosen.values() for entry in entries))


def _run(console: Console, of: PeerWorkload, entries: list[Entry], size: RunSize, runs: int) -> None:
    """Everyone in turns; who fails does not run again."""
    load, loop = of.load(size.messages), partial(of.loop, size.messages)
    for number in range(runs):
        for entry in (each for each in entries if not each.fault):
            with console.status(f"{entry.name}, run {number + 1} of {runs} ..."):
                before = measure_machine(loop)
                try:
                    samples = entry.once(load, size)
                except (RaceError, BettongError, AssertionError) as error:
                    entry.fault = str(error).strip() or type(error).__name__
                    console.print(f"{entry.name} failed: {entry.fault}", highlight=False)
                    continue
            for measurement, sample in zip(entry.measurements, samples, strict=True):
                measurement.before.append(before)
                measurement.samples.append(sample)
                value = f"{shown(sample.value)} {measurement.unit}"
                console.print(f"{measurement.name}: {value}", highlight=False)


def _shown(of: PeerWorkload, size: RunSize) -> str:
    """How much a run has."""
    width = f"{size.partitions} partitions, {size.processes} processes each"
    if not of.at_rate:
        return f"{size.messages:,} messages, {width}"
    rate = size.rate
    return f"{rate.messages_per_s:,} messages/s for {rate.seconds:g} s after {rate.warm_up_s:g} s, {width}"


def _asked(workload: str, of: PeerWorkload, size: RunSize, runs: int) -> dict[str, str | int]:
    """With which settings the results were measured."""
    asked: dict[str, str | int] = {
        "run": f"{workload}, beside others",
        "messages": size.messages,
        "runs": runs,
    }
    if of.at_rate:
        rate = size.rate
        asked |= {"messages_per_s": rate.messages_per_s, "seconds": f"{rate.seconds:g}"}
        asked |= {"warm_up_s": f"{rate.warm_up_s:g}"}
    return asked | {"partitions": size.partitions, "processes": size.processes}


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
    wanted = [entry for entry in entries if entry.name.startswith(beginnings)]
    if not wanted:
        names = ", ".join(repr(entry.name) for entry in entries)
        raise typer.BadParameter(f"nobody's name begins with {beginnings}: there are {names}")
    return wanted


def _footprints(entries: list[Entry], title: str) -> Table:
    """Memory and stored state of those that ran; medians, in MB."""
    rows = Table("", "memory at the start, MB", "at the end", "growth", "stored state, MB", title=title)
    for entry in entries:
        kept = [each.values for each in entry.measurements if each.unit == "MB"]
        if any(kept):
            before, after, stored = kept
            growth = [end - begin for begin, end in zip(before, after, strict=True)]
            cells = (f"{median(values):,.1f}" for values in (before, after, growth, stored))
            rows.add_row(entry.name, *cells)
    return rows


def _notes(entries: list[Entry]) -> Table:
    notes = Table("", "version", "configured to guarantee", "runs", "failed", title="who ran")
    for entry in entries:
        runs = str(len(entry.measurements[0].samples))
        notes.add_row(entry.name, entry.version, entry.guarantee, runs, entry.fault)
    return notes


if __name__ == "__main__":
    typer.run(main)
