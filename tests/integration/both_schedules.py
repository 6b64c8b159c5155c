"""Both schedules over one log, without Spark: what slots put out that lies in Kafka, and what micro-batch tasks do."""

import random
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import structlog

from bettong import metrics
from bettong.edges.directory_snapshots import DirectorySnapshots
from bettong.edges.kafka_log import LogAdmin, LogReader
from bettong.errors import LogError
from bettong.frames.frame import Frame, FrameKind, decode
from bettong.identifiers import Origin, PartitionId, TopicPartition
from bettong.local.broker import KafkaBroker
from bettong.topics import stage_topic
from bettong.worker.references.versions import ReferenceTables
from bettong_processor.micro_batch.partitions import Partitions
from bettong_processor.micro_batch.replay import Replay
from bettong_processor.micro_batch.uploads import Stores, Uploads
from bettong_processor.programs import Programs
from bettong_processor.restoring import Restoring, WorkerLimits
from tests.integration.log_parts import FRAME_BYTES_MAX
from tests.integration.resident_slots import PARTITIONS, World
from tests.simulation.crash_guards import guard
from tests.waiting import eventually

# Topic, partition and value of a record.
Record = tuple[str, int, bytes]
# The values of each topic, partition and origin, in order: between origins there is none.
Output = dict[tuple[str, int, str], list[bytes]]


BATCH_RECORDS_MAX = 9
# What is due later than this does not come before the slots have stopped.
SOON_NS = 10_000_000_000
SEED = 20_261_122


def append(world: World, records: Iterable[Record]) -> None:
    """Returns when the log has them."""
    for topic, partition, value in records:
        world.writer.append(TopicPartition(topic, partition), value, lambda _: None)
    world.writer.flush(30)
    assert world.writer.failure is None


def await_rest(world: World, *, soon_ns: int | None = None, is_saved: bool = True) -> None:
    """Waits until all that is in the logs of all stages is folded, so that its output is durable, and nothing is due
    before `soon_ns`, or for a while (logs grow by TICKs, too); and, if it is to be, saved.
    """
    with LogAdmin(world.kafka) as admin:

        def at_rest() -> bool:
            try:
                return _is_at_rest(world, admin, soon_ns, is_saved=is_saved)
            except LogError:
                # A broker that is busy with hundreds of partitions may not answer in time, and is asked again.
                return False

        eventually(at_rest, what="all is folded and saved, and nothing due")


def _is_at_rest(world: World, admin: LogAdmin, soon_ns: int | None, *, is_saved: bool) -> bool:
    """Whether it was all the time that this looked."""
    before, reported = ends(world, admin), world.metrics.partitions()
    soon_ns = time.time_ns() + SOON_NS if soon_ns is None else soon_ns
    for each, end in before.items():
        metric_values = reported.get(each, {})
        if metric_values.get(metrics.OFFSET.name) != str(end):
            return False
        if int(metric_values[metrics.DUE.name] or soon_ns) < soon_ns:
            return False
        if is_saved and ((saved := world.store.increments(each)) == [] or saved[-1].offset != end):
            return False
    return ends(world, admin) == before


def ends(world: World, admin: LogAdmin) -> dict[PartitionId, int]:
    """Of the partitions that hold something."""
    stages = {stage_topic(world.name, stage): stage for stage in world.programs.stages}
    return {
        PartitionId(stages[topic], partition): end
        for (topic, partition), end in admin.ends(list(stages)).items()
        if end
    }


def read(kafka: KafkaBroker, topics: Iterable[str], *, partitions: int = PARTITIONS) -> list[Record]:
    """All records of these topics."""
    with LogAdmin(kafka.bootstrap) as admin:
        left = sum(admin.ends(list(topics)).values())
    starts = {TopicPartition(topic, partition): 0 for topic in topics for partition in range(partitions)}
    found: list[Record] = []
    with LogReader(kafka.bootstrap, starts, frame_bytes_max=FRAME_BYTES_MAX) as reader:
        deadline_s = time.monotonic() + 30
        while len(found) < left:
            found += [(each.topic, each.partition, each.value) for each in reader.poll(200, 10_000)]
            assert time.monotonic() < deadline_s, f"{len(found)} records of {left}"
    return found


def run_micro_batch(
    programs: Programs,
    kafka: KafkaBroker,
    log: Iterable[Record],
    folder: Path,
    references: ReferenceTables | None = None,
    *,
    partitions: int = PARTITIONS,
    crashes: bool = False,
) -> Iterator[Record]:
    """What tasks put out over these logs of stages, by two processes in turns and in batches of several sizes; with
    `crashes`, each record is a batch of its own, and folded by a new process.
    """
    chance, started = random.Random(SEED), partial(process, programs, kafka, folder, references, partitions)
    two = [started() for _ in range(2)]
    values: defaultdict[tuple[str, int], list[bytes]] = defaultdict(list)
    for topic, partition, value in log:
        values[topic, partition].append(value)
    for (topic, partition), of_partition in values.items():
        first = 0
        while first < len(of_partition):
            until = min(first + (1 if crashes else chance.randint(1, BATCH_RECORDS_MAX)), len(of_partition))
            one = started() if crashes else chance.choice(two)
            worker = one.begin(TopicPartition(topic, partition), first)
            for offset in range(first, until):
                for record in worker.fold(offset, of_partition[offset]):
                    yield record.topic, record.partition, record.value
            one.finish(worker)
            first = until


def process(
    programs: Programs,
    kafka: KafkaBroker,
    folder: Path,
    references: ReferenceTables | None,
    partitions: int,
) -> Partitions:
    """Of one machine: its processes share memory."""
    log = structlog.get_logger()
    stores = Stores(
        local=DirectorySnapshots(folder / "local"), durable=DirectorySnapshots(folder / "durable")
    )
    return Partitions(
        Restoring(programs, WorkerLimits(partitions, FRAME_BYTES_MAX), log, references),
        stores=stores,
        uploads=Uploads(stores, interval_s=3600, clock=lambda: 0.0, log=log),
        replay_log=Replay(kafka.bootstrap, frame_bytes_max=FRAME_BYTES_MAX),
        guard=guard(folder / "local"),
        log=log,
    )


def is_output(frame: Frame, origins: set[Origin]) -> bool:
    """Not what clients sent, nor the TICKs of slots and what names tables, which are input: only a stage reports
    watermarks in its own TICKs.
    """
    if frame.kind is FrameKind.REFERENCE:
        return False
    return frame.origin not in origins and (frame.kind is not FrameKind.TICK or bool(frame.watermarks))


def by_origin(records: Iterable[Record]) -> Output:
    """A record that is there twice, as after a move, must be just the same, and counts once.

    A TICK has no number; its origin is the one whose watermark it reports.
    """
    found: defaultdict[tuple[str, int, str], dict[tuple[int, int] | bytes, bytes]] = defaultdict(dict)
    for topic, partition, value in records:
        frame = decode(value)
        is_tick = frame.kind is FrameKind.TICK
        of_origin = found[topic, partition, next(iter(frame.watermarks)) if is_tick else frame.origin]
        assert of_origin.setdefault(value if is_tick else (frame.sequence, frame.kind.value), value) == value
    return {partition: list(values.values()) for partition, values in found.items()}
