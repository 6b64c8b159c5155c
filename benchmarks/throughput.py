"""Market Spread's speed: worker alone, Kafka to Kafka, and the whole suite; what it hangs on; and how late results are.

    make bench
    make bench ARGS="--messages 2000000 --runs 5 --only worker"
    make bench ARGS="--schedule resident --only log"
    make bench ARGS="--schedule resident --only latency"

Every run's results are checked. Before each run a plain CPython loop does the same work, and the machine's own hiccups
are measured. Medians of several runs, with their range: as a table, and as JSON and a page in a folder. The whole suite
is measured by run files of the lab. Beside other stream processors: `python -m benchmarks.peers`.
"""

from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import partial
from itertools import product
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks import (
    interval_joins,
    lab_runs,
    latency,
    log_to_log,
    many_keys,
    number_log,
    plain_loop,
    report,
    standing,
    table_joins,
    window_counts,
    worker_alone,
)
from benchmarks.measuring import Bar, Measurement, Sample, measure_machine
from benchmarks.waits import PERCENTILES
from benchmarks.workload import Workload, workload
from bettong.config.processor import Schedule
from bettong.lab.machine.facts import facts as machine_facts


class Part(StrEnum):
    """What can be measured on its own."""

    WORKER = "worker"
    WINDOWS = "windows"
    KEYS = "keys"
    JOINS = "joins"
    STATE = "state"
    LOG = "log"
    SUITE = "suite"
    LATENCY = "latency"
    EXECUTORS = "executors"
    STANDING = "standing"


# What is wanted of 2 cores. Of a schedule: where it differs.
BARS = {
    "worker alone, compiled": Bar(45e6, 80e6),
    "worker alone, Python": Bar(0.65, 1.0, of_loop=True),
    "a small frame in the worker, p50": Bar(30, 15),
    "a small frame in the worker, p99": Bar(70, 40),
    "a small frame in the worker, p99.99": Bar(500, 200),
    "tumbling counts of 100,000 keys, compiled, worker alone": Bar(10e6, 20e6),
    "sliding counts of 100,000 keys, compiled, worker alone": Bar(10e6, 20e6),
    "tumbling counts, Python against a plain loop": Bar(65, 100),
    "sliding counts of 1000 slides against tumbling, compiled": Bar(67, 100),
    "1 M pending timers of other keys against none, compiled, worker alone": Bar(97, 100),
    "memory with 10 M keys that come and end, over 30 minutes of the log clock": Bar(5, 1),
    "joins of two streams within bounds, 10,000 keys, compiled, worker alone": Bar(3e6, 6e6),
    "hot output against rare, compiled, resident": Bar(70, 90),
    "hot output against rare, Python, resident": Bar(70, 90),
    "1 M keys against 350, compiled, resident": Bar(80, 95),
    "1 M keys against 350, Python, resident": Bar(60, 80),
    "Kafka to Kafka, compiled, micro-batch": Bar(1.5e6, 4e6),
    "Kafka to Kafka, compiled, resident": Bar(4e6, 8e6),
    "whole suite, compiled, micro-batch": Bar(1e6, 3e6),
    "whole suite, compiled, resident": Bar(2.2e6, 3e6),
    "whole suite, Python, micro-batch": Bar(300e3, 600e3),
    "whole suite, Python, resident": Bar(1.7e6, 2e6),
    "log to log at 100,000/s, resident, p50": Bar(3, 1.5),
    "log to log at 100,000/s, resident, p99": Bar(15, 6),
    "log to log at 100,000/s, resident, p99.9": Bar(40, 20),
    "client to subscriber at 100,000/s, resident, p50": Bar(4, 2.5),
    "client to subscriber at 100,000/s, resident, p99": Bar(13, 8),
    "client to subscriber at 100,000/s, resident, p99.9": Bar(22, 15),
    "two executors against one, micro-batch": Bar(1.6, 1.8),
    "two executors against one, resident": Bar(1.75, 1.9),
    "idle, Python, micro-batch": Bar(10, 3),
    "idle, Python, resident": Bar(8, 3),
    "bettong run to first result, resident": Bar(6, 4),
}
MODES = (("compiled", True), ("Python", False))

# From the log, compiled: ten million and more a second are folded, and a run has to outlast its own beginning.
_COMPILED_MESSAGES_MIN = 32_000_000

# A run of a million is over in a second, of which its beginning takes a part.
_LOG_MESSAGES_MIN = 8_000_000
_SUITE_MESSAGES_MIN = 16_000_000

_FOR_SPEED, _FOR_LATENCY = 16, 2

# Enough for some windows of 100,000 keys to be over.
_WINDOW_EVENTS_MIN, _PYTHON_EVENTS_MIN = 16_000_000, 3_000_000
_JOINED_MIN = 4_000_000

_WIDTH = 170
_DRAWN_PER_S = 1

# Names of measurements, their unit, and one run, which gives a sample for each.
Planned = tuple[list[str], str, Callable[[], list[Sample]]]


def main(
    messages: Annotated[int, typer.Option(help="Messages of a run.", min=10_000)] = 1_000_000,
    runs: Annotated[int, typer.Option(help="Runs of each; the median counts.", min=1)] = 3,
    partitions: Annotated[
        int | None,
        typer.Option(
            help="Partitions of every topic; by default 16, and for latencies 2, a slot each.", min=1
        ),
    ] = None,
    schedule: Annotated[Schedule, typer.Option(help="How Spark hands frames on.")] = Schedule.RESIDENT,
    only: Annotated[Part | None, typer.Option(help="Measure one part.")] = None,
    results: Annotated[Path, typer.Option(help="Folder for JSON and page.")] = Path("bench-results"),
) -> None:
    """Measures throughput with checked output. Exits 1 when a result is wrong; a bar that is missed is only said."""
    console = Console()
    console.width = max(console.width, _WIDTH)
    facts = machine_facts()
    for name, value in facts.items():
        console.print(f"{name}: {value}", highlight=False)
    load = workload(messages)
    loop = partial(plain_loop.messages_per_s, load)
    measurements = []
    for names, unit, once in _measurements(load, only, schedule=schedule, partitions=partitions):
        found = [Measurement(name, unit, BARS.get(name)) for name in names]
        # Its thread wants Python's lock each time that it draws, which a measured worker waits for.
        with console.status(f"{names[0]} ...", refresh_per_second=_DRAWN_PER_S):
            for _ in range(runs):
                before = measure_machine(loop)
                for measurement, sample in zip(found, once(), strict=True):
                    measurement.before.append(before)
                    measurement.samples.append(sample)
        measurements += found
    at_least = f"of the log at least {_LOG_MESSAGES_MIN:,}, of the suite {_SUITE_MESSAGES_MIN:,}"
    title = f"{messages:,} messages, {at_least}, {runs} runs"
    console.print(report.table(measurements, title))
    asked: dict[str, str | int] = {"run": f"make bench, {schedule}", "messages": messages, "runs": runs}
    asked |= {"partitions": partitions or "16, latencies 2", "schedule": str(schedule)}
    path = report.save(results, measurements, facts, asked)
    console.print(f"{path}, and a page beside it", highlight=False)


def _measurements(
    load: Workload, only: Part | None, *, schedule: Schedule, partitions: int | None
) -> Iterator[Planned]:
    for_speed, for_latency = partitions or _FOR_SPEED, partitions or _FOR_LATENCY
    yield from _of_worker_alone(load, only)
    if only in (None, Part.STATE):
        for name, alone, from_log in (
            ("hot output against rare", worker_alone.hot_against_rare, number_log.hot_against_rare),
            ("1 M keys against 350", worker_alone.many_keys_against_few, number_log.many_keys_against_few),
        ):
            for mode, compiled in MODES:
                once = partial(alone, load.messages, compiled=compiled)
                yield [f"{name}, {mode}, worker alone"], "%", partial(_one, once)
                count = max(load.messages, _COMPILED_MESSAGES_MIN) if compiled else load.messages
                once = partial(from_log, count, number_log.Processing(schedule, for_speed, compiled))
                yield [f"{name}, {mode}, {schedule}"], "%", partial(_one, once)
    for part, name, speed in (
        (Part.LOG, "Kafka to Kafka", partial(_log_speed, max(load.messages, _LOG_MESSAGES_MIN))),
        (Part.SUITE, "whole suite", partial(lab_runs.suite_speed, max(load.messages, _SUITE_MESSAGES_MIN))),
    ):
        for mode, compiled in MODES if only in (None, part) else ():
            once = partial(speed, schedule=schedule, compiled=compiled, partitions=for_speed)
            yield [f"{name}, {mode}, {schedule}"], "messages/s", partial(_one, once)
    if only in (None, Part.LATENCY):
        for name, samples in (
            ("log to log", latency.samples),
            ("client to subscriber", lab_runs.suite_latency),
        ):
            names = [f"{name} at 100,000/s, {schedule}, p{each:g}" for each in PERCENTILES]
            yield names, "ms", partial(samples, schedule=schedule, partitions=for_latency)
    if only in (None, Part.EXECUTORS):
        ratio = partial(number_log.two_against_one, schedule=schedule, partitions=for_speed)
        yield [f"two executors against one, {schedule}"], "x", partial(_one, ratio)
    if only in (None, Part.STANDING):
        names = [f"idle, {what}, {schedule}" for what in ("Python", "Java")]
        yield names, "% of a core", partial(standing.idle, schedule=schedule, partitions=for_speed)
        start = partial(standing.first_result, schedule=schedule)
        yield [f"bettong run to first result, {schedule}"], "s", partial(_one, start)


def _log_speed(messages: int, *, schedule: Schedule, compiled: bool, partitions: int) -> Sample:
    return log_to_log.speed(workload(messages), schedule=schedule, compiled=compiled, partitions=partitions)


def _of_worker_alone(load: Workload, only: Part | None) -> Iterator[Planned]:
    if only in (None, Part.WORKER):
        yield ["plain CPython loop"], "messages/s", lambda: [Sample(plain_loop.messages_per_s(load))]
        frames = worker_alone.frames_of(load)
        ready = {compiled: worker_alone.stage(compiled=compiled) for _, compiled in MODES}
        for mode, compiled in MODES:
            once = partial(worker_alone.speed, ready[compiled], frames, load)
            yield [f"worker alone, {mode}"], "messages/s", partial(_one, once)
        small = worker_alone.frames_of(load, worker_alone.SMALL_FRAME_MESSAGES)
        names = [f"a small frame in the worker, p{each:g}" for each in worker_alone.PERCENTILES]
        yield names, "us", partial(worker_alone.waits, ready[True], small, load)
    if only in (None, Part.WINDOWS):
        once = partial(window_counts.tumbling_speed, max(load.messages, _WINDOW_EVENTS_MIN), compiled=True)
        yield ["tumbling counts of 100,000 keys, compiled, worker alone"], "messages/s", partial(_one, once)
        once = partial(window_counts.python_against_loop, max(load.messages, _PYTHON_EVENTS_MIN))
        yield ["tumbling counts, Python against a plain loop"], "%", partial(_one, once)
        once = partial(window_counts.sliding_speed, max(load.messages, _WINDOW_EVENTS_MIN))
        yield ["sliding counts of 100,000 keys, compiled, worker alone"], "messages/s", partial(_one, once)
        name = "sliding counts of 1000 slides against tumbling, compiled"
        yield [name], "%", partial(_one, window_counts.sliding_against_tumbling)
    if only in (None, Part.KEYS):
        name = "1 M pending timers of other keys against none, compiled, worker alone"
        yield [name], "%", partial(_one, many_keys.pending_timers)
        name = "memory with 10 M keys that come and end, over 30 minutes of the log clock"
        yield [name], "% more", partial(_one, many_keys.ttl_memory)
    if only in (None, Part.JOINS):
        once = partial(interval_joins.join_speed, max(load.messages, _JOINED_MIN), compiled=True)
        name = "joins of two streams within bounds, 10,000 keys, compiled, worker alone"
        yield [name], "messages/s", partial(_one, once)
        for mode, compiled in MODES:
            once = partial(interval_joins.join_against_loop, load.messages, compiled=compiled)
            yield [f"joins within bounds, {mode} against a plain loop"], "x", partial(_one, once)
        for kind, (mode, compiled) in product(table_joins.KINDS, MODES):
            messages = max(load.messages, _JOINED_MIN) if compiled else load.messages
            once = partial(table_joins.table_speed, kind, messages, compiled=compiled)
            yield (
                [f"joins with a table, {kind}, 100,000 keys, {mode}, worker alone"],
                "messages/s",
                partial(_one, once),
            )


def _one(once: Callable[[], Sample]) -> list[Sample]:
    return [once()]


if __name__ == "__main__":
    typer.run(main)
