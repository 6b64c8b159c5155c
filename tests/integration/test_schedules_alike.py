"""Every example under both schedules, over one log: the same records of output, byte for byte.

The log is made by the real sender's sessions and lies in a real Kafka. The resident half is the real loop in two slots,
between which partitions move in the middle; the micro-batch half is what a Spark task calls for each batch, by two
processes in turns. Spark itself, which only carries records, is in `tests/e2e/test_executors.py`.
"""

import random
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import structlog

from bettong import metrics
from bettong.application.nodes.source import Source
from bettong.application.plan import Plan, plan
from bettong.edges.application_file import load
from bettong.edges.directory_snapshots import DirectorySnapshots
from bettong.edges.kafka_log import LogAdmin, LogReader
from bettong.frames.frame import Frame, FrameKind, decode
from bettong.identifiers import Origin, PartitionId, SequenceNumber, TopicPartition
from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from bettong.topics import sink_topic, stage_topic
from bettong_processor.micro_batch.partitions import Partitions
from bettong_processor.micro_batch.replay import Replay
from bettong_processor.micro_batch.uploads import Stores, Uploads
from bettong_processor.programs import Programs
from bettong_processor.restoring import Restoring, WorkerLimits
from tests.integration.log_parts import FRAME_BYTES_MAX
from tests.integration.resident_slots import PARTITIONS, World, programs_of
from tests.samples.example_feeds import (
    Feed,
    card_events,
    clicks,
    lines,
    market,
    payments,
    quoted_trades,
    readings,
    session,
    steps,
    temperatures,
    trades,
    transactions,
    votes,
)
from tests.simulation.crash_guards import guard
from tests.waiting import eventually

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FEEDS: dict[str, Callable[[dict[str, Source]], Feed]] = {
    "alerts": transactions,
    "card_fraud": card_events,
    "celsius": temperatures,
    "classifier": readings,
    "market_spread": market,
    "overdue_orders": steps,
    "running_totals": votes,
    "sqlite_ledger": payments,
    "trades_and_quotes": quoted_trades,
    "turnover": trades,
    "visits": clicks,
    "word_count": lines,
}
BATCH_RECORDS_MAX = 9
# What is due later than this does not come before the slots have stopped.
SOON_NS = 10_000_000_000
SEED = 20_261_122

# Topic, partition and value of a record.
Record = tuple[str, int, bytes]
# The values of each topic, partition and origin, in order: between origins there is none.
Output = dict[tuple[str, int, str], list[bytes]]


def test_no_example_is_left_out() -> None:
    made = re.compile(r"^app = bettong\.Application\(", re.MULTILINE)
    examples = {path.stem for path in EXAMPLES.glob("*.py") if made.search(path.read_text())}
    assert examples == FEEDS.keys()


@pytest.mark.parametrize(
    ("example", "compiled"),
    [(name, False) for name in FEEDS]
    + [(name, True) for name in ("celsius", "market_spread", "overdue_orders", "running_totals")],  # compiled
)
def test_both_schedules_put_out_the_same_records(
    *,
    example: str,
    compiled: bool,
    kafka: KafkaBroker,
    redis_server: RedisServer,
    unique_name: Callable[..., str],
    tmp_path: Path,
) -> None:
    planned = replace(plan(load(str(EXAMPLES / f"{example}.py"))), application=unique_name("alike"))
    programs = programs_of(planned, compiled=compiled)
    assert any(stage.kernels for stage in programs.stages.values()) == compiled
    fed = list(records_of(planned, FEEDS[example]))
    origins = {decode(value).origin for _, _, value in fed}
    world = World(planned.application, kafka.bootstrap, redis_server.url, programs)
    try:
        run_resident(world, fed)
    finally:
        world.close()
    stages = [stage_topic(planned.application, stage.name) for stage in planned.stages]
    log = read(kafka, planned.topics)
    resident = by_origin(each for each in log if is_output(decode(each[2]), origins))
    micro_batch = by_origin(
        run_micro_batch(programs, kafka, [each for each in log if each[0] in stages], tmp_path)
    )
    for sink in planned.sinks:
        topic = sink_topic(planned.application, sink.name)
        assert sum(len(values) for (of, _, _), values in micro_batch.items() if of == topic) > 10
    assert resident == micro_batch


def records_of(planned: Plan, feed: Callable[[dict[str, Source]], Feed]) -> Iterator[Record]:
    """What a sender appends for a client that sends the feed, and ends its streams."""
    sources = {source.name: source for source in planned.sources}
    sessions = {
        name: session(planned, source, partitions=PARTITIONS, frame_bytes_max=FRAME_BYTES_MAX)
        for name, source in sources.items()
    }
    begun_ns = time.time_ns()  # an origin that was heard of long ago would be idle
    appends = [each for one in sessions.values() for each in one.open(0, begun_ns, SequenceNumber(0)).appends]
    for sequence, (name, frame) in enumerate(feed(sources), 1):
        frame.sequence = sequence
        appends += sessions[name].take(frame, 0, begun_ns + sequence).appends
    appends += [each for one in sessions.values() for each in one.end(0, time.time_ns()).appends]
    return ((each.topic, each.partition, each.value) for each in appends)


def run_resident(world: World, fed: list[Record]) -> None:
    """Two slots fold it all; half of it comes when they hold other partitions than before."""
    world.start(0)
    world.start(1)
    world.group.assign({0: [0, 1, 2, 3]})
    append(world, fed[: len(fed) // 2])
    await_rest(world)
    world.group.assign({0: [0, 1], 1: [2, 3]})
    world.group.await_holders({0: 0, 1: 0, 2: 1, 3: 1})
    append(world, fed[len(fed) // 2 :])
    await_rest(world)
    world.group.assign({}, stop=True)
    assert [slot.ended() for slot in world.slots] == [None, None]


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
    programs: Programs, kafka: KafkaBroker, log: list[Record], folder: Path
) -> Iterator[Record]:
    """What tasks put out over these logs of stages, in batches of several sizes."""
    chance = random.Random(SEED)
    processes = [process(programs, kafka, folder) for _ in range(2)]
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


def process(programs: Programs, kafka: KafkaBroker, folder: Path) -> Partitions:
    """Of one machine: its processes share memory."""
    log = structlog.get_logger()
    stores = Stores(
        local=DirectorySnapshots(folder / "local"), durable=DirectorySnapshots(folder / "durable")
    )
    return Partitions(
        Restoring(programs, WorkerLimits(PARTITIONS, FRAME_BYTES_MAX), log),
        stores=stores,
        uploads=Uploads(stores, interval_s=3600, clock=lambda: 0.0, log=log),
        replay_log=Replay(kafka.bootstrap, frame_bytes_max=FRAME_BYTES_MAX),
        guard=guard(folder / "local"),
        log=log,
    )


def is_output(frame: Frame, origins: set[Origin]) -> bool:
    """Not what clients sent, nor the TICKs of slots, which are input: only a stage reports watermarks in its own."""
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
