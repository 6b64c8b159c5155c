"""Kafka -> processor -> Kafka: records appended to the stage's log, until the last result lies in the sink's log."""

import itertools
import time

from benchmarks.worker_alone import FRAME_BYTES_MAX
from benchmarks.workload import APPLICATION, Workload, column_frames, log_frame, planned
from bettong.edges.kafka_log import LogReader, LogWriter
from bettong.frames.frame import decode
from bettong.local.options import SuiteOptions
from bettong.local.suite import Suite
from bettong.routing import partitions_of, split
from bettong.settings import Schedule
from bettong.topics import sink_topic, stage_topic
from examples.market_spread_oracle import by_symbol

FRAME_MESSAGES = 16_384
_S_MAX = 300.0


def records_of(load: Workload, partitions: int) -> list[tuple[int, bytes]]:
    """The load as (partition, frame), split by key as the sender does it."""
    last: dict[tuple[str, int], int] = {}
    records = []
    for sequence, (source, columns) in enumerate(column_frames(load, FRAME_MESSAGES), 1):
        division = split(partitions_of(columns, "symbol", partitions), partitions)
        ordered = columns.take(division.order)
        for partition, (start, stop) in enumerate(itertools.pairwise(division.bounds)):
            if start < stop:
                at = (source.name, partition)
                frame = log_frame(
                    source,
                    ordered.slice(start, stop),
                    sequence=sequence,
                    previous=last.get(at, 0),
                    now_ns=time.time_ns(),
                )
                records.append((partition, frame))
                last[at] = sequence
    return records


def messages_per_s(load: Workload, *, schedule: Schedule, compiled: bool, partitions: int) -> float:
    """Messages a second of one run on a log and a state of its own; the results are checked."""
    name = planned().application
    records = records_of(load, partitions)
    options = SuiteOptions(
        application=str(APPLICATION), partitions=partitions, schedule=schedule, compiled=compiled
    )
    with Suite(options) as suite:
        source, target = stage_topic(name, "nbbo"), sink_topic(name, "rejected")
        starts = {(target, partition): 0 for partition in range(partitions)}
        kafka = suite.record.kafka
        with (
            LogWriter(kafka, frame_bytes_max=FRAME_BYTES_MAX, buffer_bytes_max=64 * 1024 * 1024) as writer,
            LogReader(kafka, starts, frame_bytes_max=FRAME_BYTES_MAX) as reader,
        ):
            faults: list[Exception] = []

            def note(answer: int | Exception) -> None:
                if isinstance(answer, Exception):
                    faults.append(answer)

            begun = time.perf_counter()
            for partition, frame in records:
                writer.append(source, partition, frame, note)
            results = _read(reader, load.result_bytes, faults)
            seconds = time.perf_counter() - begun
    assert by_symbol(results) == load.rejected, "the processor's results are wrong"
    return load.messages / seconds


def _read(reader: LogReader, size: int, faults: list[Exception]) -> bytes:
    """The messages of the sink's log, until there are `size` bytes of them; raises what the writer met instead."""
    results = bytearray()
    deadline = time.monotonic() + _S_MAX
    while len(results) < size:
        for record in reader.poll(200, 1000):
            results += b"".join(decode(record.value).rows or ())
        if faults:
            raise faults[0]
        assert time.monotonic() < deadline, f"{len(results)} of {size} bytes of results after {_S_MAX} s"
    return bytes(results)
