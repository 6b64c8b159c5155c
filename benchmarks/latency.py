"""Kafka -> Python -> Kafka: from a frame's append to the log until its results are read from the log.

    python -m benchmarks.latency --schedule resident --messages-per-s 100000
    python -m benchmarks.latency --schedule resident --master "local-cluster[2,1,1024]" --lose

Frames are appended at a fixed rate; one that is appended late counts from when it was due. With `--lose` an executor is
killed after a third of the time: its partitions go to the others, and come back when Spark has started another one.
The gaps in the partitions' results around each assignment are reported.
"""

import itertools
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Annotated

import psutil
import typer
from rich.console import Console

from benchmarks.echo import Reading
from benchmarks.measuring import Sample
from benchmarks.waits import WARM_S, Waits
from bettong.application.plan import plan
from bettong.chaos.spec import OtherProcess
from bettong.chaos.victims import processes
from bettong.config.connection_settings import KafkaConnection
from bettong.config.processor import Schedule
from bettong.edges.application_file import load
from bettong.edges.kafka_log import LogReader, LogWriter
from bettong.frames.columns import Columns
from bettong.frames.frame import Frame, decode, encode
from bettong.identifiers import Origin, SequenceNumber, TopicPartition
from bettong.lab.machine.facts import facts as machine_facts
from bettong.local.options import SuiteOptions
from bettong.local.suite import Suite
from bettong.routing import partition_of
from bettong.schema.schema import schema_of
from bettong.topics import sink_topic, stage_topic

APPLICATION = Path(__file__).with_name("echo.py")
SCHEMA = schema_of(Reading)
FRAME_BYTES_MAX = 4 * 1024 * 1024
_LATE_S_MAX = 60.0
_ASSIGNMENT_S = 1.0


@dataclass
class Seen:
    """Results: when they came and how late, by partition, in seconds; of each the columns of the newest frame."""

    begun_s: float = 0.0
    counts: int = 0
    late_s: dict[int, list[tuple[float, float]]] = field(default_factory=dict)
    highest: dict[int, int] = field(default_factory=dict)
    newest: dict[int, bytes] = field(default_factory=dict)
    duplicates: int = 0
    assignments_s: list[float] = field(default_factory=list)

    def waits(self) -> Waits:
        """How late the results were whose frames were due after the warming up."""
        waits = Waits()
        for each in self.late_s.values():
            for at_s, late_s in each:
                if at_s - late_s - self.begun_s > WARM_S:
                    waits.note(late_s)
        return waits


@dataclass(frozen=True, slots=True)
class Pace:
    """The load: how many messages a second, in frames of how many, for how long after the warming up."""

    messages_per_s: int = 100_000
    frame_messages: int = 500
    seconds: float = 30.0

    @property
    def frames(self) -> int:
        """All of them, with the warming up."""
        return int((self.seconds + WARM_S) * self.messages_per_s / self.frame_messages)

    def due_s(self, index: int) -> float:
        """When a frame is due, since the beginning."""
        return index * self.frame_messages / self.messages_per_s


def main(
    schedule: Annotated[Schedule, typer.Option(help="Which schedule.")] = Schedule.RESIDENT,
    messages_per_s: Annotated[int, typer.Option(help="Rate.", min=1)] = 100_000,
    frame_messages: Annotated[int, typer.Option(help="Messages of a frame.", min=1)] = 500,
    seconds: Annotated[float, typer.Option(help="How long, after 5 s of warming up.", min=1)] = 30.0,
    partitions: Annotated[int, typer.Option(help="Partitions of every topic.", min=1)] = 16,
    master: Annotated[str, typer.Option(help="Spark's master URL.")] = "local[2,4]",
    *,
    lose: Annotated[bool, typer.Option(help="Kill an executor on the way.")] = False,
) -> None:
    """Measures latency, and gaps when an executor is lost and comes back. Exits 1 when a result is lost or doubled."""
    console = Console(highlight=False)
    for name, value in machine_facts().items():
        console.print(f"{name}: {value}")
    pace = Pace(messages_per_s, frame_messages, seconds)
    seen = once(pace, schedule=schedule, partitions=partitions, master=master, lose=lose)
    _print_report(console, seen, pace)
    if fault := wrong(seen, pace, partitions):
        console.print(f"[red]{fault}")
        raise typer.Exit(1)


def samples(*, schedule: Schedule, partitions: int) -> list[Sample]:
    """One run: how late results were at PERCENTILES, in ms. Raises AssertionError when one is lost or wrong."""
    pace = Pace()
    seen = once(pace, schedule=schedule, partitions=partitions)
    fault = wrong(seen, pace, partitions)
    assert not fault, fault
    return seen.waits().samples()


def wrong(seen: Seen, pace: Pace, partitions: int) -> str:
    """What is wrong with the results, if anything: their number, or the last total of a meter."""
    sent = pace.frames * pace.frame_messages
    if seen.counts != sent:
        return f"{seen.counts:,} of {sent:,} results"
    for partition in range(min(partitions, pace.frames)):
        readings = [reading.meter for reading in _readings(partition, partitions, pace.frame_messages)]
        frames = len(range(partition, pace.frames, partitions))
        expected = {meter: float(frames * times) for meter, times in Counter(readings).items()}
        totals = Columns.of_payload(SCHEMA, seen.newest[partition])
        found = dict(zip(totals.values(0), totals.values(1), strict=True))
        if found != expected:
            return f"partition {partition}: the last totals are {found}, expected {expected}"
    return ""


def once(
    pace: Pace, *, schedule: Schedule, partitions: int, master: str = "local[2,4]", lose: bool = False
) -> Seen:
    """One run on a suite of its own. With `lose` an executor is killed after a third of the time."""
    options = SuiteOptions(
        application=str(APPLICATION),
        partitions=partitions,
        schedule=schedule,
        settings={"spark_master": master},
    )
    (source,) = (each.name for each in plan(load(str(APPLICATION))).sources)
    seen, done = Seen(), threading.Event()
    with Suite(options) as suite:
        kafka = suite.record.kafka_connection
        reading = threading.Thread(target=_read, args=(kafka, partitions, seen, done))
        reading.start()
        try:
            with LogWriter(kafka, frame_bytes_max=FRAME_BYTES_MAX, buffer_bytes_max=1 << 26) as writer:
                seen.begun_s = time.time()
                losing_s = WARM_S + pace.seconds / 3 if lose else float("inf")
                for index in range(pace.frames):
                    due_s = seen.begun_s + pace.due_s(index)
                    time.sleep(max(0.0, due_s - time.time()))
                    _append(writer, source, index, partitions, pace.frame_messages, due_s)
                    if pace.due_s(index) > losing_s:
                        losing_s = float("inf")
                        psutil.Process(processes(OtherProcess.EXECUTOR, suite.record.services)[0].pid).kill()
            deadline = time.time() + _LATE_S_MAX
            while seen.counts < pace.frames * pace.frame_messages and time.time() < deadline:
                time.sleep(0.1)
        finally:
            done.set()
            reading.join()
        seen.assignments_s = _assignments(suite.record.services["processor"].log)
    return seen


def _append(writer: LogWriter, source: str, index: int, partitions: int, messages: int, due_s: float) -> None:
    partition, number = index % partitions, index // partitions + 1
    frame = Frame(
        origin=Origin(f"{source}/benchmark"),
        sequence=SequenceNumber(number),
        previous=SequenceNumber(number - 1),
        count=messages,
        schema=SCHEMA.fingerprint,
        ingest_ns=int(due_s * 1e9),
        columns=_payload(partition, partitions, messages),
    )
    writer.append(TopicPartition(stage_topic("echo", source), partition), encode(frame), lambda _: None)


@cache
def _payload(partition: int, partitions: int, messages: int) -> bytes:
    return Columns.of_messages(SCHEMA, _readings(partition, partitions, messages)).payload()


def _readings(partition: int, partitions: int, messages: int) -> list[Reading]:
    """Readings of meters that belong to a partition; the same in each frame."""
    names = (name for name in map(str, itertools.count()) if partition_of(name, partitions) == partition)
    meters = list(itertools.islice(names, 50))
    return [Reading(meters[index % 50], 1.0) for index in range(messages)]


def _read(kafka: KafkaConnection, partitions: int, seen: Seen, done: threading.Event) -> None:
    starts = {TopicPartition(sink_topic("echo", "totals"), partition): 0 for partition in range(partitions)}
    with LogReader(kafka, starts, frame_bytes_max=FRAME_BYTES_MAX) as reader:
        while not done.is_set():
            for record in reader.poll(100, 1000):
                frame, now_s = decode(record.value), time.time()
                if frame.sequence <= seen.highest.get(record.partition, 0):
                    seen.duplicates += 1
                    continue
                assert frame.previous <= seen.highest.get(record.partition, 0), "a result is lost"
                seen.highest[record.partition] = frame.sequence
                seen.newest[record.partition] = frame.columns or b""
                seen.counts += frame.count
                late = seen.late_s.setdefault(record.partition, [])
                late.append((now_s, now_s - frame.ingest_ns / 1e9))


def _assignments(log: Path) -> list[float]:
    """When partitions were assigned, by the processor's log."""
    lines = [line for line in log.read_text().splitlines() if "partitions are assigned" in line]
    return [datetime.fromisoformat(line.split()[0]).timestamp() for line in lines]


def _print_report(console: Console, seen: Seen, pace: Pace) -> None:
    console.print(
        f"{seen.counts:,} of {pace.frames * pace.frame_messages:,} messages: {seen.waits()};"
        f" {seen.duplicates} duplicates skipped"
    )
    gaps = sorted(
        (after - seen.begun_s, after - before, partition)
        for partition, each in seen.late_s.items()
        for (before, _), (after, _) in itertools.pairwise(each)
        if after - seen.begun_s > WARM_S
    )
    usual = sorted(gap for _, gap, _ in gaps)[len(gaps) // 2] if gaps else 0.0
    console.print(f"results of a partition come every {usual * 1e3:.0f} ms")
    for assigned_s in seen.assignments_s:
        after = [each for each in gaps if 0 <= each[0] - (assigned_s - seen.begun_s) < _ASSIGNMENT_S]
        pauses = {p: max(gap for _, gap, q in after if q == p) for p in sorted({p for _, _, p in after})}
        longest = ", ".join(f"{partition}: {pause * 1e3:.0f}" for partition, pause in pauses.items())
        console.print(
            f"assigned at {assigned_s - seen.begun_s:.2f} s;"
            f" longest gaps until {_ASSIGNMENT_S:g} s later, ms: {longest}"
        )


if __name__ == "__main__":
    typer.run(main)
