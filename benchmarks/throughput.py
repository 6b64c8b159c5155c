"""Messages a second of Market Spread: worker alone, Kafka to Kafka, and the whole suite.

    make bench
    make bench ARGS="--messages 2000000 --runs 5 --only worker"
    make bench ARGS="--schedule resident --only log"

Every run's results are compared with a plain loop's; the loop is timed in the same process, and each figure is
given as a multiple of it. Medians of several runs, with their range.
"""

from collections.abc import Callable
from enum import StrEnum
from statistics import median
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks import log_to_log, machine, plain_loop, whole_suite, worker_alone
from benchmarks.workload import Workload, workload
from bettong.settings import Schedule


class Part(StrEnum):
    """What can be measured on its own."""

    WORKER = "worker"
    LOG = "log"
    SUITE = "suite"


# What the first release wants to reach on 2 cores: messages/s, or (below 10) a multiple of the plain loop.
BARS = {
    "worker alone, compiled": 10e6,
    "worker alone, Python": 0.6,
    "whole suite, compiled": 300e3,
}


def main(
    messages: Annotated[int, typer.Option(help="Messages of a run.", min=10_000)] = 1_000_000,
    runs: Annotated[int, typer.Option(help="Runs of each; the median counts.", min=1)] = 3,
    partitions: Annotated[int, typer.Option(help="Partitions of every topic.", min=1)] = 16,
    schedule: Annotated[Schedule, typer.Option(help="How Spark hands frames on.")] = Schedule.MICRO_BATCH,
    only: Annotated[Part | None, typer.Option(help="Measure one part.")] = None,
) -> None:
    """Measures throughput with checked output. Exits 1 when a result is wrong; a bar that is missed is only said."""
    console = Console()
    for name, value in machine.facts().items():
        console.print(f"{name}: {value}", highlight=False)
    load = workload(messages)
    plain = [plain_loop.messages_per_s(load) for _ in range(runs)]
    table = Table(
        "", "messages/s, median", "range", "x plain loop", "bar", title=f"{messages:,} messages, {runs} runs"
    )
    _row(table, "plain CPython loop", plain, plain)
    for name, figures in _measure(
        load, only, schedule=schedule, runs=runs, partitions=partitions, console=console
    ):
        _row(table, name, figures, plain)
    console.print(table)


def _measure(
    load: Workload,
    only: Part | None,
    *,
    schedule: Schedule,
    runs: int,
    partitions: int,
    console: Console,
) -> list[tuple[str, list[float]]]:
    rows: list[tuple[str, list[float]]] = []

    def measure(part: Part, name: str, once: Callable[[], float]) -> None:
        if only in (None, part):
            with console.status(f"{name} ..."):
                rows.append((name, [once() for _ in range(runs)]))

    if only in (None, Part.WORKER):
        frames = worker_alone.frames_of(load)
        for name, compiled in (("compiled", True), ("Python", False)):
            ready = worker_alone.stage(compiled=compiled)
            measure(
                Part.WORKER,
                f"worker alone, {name}",
                lambda ready=ready: worker_alone.messages_per_s(ready, frames, load),  # type: ignore[misc]
            )
    for name, compiled in (("compiled", True), ("Python", False)):
        measure(
            Part.LOG,
            f"Kafka to Kafka, {name}",
            lambda compiled=compiled: log_to_log.messages_per_s(  # type: ignore[misc]
                load, schedule=schedule, compiled=compiled, partitions=partitions
            ),
        )
    for name, compiled in (("compiled", True), ("Python", False)):
        measure(
            Part.SUITE,
            f"whole suite, {name}",
            lambda compiled=compiled: whole_suite.messages_per_s(  # type: ignore[misc]
                load, schedule=schedule, compiled=compiled, partitions=partitions
            ),
        )
    return rows


def _row(table: Table, name: str, figures: list[float], plain: list[float]) -> None:
    ratio = median(figures) / median(plain)
    bar = BARS.get(name)
    verdict = ""
    if bar is not None:
        reached = (ratio if bar < 10 else median(figures)) >= bar
        verdict = f"{bar:,.1f} x" if bar < 10 else f"{bar:,.0f}"
        verdict += ": reached" if reached else ": missed"
    table.add_row(
        name, f"{median(figures):,.0f}", f"{min(figures):,.0f} - {max(figures):,.0f}", f"{ratio:.2f}", verdict
    )


if __name__ == "__main__":
    typer.run(main)
