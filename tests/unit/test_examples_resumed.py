"""Every example, crashed and resumed at three random points with 1, 2 and 3 executors: results as if undisturbed.

The partition workers, snapshots, recovery and numbering are the real ones, and the sender's splitting too; Spark's part
(which executor gets which task, which batch is tried again) is played by a seed, which a failure names.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
import structlog

from bettong.application.nodes.source import Source
from bettong.application.plan import Plan, plan
from bettong.delivery import DeliveryTable, Verdict
from bettong.edges.application_file import load
from bettong.edges.directory_snapshots import DirectorySnapshots
from bettong.edges.kafka_log import Record
from bettong.errors import StoreError
from bettong.frames.frame import FrameKind, decode
from bettong.identifiers import PartitionId, SequenceNumber, TopicPartition
from bettong.ingest.session import Session
from bettong.topics import stage_topic
from bettong.worker.stage_program import program
from bettong_processor.micro_batch.partitions import Partitions
from bettong_processor.micro_batch.replay import Replay
from bettong_processor.micro_batch.uploads import Stores, Uploads, upload
from bettong_processor.programs import Programs
from bettong_processor.restoring import Restoring, WorkerLimits
from bettong_receiver.formats import formats
from tests.samples.example_feeds import (
    Feed,
    letters,
    lines,
    market,
    numbers,
    readings,
    session,
    temperatures,
    trades,
    votes,
)
from tests.simulation.crash_guards import guard

ROOT = Path(__file__).resolve().parents[2]
# A state that is not brought up to its offset, one whose deliveries are forgotten, and a half-folded one that is found
# again are each found by any two of them.
SEEDS = range(20_261_121, 20_261_125)
PARTITIONS = 3
FRAME_BYTES_MAX = 2**20
CRASHES = 3
SILENT = structlog.wrap_logger(structlog.ReturnLogger(), processors=[])


@dataclass(frozen=True)
class Case:
    """An application and its input. `key`: of the results behind a `key_by`, whose order is that of each key only."""

    file: str
    feed: Callable[[dict[str, Source]], Feed]
    compiled: bool = False
    key: str | None = None


CASES = [
    Case("examples/word_count.py", lines, key="word"),
    Case("examples/market_spread/risk_check.py", market),
    Case("examples/market_spread/risk_check.py", market, compiled=True),
    Case("examples/turnover.py", trades),
    Case("examples/running_totals.py", votes, compiled=True),
    Case("examples/celsius.py", temperatures, compiled=True),
    Case("examples/classifier.py", readings),
    Case("tests/faults/passthrough.py:app", letters),
    Case("tests/e2e/poison.py", numbers),
]


@lru_cache(maxsize=8)
def programs(case: Case) -> Programs:
    planned = plan(load(str(ROOT / case.file)))
    stages = {stage.name: program(stage, compiled=case.compiled) for stage in planned.stages}
    return Programs(planned, stages)


class Log(Replay):
    """The whole log, in memory."""

    def __init__(self) -> None:
        super().__init__("nowhere:1", frame_bytes_max=FRAME_BYTES_MAX)
        self.values: defaultdict[TopicPartition, list[bytes]] = defaultdict(list)

    def log_start(self, log: TopicPartition) -> int:
        del log
        return 0

    def records(self, log: TopicPartition, *, first: int, until: int) -> Iterator[Record]:
        values = self.values[log]
        return (Record(*log, offset, values[offset]) for offset in range(first, until))


class Sometimes(Uploads):
    """Uploads at once, or not at all: a thread would make another course of it each time."""

    def __init__(self, stores: Stores, chance: random.Random) -> None:
        super().__init__(stores, interval_s=0, clock=lambda: 0.0, log=SILENT)
        self._chance = chance

    def offer(self, partition: PartitionId, offset: int) -> None:
        if self._chance.random() < 0.4:
            try:
                upload(self._stores, partition, offset)
            except StoreError:
                pytest.fail("a folder that is there")


@dataclass
class Cluster:
    """Executors on machines of their own, over one log and one store."""

    case: Case
    folder: Path
    executors: int
    chance: random.Random
    log: Log = field(default_factory=Log)
    done: defaultdict[TopicPartition, int] = field(default_factory=lambda: defaultdict(int))
    crashes: int = 0

    def __post_init__(self) -> None:
        self.programs = programs(self.case)
        self.durable = DirectorySnapshots(self.folder / "durable")
        self.stage_topics = [stage_topic(self.plan.application, each.name) for each in self.plan.stages]
        self.processes = [self.process(number) for number in range(self.executors)]

    @property
    def plan(self) -> Plan:
        return self.programs.plan

    def process(self, number: int) -> Partitions:
        stores = Stores(local=DirectorySnapshots(self.folder / f"local-{number}"), durable=self.durable)
        return Partitions(
            Restoring(self.programs, WorkerLimits(PARTITIONS, FRAME_BYTES_MAX), SILENT),
            stores=stores,
            uploads=Sometimes(stores, self.chance),
            replay_log=self.log,
            guard=guard(self.folder / f"local-{number}"),
            log=SILENT,
        )

    def batch(self, *, crash: bool) -> bool:
        """Folds what is new, or a part of it; False when nothing is. A crash comes in the middle of some task."""
        ends = {
            partition: len(values)
            for partition, values in self.log.values.items()
            if partition[0] in self.stage_topics
        }
        tasks = [
            (
                partition,
                self.done[partition],
                self.done[partition] + self.chance.randint(1, end - self.done[partition]),
            )
            for partition, end in sorted(ends.items())
            if end > self.done[partition]
        ]
        self.chance.shuffle(tasks)
        left = list(tasks)
        if crash and tasks:
            self.crashes += 1
            completed = self.chance.randrange(len(tasks))
            for task in tasks[:completed]:
                self.task(*task)
            partition, first, until = tasks[completed]
            victim = self.task(partition, first, self.chance.randrange(first, until), broken=True)
            if self.chance.random() < 0.5:
                self.crash([victim])  # Spark gives the task to another, the others go on
                left = tasks[completed:]
            else:
                self.crash(range(self.executors))  # the driver too: the whole batch is done again
        for task in left:
            self.task(*task)
        for partition, _, until in tasks:
            self.done[partition] = until
        return bool(tasks)

    def task(self, partition: TopicPartition, first: int, until: int, *, broken: bool = False) -> int:
        """One task, by any executor; a broken one ends without a word. Returns whose it was."""
        number = self.chance.randrange(self.executors)
        worker = self.processes[number].begin(partition, first)
        for offset in range(first, until):
            for record in worker.fold(offset, self.log.values[partition][offset]):
                self.log.values[TopicPartition(record.topic, record.partition)].append(record.value)
        if not broken:
            self.processes[number].finish(worker)
        return number

    def crash(self, victims: Iterable[int]) -> None:
        for number in victims:
            if self.chance.random() < 0.5:
                DirectorySnapshots(self.folder / f"local-{number}").clear()  # with its machine
            self.processes[number] = self.process(number)
        if self.chance.random() < 0.2:
            self.durable.clear()

    def results(self) -> dict[tuple[str, int], list[bytes]]:
        """What a receiver delivers: each sink's messages, partition by partition."""
        found: dict[tuple[str, int], list[bytes]] = {}
        for sink, each in formats(self.plan).items():
            for partition in range(PARTITIONS):
                table = DeliveryTable()
                messages: list[bytes] = []
                for value in self.log.values[TopicPartition(each.topic, partition)]:
                    frame = decode(value)
                    if frame.kind is FrameKind.OPEN:
                        table.open(frame.origin, acknowledged=frame.previous, now_ns=frame.ingest_ns)
                    elif (
                        table.take(
                            frame.origin,
                            sequence=frame.sequence,
                            previous=frame.previous,
                            now_ns=frame.ingest_ns,
                        )
                        is Verdict.TAKE
                    ):
                        messages += each.messages(frame)
                found[sink, partition] = messages
        return found


def run(case: Case, folder: Path, *, executors: int, seed: int, crashes: int) -> Cluster:
    """Feeds the case's input in pieces, a batch behind each, and folds to the end."""
    chance = random.Random(seed)
    cluster = Cluster(case, folder, executors, chance)
    sources = {source.name: source for source in cluster.plan.sources}
    feed = case.feed(sources)
    sessions = {name: opened(cluster, source) for name, source in sources.items()}
    pieces = 20
    points = set(chance.sample(range(2, pieces), crashes))
    sequence = 0
    for piece in range(pieces):
        for name, frame in feed[len(feed) * piece // pieces : len(feed) * (piece + 1) // pieces]:
            sequence += 1
            frame.sequence = sequence
            for each in sessions[name].take(frame, 0, sequence).appends:
                cluster.log.values[TopicPartition(each.topic, each.partition)].append(each.value)
        cluster.batch(crash=piece in points)
    while cluster.batch(crash=False):
        pass
    assert cluster.crashes == crashes
    return cluster


def opened(cluster: Cluster, source: Source) -> Session:
    """A client's, opened."""
    one = session(cluster.plan, source, partitions=PARTITIONS, frame_bytes_max=FRAME_BYTES_MAX)
    for each in one.open(0, 1, SequenceNumber(0)).appends:
        cluster.log.values[TopicPartition(each.topic, each.partition)].append(each.value)
    return one


def comparable(case: Case, results: dict[tuple[str, int], list[bytes]]) -> Any:
    """What must be equal: all of it, or the messages of each key in order."""
    if case.key is None:
        return results
    found: defaultdict[tuple[tuple[str, int], Any], list[bytes]] = defaultdict(list)
    for partition, messages in results.items():
        for message in messages:
            found[partition, json.loads(message).get(case.key)].append(message)
    return found


@lru_cache(maxsize=1)
def undisturbed(case: Case, folder: Path) -> Any:
    """What is comparable of a run in which nothing crashes."""
    straight = run(case, folder / f"{CASES.index(case)}", executors=1, seed=0, crashes=0).results()
    assert sum(map(len, straight.values())) > 30
    return comparable(case, straight)


@pytest.fixture(scope="module")
def straight_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("straight")


@pytest.mark.parametrize("executors", [1, 2, 3])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{Path(case.file).stem}-{case.compiled}")
def test_crashed_and_resumed_at_three_random_points_it_gives_the_same_results(
    case: Case, executors: int, tmp_path: Path, straight_folder: Path
) -> None:
    straight = undisturbed(case, straight_folder)
    for seed in SEEDS:
        crashed = run(case, tmp_path / f"{seed}", executors=executors, seed=seed, crashes=CRASHES)
        assert comparable(case, crashed.results()) == straight, f"seed {seed}"
