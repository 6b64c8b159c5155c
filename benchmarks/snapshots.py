"""What snapshots cost: throughput and CPU time with one a second, against the same without any.

    .venv/bin/python -m benchmarks.snapshots --keys 1000000

Runs take turns, so that a machine that gets busy slows both. Without snapshots means that nothing is saved in the
store; the newest state in shared memory, by which Spark's Python processes hand a partition over, is part of the
schedule and stays. The pauses are those of a worker that makes an increment of all its keys.
"""

import time
from dataclasses import dataclass
from statistics import median
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.folding import FRAME_BYTES_MAX
from benchmarks.log_load import Splitter
from benchmarks.number_load import APPLICATION, all_keys, frames
from benchmarks.number_log import FRAME_MESSAGES, SUMS, Load, Processing, speed
from bettong.application.plan import plan
from bettong.config.processor import Schedule
from bettong.edges.application_file import load
from bettong.garbage import CollectionPaused
from bettong.lab.machine.facts import facts as machine_facts
from bettong.worker.partition import Assignment, PartitionWorker
from bettong.worker.stage_program import program

OFF_MS, ON_MS = 3_600_000, 1_000
_INCREMENTS = 30


@dataclass(frozen=True, slots=True)
class Run:
    """Messages a second, and CPU seconds of the processor for a million messages."""

    messages_per_s: float
    cpu_s: float


def main(
    keys: Annotated[int, typer.Option(help="Keys of the state.", min=1)] = 1_000_000,
    messages: Annotated[
        int, typer.Option(help="Messages of a run, after one for each key.", min=1)
    ] = 8_000_000,
    runs: Annotated[int, typer.Option(help="Runs of each; the median counts.", min=1)] = 3,
    partitions: Annotated[int, typer.Option(help="Partitions of every topic.", min=1)] = 16,
    *,
    compiled: Annotated[bool, typer.Option(help="Compiled, or message by message.")] = True,
) -> None:
    """Measures the cost of snapshots, with checked output."""
    console = Console()
    for name, value in machine_facts().items():
        console.print(f"{name}: {value}", highlight=False)
    found: dict[int, list[Run]] = {OFF_MS: [], ON_MS: []}
    for number in range(2 * runs):
        interval_ms = (OFF_MS, ON_MS)[number % 2]
        with console.status(f"run {number + 1} of {2 * runs}"):
            found[interval_ms].append(
                _run(
                    Load(messages, keys=keys),
                    Processing(
                        Schedule.MICRO_BATCH,
                        partitions,
                        compiled=compiled,
                        settings={"snapshot_interval_ms": str(interval_ms)},
                    ),
                )
            )
    table = Table("snapshots", "messages/s, median", "range", "CPU s per million", "range")
    for name, interval_ms in (("none", OFF_MS), ("one a second", ON_MS)):
        speeds = [run.messages_per_s for run in found[interval_ms]]
        cpu = [run.cpu_s for run in found[interval_ms]]
        table.add_row(
            name,
            f"{median(speeds):,.0f}",
            f"{min(speeds):,.0f} - {max(speeds):,.0f}",
            f"{median(cpu):.2f}",
            f"{min(cpu):.2f} - {max(cpu):.2f}",
        )
    console.print(table)
    pauses = pauses_ms(keys // partitions, compiled=compiled)
    console.print(
        f"increment of {keys // partitions:,} keys: median {median(pauses):.1f} ms, longest {max(pauses):.1f} ms"
    )


def _run(load_: Load, processing: Processing) -> Run:
    sample = speed(SUMS, load_, processing)
    return Run(sample.value, sum(cost for part, cost in sample.parts.items() if part.startswith("processor")))


def pauses_ms(keys: int, *, compiled: bool) -> list[float]:
    """How long a worker with so many keys, all changed, takes for an increment."""
    planned = plan(load(str(APPLICATION)))
    worker = PartitionWorker(
        program(planned.stages[0], compiled=compiled), Assignment(planned.application, 0, 1, FRAME_BYTES_MAX)
    )
    splitter = Splitter(1)
    offset, pauses = 0, []
    for _ in range(_INCREMENTS):
        for _, frame in frames(splitter, planned.sources[0], all_keys(keys), FRAME_MESSAGES):
            with CollectionPaused():
                worker.fold(offset, frame)
            offset += 1
        begun = time.perf_counter()
        worker.increment()
        pauses.append((time.perf_counter() - begun) * 1e3)
    return pauses


if __name__ == "__main__":
    typer.run(main)
