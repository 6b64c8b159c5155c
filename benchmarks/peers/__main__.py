"""Bettong beside its peers: Market Spread from a topic to a topic, the same records, the same checked answer.

    python -m benchmarks.peers
    python -m benchmarks.peers --messages 200000 --runs 1 --only bytewax --only "Quix Streams"

Makes what environments are missing, then lets everyone run in turns. Prints a table, and leaves all runs as JSON, by
date, with a plot, beside those of `make bench`.
"""

from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks import log_to_log, machine, plain_loop, report
from benchmarks.measuring import Measurement, Sample, measure_machine
from benchmarks.peers import environments, race
from benchmarks.peers.bettong.contestant import BettongSuite
from benchmarks.peers.load import Load, framed, load
from benchmarks.peers.roster import PEERS
from bettong.config.processor import Schedule
from bettong.errors import BettongError

_WIDTH = 170
_BETTONG = "Bettong"


@dataclass(slots=True)
class Entry:
    """A row: who, what it was configured to guarantee, what records it takes, its runs, and what ended them early."""

    measurement: Measurement
    version: str
    guarantee: str
    start: race.Start | None
    schedule: Schedule = Schedule.MICRO_BATCH
    frames: bool = False
    fault: str = ""

    def once(self, of: Load, *, partitions: int, processes: int, s_max: float) -> Sample:
        """One run. Raises RaceError, BettongError."""
        if self.start is not None:
            taken = framed(of, partitions) if self.frames else of
            return race.run(self.start, taken, partitions=partitions, processes=processes, s_max=s_max)
        return log_to_log.speed(of.workload, schedule=self.schedule, compiled=True, partitions=partitions)


def main(
    messages: Annotated[int, typer.Option(help="Messages of a run.", min=10_000)] = 1_000_000,
    runs: Annotated[int, typer.Option(help="Runs of each; the median counts.", min=1)] = 3,
    partitions: Annotated[int, typer.Option(help="Partitions of every topic.", min=1)] = 4,
    processes: Annotated[int, typer.Option(help="Processes, or slots, that each may use.", min=1)] = 2,
    only: Annotated[list[str] | None, typer.Option(help="Who runs, by the beginning of the name.")] = None,
    s_max: Annotated[float, typer.Option(help="Seconds that a run may take.")] = 300.0,
    results: Annotated[Path, typer.Option(help="Folder for JSON and plot.")] = Path("bench-results"),
) -> None:
    """Compares Bettong with its peers. Exits 1 when someone failed; the others run all the same."""
    console = Console()
    console.width = max(console.width, _WIDTH)
    entries = _entries(tuple(only or ("",)))
    environments.make(peer for peer in PEERS if any(peer.name == each.measurement.name for each in entries))
    facts = machine.facts()
    of = load(messages)
    loop = partial(plain_loop.messages_per_s, of.workload)
    for number in range(runs):
        for entry in (each for each in entries if not each.fault):
            with console.status(f"{entry.measurement.name}, run {number + 1} of {runs} ..."):
                before = measure_machine(loop)
                try:
                    sample = entry.once(of, partitions=partitions, processes=processes, s_max=s_max)
                except (race.RaceError, BettongError, AssertionError) as error:
                    entry.fault = str(error).strip() or type(error).__name__
                    console.print(f"{entry.measurement.name} failed: {entry.fault}", highlight=False)
                    continue
            entry.measurement.before.append(before)
            entry.measurement.samples.append(sample)
            console.print(f"{entry.measurement.name}: {sample.value:,.0f} messages/s", highlight=False)
    measurements = [entry.measurement for entry in entries if entry.measurement.samples]
    console.print(
        report.table(measurements, f"{messages:,} messages, {runs} runs, {processes} processes each")
    )
    console.print(_notes(entries))
    if measurements:
        asked: dict[str, str | int] = {"messages": messages, "runs": runs, "partitions": partitions}
        who = {f"who: {entry.measurement.name}": _note(entry) for entry in entries}
        path = report.save(results, measurements, facts | who, asked | {"processes": processes})
        console.print(f"{path}, and a plot beside it", highlight=False)
    raise typer.Exit(any(entry.fault for entry in entries))


def _entries(chosen: tuple[str, ...]) -> list[Entry]:
    """Those whose names begin with what was chosen; Bettong's rows first."""
    entries = []
    for schedule in Schedule:
        suite = BettongSuite(schedule)
        name = f"{_BETTONG}, {schedule}"
        entries.append(Entry(Measurement(name, "messages/s", None), _own(), suite.guarantee, suite.start))
        own = Measurement(f"{name}, its own frames", "messages/s", None)
        guarantee = "exactly once, for who reads frames; a snapshot each second"
        entries.append(Entry(own, _own(), guarantee, None, schedule))
    entries += [
        Entry(
            Measurement(peer.name, "messages/s", None),
            peer.version,
            peer.guarantee,
            peer.start,
            frames=peer.frames,
        )
        for peer in PEERS
    ]
    wanted = [entry for entry in entries if entry.measurement.name.startswith(chosen)]
    if not wanted:
        names = ", ".join(repr(entry.measurement.name) for entry in entries)
        raise typer.BadParameter(f"nobody's name begins with {chosen}: there are {names}")
    return wanted


def _own() -> str:
    return version("bettong")


def _notes(entries: list[Entry]) -> Table:
    notes = Table("", "version", "configured to guarantee", "runs", "failed", title="who ran")
    for entry in entries:
        runs = str(len(entry.measurement.samples))
        notes.add_row(entry.measurement.name, entry.version, entry.guarantee, runs, entry.fault)
    return notes


def _note(entry: Entry) -> str:
    fault = f"; failed: {entry.fault}" if entry.fault else ""
    return f"{entry.version}; {entry.guarantee}{fault}"


if __name__ == "__main__":
    typer.run(main)
