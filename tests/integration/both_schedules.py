"""One log under both schedules: what is appended and read, the micro-batch half, and what counts of the output."""

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

BATCH_RECORDS_MAX = 9
# What is due later than this does not come before the slots have stopped.
SOON_NS = 10_000_000_000
SEED = 20_261_122

# Topic, partition and value of a record.
Record = tuple[str, int, bytes]
# The values of each topic, partition and origin, in order: between origins there is none.
Output = dict[tuple[str, int, str], list[bytes]]


def append(world: World, records: list[Record]) -> None:
    for topic, partition, value in records:
        world.writer.append(TopicPartition(topic, partition), value, lambda _: None)
    world.writer.flush(30)
    assert world.writer.failure is None


def await_rest(world: World) -> None:
    """Waits until snapshots hold all that is in the logs of all stages, so that all output is durable, and nothing is
    due: logs grow by TICKs, too.
    """
    with LogAdmin(world.kafka) as admin:
        eventually(partial(is_at_rest, world, admin), what="all is folded and saved, and nothing due")


def is_at_rest(world: World, admin: LogAdmin) -> bool:
    """Whether it was all the time that this looked."""
    before, soon_ns = ends(world, admin), time.time_ns() + SOON_NS
    for each, end in before.items():
        saved = world.store.increments(each)
        reported = world.metrics.partitions().get(each, {})
        is_folded = reported.get(metrics.OFFSET.name) == str(end)
        is_saved = bool(saved) and saved[-1].offset == end
        if not is_folded or not is_saved or int(reported[metrics.DUE.name] or soon_ns) < soon_ns:
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


def read(kafka: KafkaBroker, topics: Iterable[str]) -> list[Record]:
    with LogAdmin(kafka.bootstrap) as admin:
        left = sum(admin.ends(list(topics)).values())
    starts = {TopicPartition(topic, partition): 0 for topic in topics for partition in range(PARTITIONS)}
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
    log: list[Record],
    folder: Path,
    references: ReferenceTables | None = None,
) -> Iterator[Record]:
    """What tasks put out over these logs of stages, in batches of several sizes."""
    chance = random.Random(SEED)
    processes = [process(programs, kafka, folder, references) for _ in range(2)]
    values: defaultdict[tuple[str, int], list[bytes]] = defaultdict(list)
    for topic, partition, value in log:
        values[topic, partition].append(value)
    for (topic, partition), of_partition in values.items():
        first = 0
        while first < len(of_partition):
            until = min(first + chance.randint(1, BATCH_RECORDS_MAX), len(of_partition))
            partitions = chance.choice(processes)
            worker = partitions.begin(TopicPartition(topic, partition), first)
            for offset in range(first, until):
                for record in worker.fold(offset, of_partition[offset]):
                    yield record.topic, record.partition, record.value
            partitions.finish(worker)
            first = until


def process(
    programs: Programs, kafka: KafkaBroker, folder: Path, references: ReferenceTables | None = None
) -> Partitions:
    """Of one machine: its processes share memory."""
    log = structlog.get_logger()
    stores = Stores(
        local=DirectorySnapshots(folder / "local"), durable=DirectorySnapshots(folder / "durable")
    )
    return Partitions(
        Restoring(programs, WorkerLimits(PARTITIONS, FRAME_BYTES_MAX), log, references),
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
