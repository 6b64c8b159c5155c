"""Kafka -> processor -> Kafka: records appended to the stage's log, until the last result lies in the sink's log."""

import itertools
from collections.abc import Iterator

from benchmarks.folding import FRAME_BYTES_MAX
from benchmarks.log_load import Feeder, Splitter, rounds
from benchmarks.measuring import Sample, Stopwatch
from benchmarks.workload import APPLICATION, Workload, column_frames, planned
from bettong.config.processor import Schedule
from bettong.edges.kafka_log import LogReader, LogWriter
from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.frames.frame import decode
from bettong.identifiers import TopicPartition
from bettong.lab.target.folding import await_folded
from bettong.local.options import SuiteOptions
from bettong.local.suite import Suite
from bettong.topics import sink_topic, stage_topic
from examples.market_spread_oracle import by_symbol

# Split over all partitions.
FRAME_MESSAGES = 16_384


def records_of(load: Workload, partitions: int) -> Iterator[list[tuple[int, bytes]]]:
    """Each frame of the load as (partition, frame), split by key as the sender does it; the initial quotes first."""
    splitter = Splitter(partitions)
    for source, columns in column_frames(load, FRAME_MESSAGES):
        yield list(splitter.frames(source, columns, key="symbol"))


def speed(load: Workload, *, schedule: Schedule, compiled: bool, partitions: int) -> Sample:
    """Messages a second of one run on a log and a state of its own; the results are checked.

    From the first one after the initial quotes: by then every partition has its connection and its state.
    """
    name = planned().application
    initial, *steady = records_of(load, partitions)
    options = SuiteOptions(
        application=str(APPLICATION),
        partitions=partitions,
        schedule=schedule,
        compiled=compiled,
    )
    with Suite(options) as suite, RedisStore(suite.record.redis_connection, suite.record.name) as store:
        source, target = stage_topic(name, "nbbo"), sink_topic(name, "rejected")
        starts = {TopicPartition(target, partition): 0 for partition in range(partitions)}
        kafka = suite.record.kafka_connection
        with (
            LogWriter(kafka, frame_bytes_max=FRAME_BYTES_MAX, buffer_bytes_max=64 * 1024 * 1024) as writer,
            LogReader(kafka, starts, frame_bytes_max=FRAME_BYTES_MAX) as reader,
        ):
            feeder = Feeder(writer, source)
            feeder.append(initial)
            await_folded(LiveMetrics(store), sum(decode(frame).count for _, frame in initial))
            watch = Stopwatch(suite.record.services)
            feeder.append(itertools.chain.from_iterable(steady))
            results = _read(reader, load.result_bytes, feeder)
            sample = watch.sample(load.messages)
    assert by_symbol(results) == load.rejected, "the processor's results are wrong"
    return sample


def _read(reader: LogReader, size: int, feeder: Feeder) -> bytes:
    """The messages of the sink's log, until there are `size` bytes of them; raises what the feeder met instead."""
    results = bytearray()
    for records in rounds(reader):
        feeder.check()
        for record in records:
            results += b"".join(decode(record.value).rows or ())
        if len(results) >= size:
            break
    return bytes(results)
