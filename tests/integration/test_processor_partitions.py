"""Where a partition's state comes from: memory, shared memory, Redis, or the log folded again. All real."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import structlog

import bettong
from bettong.application.plan import plan
from bettong.edges.directory_snapshots import DirectorySnapshots
from bettong.edges.kafka_log import LogAdmin, LogWriter
from bettong.edges.redis_store import RedisSnapshots, RedisStore
from bettong.errors import LogTruncatedError, StateChangedError, StoreError
from bettong.frames.columns import Columns
from bettong.frames.frame import Frame, encode
from bettong.identifiers import Origin, PartitionId, SequenceNumber, TopicPartition
from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from bettong.snapshots.chain import Increment
from bettong.topics import stage_topic
from bettong.worker.exclusions import Excluded, Exclusion
from bettong.worker.partition import Assignment, PartitionWorker
from bettong.worker.stage_program import program
from bettong_processor.micro_batch.partitions import Partitions
from bettong_processor.micro_batch.replay import Replay
from bettong_processor.micro_batch.uploads import Stores, Uploads
from bettong_processor.programs import Programs
from bettong_processor.restoring import Restoring, WorkerLimits
from tests.integration.log_parts import FRAME_BYTES_MAX
from tests.simulation.crash_guards import guard

# How many records the log of the tests holds.
RECORDS = 30


@dataclass(slots=True)
class Number:
    """What the log holds."""

    name: str
    value: int


@dataclass(slots=True)
class Sum:
    """What is kept, and put out."""

    total: int = 0


def add(number: Number, kept: Sum) -> Sum:
    """Adds up."""
    kept.total += number.value
    return Sum(kept.total)


def application(name: str) -> bettong.Application:
    """Sums by name."""
    app = bettong.Application(name)
    app.source("numbers", schema=Number, key="name").stateful(add, state=Sum).sink("sums")
    return app


class World:
    """A log of known records, the stores, and processes that fold it."""

    def __init__(self, name: str, kafka: str, redis: str, folder: Path) -> None:
        planned = plan(application(name))
        self.programs = Programs(
            planned, {stage.name: program(stage, compiled=False) for stage in planned.stages}
        )
        self.stage = planned.stages[0]
        self.topic = stage_topic(name, self.stage.name)
        self.local_path = folder / "local"
        self.stores = Stores(
            local=DirectorySnapshots(self.local_path), durable=RedisSnapshots(RedisStore(redis, name))
        )
        self._kafka = kafka
        self.now_s = 1000.0
        with LogAdmin(kafka) as admin:
            admin.create_topics([self.topic], partitions=1, replication=1, frame_bytes_max=FRAME_BYTES_MAX)
        self.values = [self._value(number) for number in range(RECORDS)]
        with LogWriter(kafka, frame_bytes_max=FRAME_BYTES_MAX, buffer_bytes_max=1 << 24) as writer:
            for value in self.values:
                writer.append(TopicPartition(self.topic, 0), value, lambda _: None)
            writer.flush(30)

    def _value(self, number: int) -> bytes:
        entry = self.stage.inputs[0]
        columns = Columns.of_messages(entry.schema, [Number("m", number)])
        return encode(
            Frame(
                origin=Origin(f"{entry.stream}/client"),
                sequence=SequenceNumber(number + 1),
                previous=SequenceNumber(number),
                count=1,
                schema=entry.schema.fingerprint,
                ingest_ns=number + 1,
                columns=columns.payload(),
            )
        )

    def process(self) -> Partitions:
        """The partitions of a new process."""
        log = structlog.get_logger()
        self.uploads = Uploads(self.stores, interval_s=1.0, clock=lambda: self.now_s, log=log)
        return Partitions(
            Restoring(self.programs, WorkerLimits(partitions=1, frame_bytes_max=FRAME_BYTES_MAX), log),
            stores=self.stores,
            uploads=self.uploads,
            replay_log=Replay(self._kafka, frame_bytes_max=FRAME_BYTES_MAX),
            guard=guard(self.local_path),
            log=log,
        )

    def durable(self) -> list[int]:
        """The offsets of the snapshots in Redis, once nothing is on its way there."""
        assert self.uploads.wait_until_saved(10)
        return [each.offset for each in self.stores.durable.increments(PartitionId(self.stage.name, 0))]

    def batch(self, process: Partitions, first: int, until: int) -> PartitionWorker:
        """Folds one batch of records."""
        worker = process.begin(TopicPartition(self.topic, 0), first)
        for offset in range(first, until):
            worker.fold(offset, self.values[offset])
        process.finish(worker)
        return worker

    def straight(self, until: int) -> bytes:
        """The state that a fold without any interruption has after `until` records."""
        fresh = PartitionWorker(
            self.programs.stages[self.stage.name],
            Assignment(self.programs.plan.application, 0, 1, FRAME_BYTES_MAX),
        )
        for offset in range(until):
            fresh.fold(offset, self.values[offset])
        return fresh.snapshot()


@pytest.fixture
def world(
    kafka: KafkaBroker, redis_server: RedisServer, tmp_path: Path, unique_name: Callable[..., str]
) -> World:
    return World(unique_name("partitions"), kafka.bootstrap, redis_server.url, tmp_path)


def test_a_process_goes_on_with_the_state_that_it_has(world: World) -> None:
    process = world.process()
    first = world.batch(process, 0, 10)
    second = world.batch(process, 10, 20)
    assert second is first
    assert second.snapshot() == world.straight(20)


def test_another_process_takes_the_state_from_shared_memory(world: World) -> None:
    world.batch(world.process(), 0, 10)
    assert world.durable() == []
    assert world.batch(world.process(), 10, 20).snapshot() == world.straight(20)


def test_a_batch_that_is_tried_again_starts_from_the_state_before_it(world: World) -> None:
    process = world.process()
    world.batch(process, 0, 10)
    world.batch(process, 10, 20)
    assert world.batch(process, 10, 20).snapshot() == world.straight(20)
    assert world.batch(world.process(), 10, 20).snapshot() == world.straight(20)


def test_a_task_that_failed_half_way_leaves_no_half_folded_state(world: World) -> None:
    process = world.process()
    world.batch(process, 0, 10)
    worker = process.begin(TopicPartition(world.topic, 0), 10)
    worker.fold(10, world.values[10])
    assert world.batch(process, 10, 20).snapshot() == world.straight(20)


def test_a_snapshot_is_saved_only_when_the_next_batch_proves_it_durable(world: World) -> None:
    process = world.process()
    world.batch(process, 0, 10)
    assert world.durable() == []
    world.batch(process, 10, 15)
    assert world.durable() == [10]
    world.batch(process, 15, 20)
    assert world.durable() == [10], "too soon after the last one"
    world.now_s += 2
    world.batch(process, 20, 25)
    assert world.durable() == [10, 20]
    saved = world.uploads.saved(PartitionId(world.stage.name, 0))
    assert saved is not None
    assert saved.offset == 20


def test_without_shared_memory_the_snapshot_is_taken_and_the_log_folded_on(world: World) -> None:
    process = world.process()
    world.batch(process, 0, 10)
    world.batch(process, 10, 20)
    assert world.durable() == [10]
    world.stores.local.clear()
    assert world.batch(world.process(), 20, 25).snapshot() == world.straight(25)


def test_what_is_folded_again_leaves_out_what_was_decided(world: World) -> None:
    decided = Exclusion(3, (Excluded(0, 1, "add", "killed the worker"),))
    guard(world.local_path).exclusions.append(PartitionId(world.stage.name, 0), decided)
    worker = world.batch(world.process(), 10, 20)
    assert (worker.counters.messages, worker.counters.results, worker.counters.dead_letters) == (20, 19, 1)


def test_without_any_state_the_whole_log_is_folded_again(world: World) -> None:
    assert world.batch(world.process(), 20, 30).snapshot() == world.straight(30)


def test_a_damaged_state_is_skipped_for_an_older_one(world: World) -> None:
    process = world.process()
    world.batch(process, 0, 10)
    world.batch(process, 10, 20)
    damaged = list(world.local_path.rglob("20-*"))
    assert len(damaged) == 1
    for path in damaged:
        path.write_bytes(path.read_bytes()[:-1] + b"\xff")
    assert world.batch(world.process(), 20, 25).snapshot() == world.straight(25)


def test_a_log_that_no_longer_reaches_back_stops_the_stage_with_what_was_tried(world: World) -> None:
    class Trimmed(Replay):
        """A log whose first 15 records are gone."""

        def log_start(self, log: TopicPartition) -> int:
            assert log == (world.topic, 0)
            return 15

    process = world.process()
    process._replay_log = Trimmed("127.0.0.1:1", frame_bytes_max=FRAME_BYTES_MAX)
    with pytest.raises(
        LogTruncatedError, match=r"partition 0: no state reaches offset 20: tried nowhere at 0"
    ):
        process.begin(TopicPartition(world.topic, 0), 20)


def test_a_store_that_is_away_holds_nothing_up_and_gets_what_it_lacks_later(world: World) -> None:
    class Away(RedisSnapshots):
        """A store that is reached when it is told so."""

        here = False

        def increments(self, partition: PartitionId) -> list[Increment]:
            if not self.here:
                raise StoreError("Redis does not answer")
            return super().increments(partition)

    durable = world.stores.durable
    assert isinstance(durable, RedisSnapshots)
    durable.__class__ = Away
    process = world.process()
    world.batch(process, 0, 10)
    world.batch(process, 10, 15)
    assert world.uploads.wait_until_saved(10)
    assert world.uploads.saved(PartitionId(world.stage.name, 0)) is None
    Away.here = True
    world.now_s += 2
    world.batch(process, 15, 20)
    assert world.durable() == [15]


def test_a_snapshot_of_another_version_stops_the_stage_with_what_to_do(world: World) -> None:
    world.batch(world.process(), 0, 10)
    as_it_was = world.programs
    app = bettong.Application(as_it_was.plan.application)
    numbers = app.source("numbers", schema=Number, key="name")
    numbers.stateful(add, state=Sum, version=2).sink("sums")
    changed = plan(app)
    world.programs = Programs(
        changed, {stage.name: program(stage, compiled=False) for stage in changed.stages}
    )
    with pytest.raises(
        StateChangedError, match=r"'add' has changed.*version 1.*migrate=.*bettong state reset"
    ):
        world.process().begin(TopicPartition(world.topic, 0), 10)
    world.programs = as_it_was
    assert world.process().begin(TopicPartition(world.topic, 0), 10).next_offset == 10, "it was left as it is"
