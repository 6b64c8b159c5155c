"""One partition that a loop folds: its worker, its output in flight, and its pending snapshots.

    fold ─> output ─> broker ─> acknowledged ┐
       └─> increment: pending until all output of the records below it is acknowledged ─> saved

At most two snapshots are pending: the next begins when the previous one is saved, and a last one when the partition is
revoked. So memory is bounded, and an unreachable store only makes the next increment larger.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial

from bettong.edges.kafka_log import RECORD_BYTES, LogWriter, Record
from bettong.errors import LogError
from bettong.frames.frame import tick_record
from bettong.identifiers import TopicPartition
from bettong.snapshots.chain import Increment
from bettong.worker.partition import PartitionWorker
from bettong_processor.crashes.guard import Fold
from bettong_processor.resident.measuring import Measure
from bettong_processor.saved_snapshots import SavedSnapshot, SnapshotCost
from bettong_processor.stamping import Stamping
from bettong_processor.ticks import TickPacing

# `PartitionWorker.increment`, or a guard around it, which may return None.
Save = Callable[[PartitionWorker], tuple[Increment, bytes] | None]


class OutstandingOutput:
    """Counts output records that the broker has not acknowledged, for a range of input records."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.count = 0

    @property
    def complete(self) -> bool:
        """Whether all appended output is durable; stays true if nothing more is appended."""
        return self.count == 0

    def add(self, change: int) -> None:
        """Changes the count. Thread-safe."""
        with self._lock:
            self.count += change


@dataclass(slots=True)
class PendingSnapshot:
    """An increment that is not saved yet, and the output that must be durable first.

    `paused_ms`: how long it took to make.
    """

    increment: Increment
    data: bytes
    output: OutstandingOutput
    paused_ms: float
    saving: "Future[SavedSnapshot] | None" = None
    not_before_s: float = 0.0

    def saved(self, took_ms: float) -> SavedSnapshot:
        """The result, after the store has saved it within `took_ms`."""
        cost = SnapshotCost(time.time(), len(self.data), self.paused_ms + took_ms, self.paused_ms)
        return SavedSnapshot(self.increment.offset, cost)


@dataclass(slots=True)
class OutputBuffer:
    """Bytes of output in flight, over all partitions of a loop, as LogWriter counts them; and the first failure."""

    bytes_in_flight: int = 0
    failure: LogError | None = None
    changed: threading.Condition = field(default_factory=threading.Condition)

    def add(self, size: int) -> None:
        """Adds a value before it is appended."""
        with self.changed:
            self.bytes_in_flight += size

    def remove(self, size: int, answer: int | LogError) -> None:
        """Removes a value once the broker has acknowledged or refused it."""
        with self.changed:
            self.bytes_in_flight -= size
            if isinstance(answer, LogError):
                self.failure = self.failure or answer
            self.changed.notify_all()

    def has_room(self, bytes_max: int) -> bool:
        """Whether less than `bytes_max` is in flight, or the log has failed. Called for each record: takes no lock."""
        return self.bytes_in_flight < bytes_max or self.failure is not None

    def await_room(self, bytes_max: int, wait_s: float) -> bool:
        """As `has_room`, after waiting for room for at most `wait_s`."""
        with self.changed:
            return bool(self.changed.wait_for(lambda: self.has_room(bytes_max), wait_s))


class ActivePartition:
    """Used by its loop's thread; acknowledgements arrive in another.

    `due_s`: when its next snapshot is due; `revoke_by_s`: the deadline of its revocation, None while it is kept.
    `held_s`: how long its loop has waited for room for output, after records of this partition (back-pressure).
    `pause_s`: how long its snapshots pause the folding: the shorter of the last two, for one alone may be slow by
    chance, and the first one of a task is.
    """

    def __init__(
        self,
        log: TopicPartition,
        worker: PartitionWorker,
        *,
        fold: Fold,
        save: Save,
        due_s: float,
        stamping: Stamping | None = None,
    ) -> None:
        self.id = worker.id
        self.log = log
        self.worker = worker
        self._fold = fold
        self._save = save
        self._stamping = stamping or Stamping()
        self.due_s = due_s
        self.pending: list[PendingSnapshot] = []
        self.saved = SavedSnapshot(worker.saved.offset) if worker.saved.offset else None
        self.save_fault = ""
        self.held_s = 0.0
        self.pause_s = self._last_pause_s = 0.0
        self.revoke_by_s: float | None = None
        self.measure = Measure()
        self.published: dict[str, str | int | float] = {}
        self._is_idle = False
        self._ticks = TickPacing()
        self._output = OutstandingOutput()

    def fold_record(self, folded: Record, writer: LogWriter, buffer: OutputBuffer) -> None:
        """Folds the next record and appends its output. Raises the errors of worker and writer."""
        self._is_idle = False
        output = self._output
        records, times, traceparent = self._stamping.fold(self.worker, self._fold, folded)
        for record in records:
            size = len(record.value) + RECORD_BYTES
            buffer.add(size)
            output.add(1)
            done = partial(self._acknowledged, output, buffer, size, self.worker.now_ns)
            to = TopicPartition(record.topic, record.partition)
            writer.append(to, record.value, done, times=times, traceparent=traceparent)

    def is_due(self, log_ns: int) -> bool:
        """Whether something is due by the log clock before `log_ns`."""
        due_ns = self.worker.due_ns
        return due_ns is not None and due_ns <= log_ns

    def tick_if_due(self, log_ns: int, writer: LogWriter, buffer: OutputBuffer, now_s: float) -> None:
        """Appends a TICK to the partition's own log if something is due and no record was folded since the last call.

        `log_ns`: the TICK's time. A TICK is not output: no snapshot waits for it. Raises the errors of the writer.
        """
        due_ns, was_idle = self.worker.due_ns, self._is_idle
        self._is_idle = True
        if due_ns is None or due_ns > log_ns or not was_idle:
            return
        if self._ticks.allows(self.worker.next_offset, now_s):
            value = tick_record(self.id.stage, log_ns)
            size = len(value) + RECORD_BYTES
            buffer.add(size)
            self._ticks.begin(now_s)
            writer.append(self.log, value, partial(self._ticked, buffer, size))

    def _ticked(self, buffer: OutputBuffer, size: int, answer: int | LogError) -> None:
        self._ticks.finish(answer)
        buffer.remove(size, answer)

    @property
    def unacknowledged(self) -> int:
        """The number of output frames that the broker has not acknowledged."""
        return self._output.count + sum(each.output.count for each in self.pending)

    def begin_snapshot(self) -> None:
        """Makes an increment of the changes since the last one; it may be saved once its output is durable.

        Makes none if that would kill this worker: the next increment has these changes, too.
        """
        if self.worker.next_offset <= self.worker.saved.offset:
            return
        begun_s = time.perf_counter()
        saved = self._save(self.worker)
        paused_s = time.perf_counter() - begun_s
        self.pause_s, self._last_pause_s = min(paused_s, self._last_pause_s), paused_s
        if saved:
            self.pending.append(PendingSnapshot(*saved, self._output, paused_s * 1e3))
            self._output = OutstandingOutput()

    @property
    def complete(self) -> bool:
        """Whether all output is durable and every snapshot saved."""
        return not self.pending and self._output.complete

    def _acknowledged(
        self,
        output: OutstandingOutput,
        buffer: OutputBuffer,
        size: int,
        taken_in_ns: int,
        answer: int | LogError,
    ) -> None:
        if not isinstance(answer, LogError):
            output.add(-1)
            self.measure.note(taken_in_ns, time.time_ns())
        buffer.remove(size, answer)
