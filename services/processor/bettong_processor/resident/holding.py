"""One partition that a loop holds: its worker, its output under way, and its increments on their way to the store.

    fold ─> output ─> broker ─> answered ┐
       └─> cut: an increment, which waits until all output of the records below it is answered ─> saved

At most two increments wait: the next is cut when the one before is saved, and a last one when the partition is let go.
So memory is bounded, and a store that is away only makes the next increment larger.
"""

import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial

from bettong.edges.kafka_log import RECORD_BYTES, LogWriter
from bettong.errors import LogError
from bettong.snapshots.chain import Increment
from bettong.worker.partition import PartitionWorker
from bettong_processor.crashes.guard import Fold
from bettong_processor.resident.dealing import Place
from bettong_processor.resident.measuring import Measure


class Answers:
    """Output of a stretch of records: how much of it is under way."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way = 0

    @property
    def complete(self) -> bool:
        """Whether all that was appended is durable; stays so once nothing more is appended."""
        return self._under_way == 0

    def count(self, change: int) -> None:
        """Safe from several threads."""
        with self._lock:
            self._under_way += change


@dataclass(slots=True)
class Cut:
    """An increment, and the answers that it waits for."""

    increment: Increment
    data: bytes
    answers: Answers
    saving: "Future[None] | None" = None
    not_before_s: float = 0.0


@dataclass(slots=True)
class Buffer:
    """Bytes of output under way, over all partitions of a loop, as LogWriter counts them; and what the log refused."""

    bytes_under_way: int = 0
    failure: LogError | None = None
    changed: threading.Condition = field(default_factory=threading.Condition)

    def enter(self, size: int) -> None:
        """Before a value is appended."""
        with self.changed:
            self.bytes_under_way += size

    def leave(self, size: int, answer: int | LogError) -> None:
        """When it is answered."""
        with self.changed:
            self.bytes_under_way -= size
            if isinstance(answer, LogError):
                self.failure = self.failure or answer
            self.changed.notify_all()

    def await_room(self, bytes_max: int, wait_s: float) -> bool:
        """Whether less than `bytes_max` is under way, or the log has failed; waits for that."""
        with self.changed:
            return bool(
                self.changed.wait_for(
                    lambda: self.bytes_under_way < bytes_max or self.failure is not None, wait_s
                )
            )


class Holding:
    """Used by its loop's thread; answers of the log come from another."""

    def __init__(
        self, place: Place, topic: str, worker: PartitionWorker, *, fold: Fold, due_s: float
    ) -> None:
        self.place = place
        self.topic = topic
        self.worker = worker
        self._fold = fold
        self.due_s = due_s
        self.cuts: list[Cut] = []
        self.saved_offset: int | None = worker.saved.offset or None
        self.leaves_by_s: float | None = None
        self.measure = Measure()
        self.told: dict[str, str | int | float] = {}
        self._answers = Answers()

    @property
    def stage(self) -> str:
        """The stage's name."""
        return self.worker.program.stage.name

    @property
    def partition(self) -> int:
        """The partition's number."""
        return self.worker.assignment.partition

    def fold(self, offset: int, value: bytes, writer: LogWriter, buffer: Buffer) -> None:
        """Folds the next record and appends what it leads to. Raises what the worker and the writer raise."""
        answers = self._answers
        for record in self._fold(offset, value):
            size = len(record.value) + RECORD_BYTES
            buffer.enter(size)
            answers.count(1)
            done = partial(self._answered, answers, buffer, size, self.worker.now_ns)
            writer.append(record.topic, record.partition, record.value, done)

    def cut(self) -> None:
        """Makes an increment of what was folded since the last one; it may be saved when its answers have come."""
        if self.worker.next_offset > self.worker.saved.offset:
            increment, data = self.worker.increment()
            self.cuts.append(Cut(increment, data, self._answers))
            self._answers = Answers()

    @property
    def settled(self) -> bool:
        """Whether all output is durable and every increment saved."""
        return not self.cuts and self._answers.complete

    def _answered(
        self, answers: Answers, buffer: Buffer, size: int, taken_in_ns: int, answer: int | LogError
    ) -> None:
        if not isinstance(answer, LogError):
            answers.count(-1)
            self.measure.note(taken_in_ns, time.time_ns())
        buffer.leave(size, answer)
