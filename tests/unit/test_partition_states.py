"""Partitions of a large state: any path from process to process, through damage and loss, leads to the same state.

Several processes take turns in folding batches of one log, each with a state of its own age in memory; increments
are damaged, pushed out and lost, batches are tried again by zombies. Whatever happens, who folds a batch gives what
one fold of the whole log gives.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from unittest.mock import patch

import pytest
import structlog
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from bettong.edges.directory_snapshots import DirectorySnapshots
from bettong.edges.kafka_log import Record
from bettong.identifiers import PartitionId, TopicPartition
from bettong.worker.output.framing import OutputRecord
from bettong.worker.partition import Assignment, PartitionWorker
from bettong.worker.stage_program import program
from bettong_processor.micro_batch.partitions import Partitions
from bettong_processor.micro_batch.replay import Replay
from bettong_processor.micro_batch.uploads import Stores, Uploads, upload
from bettong_processor.programs import Programs
from bettong_processor.restoring import Restoring, WorkerLimits
from tests.samples.worker import FRAME_BYTES_MAX, Limit, Reading, data, meters
from tests.simulation.crash_guards import guard

# An increment of a state this small has a part of it only.
KEYS = 3
METERS = [f"m{number}" for number in range(40)]
TOPIC = "meters.stage.readings"
SILENT = structlog.wrap_logger(structlog.ReturnLogger(), processors=[])


# A record takes the log clock on by a microsecond: some meters have another message in time, others not.
TTL = timedelta(microseconds=25)


@lru_cache(maxsize=4)
def programs(*, compiled: bool, ttl: timedelta | None = None) -> Programs:
    plan = meters(ttl)
    return Programs(plan, {stage.name: program(stage, compiled=compiled) for stage in plan.stages})


@lru_cache(maxsize=4096)
def log_record(number: int) -> bytes:
    """The log's record at an offset: few keys, more of them with time."""
    chance = random.Random(number)
    known = METERS[: 2 + number // 2]
    if chance.random() < 0.1:
        limits = [Limit(chance.choice(known), 3)]
        return data("limits/x", number + 1, limits, previous=0, ingest_ns=1000 * number)
    readings = [Reading(chance.choice(known), chance.randint(-1, 9)) for _ in range(chance.randint(1, 3))]
    return data("readings/x", number + 1, readings, previous=0, ingest_ns=1000 * number)


class Log(Replay):
    """The whole log, in memory."""

    def __init__(self) -> None:
        super().__init__("nowhere:1", frame_bytes_max=FRAME_BYTES_MAX)

    def log_start(self, log: TopicPartition) -> int:
        assert log == (TOPIC, 0)
        return 0

    def records(self, log: TopicPartition, *, first: int, until: int) -> Iterator[Record]:
        assert log == (TOPIC, 0)
        return (Record(*log, offset, log_record(offset)) for offset in range(first, until))


class Later(Uploads):
    """Uploads when a test calls for it, so that the same choices lead to the same course."""

    def __init__(self, stores: Stores) -> None:
        super().__init__(stores, interval_s=0, clock=lambda: 0.0, log=SILENT)
        self.due: tuple[PartitionId, int] | None = None

    def offer(self, partition: PartitionId, offset: int) -> None:
        self.due = (partition, offset)

    def wait_until_saved(self, timeout_s: float = 0) -> bool:
        del timeout_s
        if self.due is not None:
            upload(self._stores, *self.due)
            self.due = None
        return True


@dataclass
class World:
    """The stores, the processes, and an uninterrupted fold."""

    programs: Programs
    folder: Path
    chance: random.Random
    end: int = 0
    batches: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.stores = Stores(
            local=DirectorySnapshots(self.folder / "local"),
            durable=DirectorySnapshots(self.folder / "durable"),
        )
        self.straight = PartitionWorker(
            self.programs.stages["readings"], Assignment("meters", 0, 1, FRAME_BYTES_MAX)
        )
        self.outputs: dict[int, list[OutputRecord]] = {}
        self.states = {0: self.straight.snapshot()}
        self.uploads: list[Later] = []
        self.processes = [self.process() for _ in range(3)]

    def process(self) -> Partitions:
        uploads = Later(self.stores)
        self.uploads.append(uploads)
        return Partitions(
            Restoring(self.programs, WorkerLimits(1, FRAME_BYTES_MAX), SILENT),
            stores=self.stores,
            uploads=uploads,
            replay_log=Log(),
            guard=guard(self.folder / "local"),
            log=SILENT,
        )

    def fold(self, process: Partitions, first: int, until: int) -> None:
        worker = process.begin(TopicPartition(TOPIC, 0), first)
        assert worker.snapshot() == self.states[first]
        for offset in range(first, until):
            assert worker.fold(offset, log_record(offset)) == self.outputs[offset]
        process.finish(worker)

    def reach(self, until: int) -> None:
        for offset in range(self.straight.next_offset, until):
            self.outputs[offset] = self.straight.fold(offset, log_record(offset))
            self.states[offset + 1] = self.straight.snapshot()

    def settle(self) -> None:
        for each in self.uploads:
            each.wait_until_saved()


class Batches(RuleBasedStateMachine):
    """What can happen between and within batches."""

    world: World

    @initialize(compiled=st.booleans(), ttl=st.sampled_from([None, TTL]), seed=st.integers(0, 2**16))
    def start(self, compiled: bool, ttl: timedelta | None, seed: int) -> None:  # noqa: FBT001 - hypothesis fills it in
        self.patches = [
            patch("bettong.worker.state.objects.INCREMENT_KEYS", KEYS),
            patch("bettong.worker.state.records.INCREMENT_KEYS", KEYS),
            patch("bettong.worker.state.objects.WHOLE_FROM", 1),
            patch("bettong.worker.state.records.WHOLE_FROM", 1),
        ]
        for each in self.patches:
            each.start()
        self.folder = tempfile.TemporaryDirectory()
        self.world = World(programs(compiled=compiled, ttl=ttl), Path(self.folder.name), random.Random(seed))

    @rule(which=st.integers(0, 2), count=st.integers(1, 12))
    def a_batch_goes_to_some_process(self, which: int, count: int) -> None:
        world = self.world
        first, world.end = world.end, world.end + count
        world.batches.append((first, world.end))
        world.reach(world.end)
        world.fold(world.processes[which], first, world.end)

    @precondition(lambda self: self.world.batches)
    @rule(which=st.integers(0, 2), back=st.integers(1, 3))
    def a_zombie_folds_an_old_batch_again(self, which: int, back: int) -> None:
        self.world.fold(self.world.processes[which], *self.world.batches[-min(back, len(self.world.batches))])

    @precondition(lambda self: self.world.batches)
    @rule(which=st.integers(0, 2))
    def a_task_fails_half_way(self, which: int) -> None:
        first, until = self.world.batches[-1]
        worker = self.world.processes[which].begin(TopicPartition(TOPIC, 0), first)
        for offset in range(first, (first + until) // 2):
            worker.fold(offset, log_record(offset))

    @rule(which=st.integers(0, 2))
    def a_process_is_killed(self, which: int) -> None:
        self.world.processes[which] = self.world.process()

    @rule()
    def uploads_are_done(self) -> None:
        self.world.settle()

    @rule(which=st.sampled_from(["local", "durable"]))
    def a_store_loses_its_data(self, which: str) -> None:
        self.world.settle()
        (self.world.stores.local if which == "local" else self.world.stores.durable).clear()

    @rule()
    def an_increment_is_damaged(self) -> None:
        self.world.settle()
        files = [each for each in self.world.folder.rglob("*-*-*") if each.is_file()]
        if files:
            file = self.world.chance.choice(sorted(files))
            content = bytearray(file.read_bytes())
            content[self.world.chance.randrange(len(content))] ^= 1
            file.write_bytes(content)

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.settle()
            self.world.fold(self.world.process(), self.world.end, self.world.end)
            self.folder.cleanup()
            for each in self.patches:
                each.stop()


TestBatches = Batches.TestCase
TestBatches.settings = settings(max_examples=75, stateful_step_count=40, deadline=None)


@pytest.mark.parametrize("compiled", [False, True])
def test_processes_that_take_turns_bring_each_round_to_its_end(tmp_path: Path, *, compiled: bool) -> None:
    """So that the number of increments is bounded, and with it what a recovery reads."""
    with (
        patch("bettong.worker.state.objects.INCREMENT_KEYS", KEYS),
        patch("bettong.worker.state.records.INCREMENT_KEYS", KEYS),
    ):
        world = World(programs(compiled=compiled), tmp_path, random.Random(1))
        most = 0
        for first in range(300):
            world.reach(first + 1)
            world.fold(world.processes[first % 2], first, first + 1)
            most = max(most, len(world.stores.local.increments(PartitionId("readings", 0))))
    round_max = -(-len(METERS) // KEYS) + 1
    assert len(METERS) // KEYS < most <= 3 * round_max
