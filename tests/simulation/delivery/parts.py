"""What a simulated world is made of: an application, the frames of its clients, logs, workers and receivers.

in --first (counts per key)--> out
"""

from __future__ import annotations

import random
from collections import defaultdict, deque
from dataclasses import dataclass
from functools import cache

import bettong
from bettong import Application
from bettong.application.plan import plan
from bettong.frames.columns import Columns
from bettong.frames.frame import FrameKind, decode
from bettong.ingest.session import SourceRoute
from bettong.routing import partition_of
from bettong.schema.schema import schema_of
from bettong.topics import dead_letter_topic, sink_topic, stage_topic
from bettong.v1.ingest_pb2 import IngestFrame
from bettong.v1.snapshot_pb2 import Counters
from bettong.worker.output.framing import OutputRecord
from bettong.worker.partition import Assignment, PartitionWorker
from bettong.worker.stage_program import program
from bettong_receiver.positions import PositionKey, encode
from bettong_receiver.positions import decode as decode_position
from bettong_receiver.progress import DeliveryCounts, DeliveryProgress

PARTITIONS = 2
STREAMS = ("in/feed-0", "in/feed-1")
RUNS_MAX = 3  # runs of a worker that may still write; the last one is the present one
_FRAMES_MAX = 4
_FRAME_BYTES_MAX = 64 * 1024


@dataclass(slots=True)
class Sent:
    """A message, with a number of its own: 100 * client + 10 * frame + partition."""

    number: bettong.u32
    key: bettong.u8


@dataclass(slots=True)
class Seen:
    """Its number, and which one of its key it was."""

    number: bettong.u32
    count: bettong.u32


@dataclass(slots=True)
class Count:
    """What is kept of a key."""

    count: int = 0


def see(message: Sent, kept: Count) -> Seen:
    """Counts the messages of a key."""
    kept.count += 1
    return Seen(message.number, kept.count)


def _application() -> Application:
    app = Application("world")
    app.source("in", schema=Sent, key="key").stateful(see, state=Count, name="first").sink("out")
    return app


_PLAN = plan(_application())
_PROGRAM = program(_PLAN.stages[0], compiled=False)
_KEYS = [
    next(key for key in range(64) if partition_of(key, PARTITIONS) == each) for each in range(PARTITIONS)
]
_SEEN = schema_of(Seen)
STAGE, DEAD_LETTERS, RESULTS = (
    stage_topic("world", "in"),
    dead_letter_topic("world"),
    sink_topic("world", "out"),
)
ROUTE = SourceRoute(_PLAN.sources[0], STAGE, DEAD_LETTERS, PARTITIONS, _FRAME_BYTES_MAX)


def _messages(client: int, frame: int) -> list[Sent]:
    """For one partition, for the other, or for both, so that what is sent to a partition has gaps."""
    touched = ((0,), (0, 1), (1,))[(frame + client) % 3]
    return [Sent(100 * client + 10 * frame + index, _KEYS[index]) for index in touched]


def _frame(client: int, frame: int) -> IngestFrame:
    columns = Columns.of_messages(_PLAN.sources[0].schema, _messages(client, frame)).payload()
    return IngestFrame(sequence=3 * frame + 1, sent_ns=1, columns=columns)


@cache
def frames_of(client: int) -> list[IngestFrame]:
    """The input of a client: the same frames, however often they are read."""
    return [_frame(client, number) for number in range(_FRAMES_MAX)]


class Log:
    """Records by topic and partition."""

    def __init__(self) -> None:
        self.records: dict[tuple[str, int], list[bytes]] = defaultdict(list)

    def append(self, topic: str, partition: int, value: bytes) -> int:
        """At the end; returns the offset."""
        records = self.records[topic, partition]
        records.append(value)
        return len(records) - 1

    def kinds(self, partition: tuple[str, int], origin: str) -> list[FrameKind]:
        """What the records of an origin are, at a topic and partition."""
        return [frame.kind for frame in map(decode, self.records[partition]) if frame.origin == origin]


@dataclass(eq=False, slots=True)
class Run:
    """One life of a worker: its state, and results on their way. A lost one fails it; it writes no more then."""

    state: PartitionWorker
    pending: deque[OutputRecord]
    failed: bool = False


class Worker:
    """The runs of one partition of the stage: the present one, and others that are thought dead."""

    def __init__(self, partition: int, log: Log) -> None:
        self._partition = partition
        self._log = log
        self._saved: bytes | None = None
        self._runs: deque[Run] = deque(maxlen=RUNS_MAX)
        self.crash()

    @property
    def counters(self) -> Counters:
        """Of the present run."""
        return self._runs[-1].state.counters

    @property
    def origins(self) -> set[str]:
        """Those that the present run remembers."""
        return set(self._runs[-1].state._delivery.highest)

    def ended(self) -> set[str]:
        """The origins that have ended by what the log says: after their END came late repetitions at most."""
        newest: dict[str, int] = defaultdict(int)
        ended: dict[str, int] = {}
        for frame in map(decode, self._log.records[STAGE, self._partition]):
            if frame.kind is FrameKind.DATA:
                newest[frame.origin] = max(newest[frame.origin], frame.sequence)
            if frame.kind is FrameKind.END and frame.sequence >= newest[frame.origin]:
                ended[frame.origin] = frame.sequence
            elif frame.kind is FrameKind.OPEN or frame.sequence > ended.get(frame.origin, 0):
                ended.pop(frame.origin, None)
        return set(ended)

    def newest_ns(self) -> int:
        """The latest time in the log."""
        return max((decode(each).ingest_ns for each in self._log.records[STAGE, self._partition]), default=0)

    def hear(self, value: bytes) -> None:
        """One more record is in the log, and folded."""
        self._log.append(STAGE, self._partition, value)
        self._fold(self._runs[-1], 1)

    def crash(self) -> None:
        """Another run begins at the last snapshot."""
        state = PartitionWorker(_PROGRAM, Assignment("world", self._partition, PARTITIONS, _FRAME_BYTES_MAX))
        if self._saved is not None:
            state.restore(self._saved)
        self._runs.append(Run(state, deque()))

    def fold(self, chance: random.Random, count: int) -> None:
        """A run folds more of the log."""
        run = self._runs[-1] if chance.random() < 0.8 else chance.choice(self._runs)
        if not run.failed:
            self._fold(run, count)

    def land(self, chance: random.Random, count: int) -> int:
        """Results of a run are appended; returns how many were lost (then the run has failed)."""
        run = self._runs[-1] if chance.random() < 0.7 else chance.choice(self._runs)
        lost = 0
        for _ in range(min(count, len(run.pending))):
            record = run.pending.popleft()
            if chance.random() < 0.1:
                lost, run.failed = lost + 1, True
            else:
                self._log.append(record.topic, record.partition, record.value)
                if chance.random() < 0.04:
                    self._log.append(record.topic, record.partition, record.value)
        if run.failed and run is self._runs[-1]:
            self.crash()
        return lost

    def save(self) -> bool:
        """Takes a snapshot, if all results of what was folded are durable."""
        run = self._runs[-1]
        if self._is_durable(run):
            self._saved = run.state.snapshot()
            return True
        return False

    def _is_durable(self, run: Run) -> bool:
        return not run.pending and not run.failed

    def finish(self) -> None:
        """What is on its way arrives; a last run folds everything."""
        self.crash()
        for run in list(self._runs):
            if run is self._runs[-1]:
                self._fold(run, len(self._log.records[STAGE, self._partition]))
            for record in run.pending:
                self._log.append(record.topic, record.partition, record.value)
            run.pending.clear()

    def _fold(self, run: Run, count: int) -> None:
        records = self._log.records[STAGE, self._partition]
        first = run.state.next_offset
        for offset in range(first, min(first + count, len(records))):
            run.pending.extend(run.state.fold(offset, records[offset]))


class Receiver:
    """Delivers a partition of the results to a file, and saves how far it is."""

    def __init__(self, partition: int, log: Log) -> None:
        self.file: list[Seen] = []
        self._position_key = PositionKey("world", "out", partition)
        self._records = log.records[RESULTS, partition]
        self._progress = DeliveryProgress()
        self._saved = encode(self._position_key, self._progress, length_bytes=0)

    @property
    def counts(self) -> DeliveryCounts:
        """What became of the results."""
        return self._progress.counts

    def read(self, count: int) -> None:
        """Takes more of the log."""
        first = self._progress.offset
        for offset in range(first, min(first + count, len(self._records))):
            frame = decode(self._records[offset])
            if self._progress.advance(offset, frame):
                assert frame.columns is not None
                found = Columns.of_payload(_SEEN, frame.columns).messages()
                self._progress.count_delivered(len(found))
                self.file.extend(found)

    def save(self) -> None:
        """Stores its progress, and how long the file is."""
        self._saved = encode(self._position_key, self._progress, length_bytes=len(self.file))

    def crash(self) -> None:
        """Goes back to what was saved, and cuts the file there."""
        self._progress, length = decode_position(self._position_key, self._saved)
        del self.file[length:]

    def finish(self) -> None:
        """Takes all."""
        self.read(len(self._records))


def check_results(files: list[list[Seen]], log: Log, due: dict[int, tuple[int, int]]) -> None:
    """Every message once; in order for each client; each key counted without a gap; no dead letters.

    `due`: of each client, how many of its frames count at least, and at most.
    """
    for partition, file in enumerate(files):
        counts = [seen.count for seen in file]
        assert counts == list(range(1, len(file) + 1)), f"partition {partition} counted {counts}"
        assert {seen.number // 100 for seen in file} <= due.keys()
        for client, (least, most) in due.items():
            found = [seen.number for seen in file if seen.number // 100 == client]
            expected, certain = _numbers(client, most, partition), _numbers(client, least, partition)
            assert found == expected[: max(len(found), len(certain))], (
                f"client {client}, partition {partition}: {found}, expected {certain} at least of {expected}"
            )
    dead_letters = [
        value for (topic, _), values in log.records.items() if topic == DEAD_LETTERS for value in values
    ]
    assert not dead_letters


def _numbers(client: int, frames: int, partition: int) -> list[int]:
    """The messages of a client's first frames for a partition."""
    key = _KEYS[partition]
    return [sent.number for frame in range(frames) for sent in _messages(client, frame) if sent.key == key]
