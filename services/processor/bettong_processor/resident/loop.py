"""The loop of one slot: reads what its partitions' logs deliver, folds each record at once, appends its output.

    orders ─> take: restore beside the loop, then read on from there
              let go: read no more, last increment, output durable and saved ─> others may take it
    poll ─> fold ─> append          a frame that comes alone goes out alone; under load the log's client fills batches
    every interval ─> cut ─> save   beside the loop

Output under way is bounded: beyond that nothing is read, until the broker has caught up.
"""

import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from bettong.edges.kafka_log import LogReader, LogWriter, Record
from bettong.errors import LogUnavailableError, StoreError
from bettong.logs import Logger
from bettong.snapshots.store import SnapshotStore
from bettong.topics import stage_topic
from bettong.worker.partition import PartitionWorker
from bettong_processor.crashes.guard import Fold, Guard
from bettong_processor.resident.attendance import Attendance, Orders
from bettong_processor.resident.dealing import Place, stage_of
from bettong_processor.resident.holding import Buffer, Cut, Holding
from bettong_processor.restoring import Restoring
from bettong_processor.telling import PartitionFigures

# Beyond this much output under way nothing is read. Some hundred ms of what a broker takes from one client.
OUTPUT_BYTES_MAX = 32 * 1024 * 1024
# Records that one poll hands over, and for how long it waits for the first one; while a partition comes or goes, less.
_RECORDS_MAX = 256
_POLL_MS = 20
_MOVING_POLL_MS = 1
# While records are folded, orders and increments are looked at this often.
_LOOK_S = 0.01
# A partition that is let go waits this long for its last increment: with an older one its next owner folds more again.
_LEAVE_S_MAX = 0.5
# A store that failed is left alone for this long.
_PAUSE_S = 1.0
# Figures that have not changed are told again this often: a Redis that was wiped must not make idle partitions look as
# if nothing of them had ever been folded.
_TELL_AGAIN_S = 5.0
# How long a loop that ends waits for what is under way.
_DRAIN_S_MAX = 15.0


@dataclass(frozen=True, slots=True)
class Intervals:
    """How often partitions are saved and figures told, in seconds."""

    snapshot_s: float
    live_s: float


class Loop:
    """Folds until it is told to stop, or superseded. Used by one thread, with two of its own beside it."""

    def __init__(
        self,
        restoring: Restoring,
        store: SnapshotStore,
        *,
        attendance: Attendance,
        reader: LogReader,
        writer: LogWriter,
        figures: PartitionFigures,
        guard: Guard,
        intervals: Intervals,
        log: Logger,
        output_bytes_max: int = OUTPUT_BYTES_MAX,
    ) -> None:
        self._restoring = restoring
        self._store = store
        self._attendance = attendance
        self._reader = reader
        self._writer = writer
        self._figures = figures
        self._guard = guard
        self._intervals = intervals
        self._log = log
        self._output_bytes_max = output_bytes_max
        self._buffer = Buffer()
        self._taking: dict[Place, Future[tuple[PartitionWorker, Fold]]] = {}
        self._not_before_s: dict[Place, float] = {}
        self._held: dict[tuple[str, int], Holding] = {}
        self._leaving: dict[Place, Holding] = {}
        self._storing = ThreadPoolExecutor(1, thread_name_prefix="snapshots")
        self._telling = ThreadPoolExecutor(1, thread_name_prefix="figures")
        self._told: Future[None] | None = None
        self._tell_s = 0.0
        self._tell_again_s = 0.0
        self._look_s = 0.0

    def run(self) -> None:
        """Raises what a worker raises (PoisonError, LogTruncatedError ...), LogError, StateChangedError, what ends
        attendance.

        What is folded by then is drained in any case.
        """
        try:
            while not self._done():
                moves = self._leaving or self._taking
                wait_ms = _MOVING_POLL_MS if moves else _POLL_MS
                if self._held:
                    self._fold(self._reader.poll(wait_ms, _RECORDS_MAX))
                else:
                    self._attendance.wait(wait_ms / 1000)
                if moves or time.monotonic() >= self._look_s:
                    self._look()
        finally:
            self._storing.shutdown(wait=False, cancel_futures=True)
            self._telling.shutdown(wait=False, cancel_futures=True)

    def _done(self) -> bool:
        orders = self._attendance.orders
        at_rest = not self._held and not self._leaving and not self._taking
        return orders.superseded or (orders.stop and at_rest)

    def _fold(self, records: list[Record]) -> None:
        for record in records:
            holding = self._held.get((record.topic, record.partition))
            if holding is None or record.offset != holding.worker.next_offset:
                continue  # let go since the poll, or taken again
            holding.fold(record.offset, record.value, self._writer, self._buffer)
            while not self._buffer.await_room(self._output_bytes_max, _LOOK_S):
                self._look()
                if self._done():
                    return  # the broker may be away for long
            if time.monotonic() >= self._look_s:
                self._look()

    def _look(self) -> None:
        """All that is done beside folding; never waits for anybody."""
        if self._buffer.failure is not None:
            raise self._buffer.failure
        now_s = time.monotonic()
        self._look_s = now_s + _LOOK_S
        orders = self._attendance.orders
        self._drop(orders)
        self._take(orders, now_s)
        self._leave(orders, now_s)
        for holding in (*self._held.values(), *self._leaving.values()):
            self._save(holding, now_s)
        self._tell(now_s)

    def _take(self, orders: Orders, now_s: float) -> None:
        known = (
            {holding.place for holding in self._held.values()} | self._leaving.keys() | self._taking.keys()
        )
        for place in orders.held - known:
            if orders.stop or place not in orders.dealt:
                self._attendance.let_go(place)
            elif now_s >= self._not_before_s.get(place, 0.0):
                self._taking[place] = self._storing.submit(self._restored, place, now_s)
        for place, restored in list(self._taking.items()):
            if restored.done():
                del self._taking[place]
                try:
                    self._read(place, *restored.result(), now_s=now_s)
                except (StoreError, LogUnavailableError) as error:
                    self._log.warning("a state cannot be restored yet", place=place, fault=str(error))
                    self._not_before_s[place] = now_s + _PAUSE_S

    def _restored(self, place: Place, granted_s: float) -> tuple[PartitionWorker, Fold]:
        """What was left out of the log before this slot held the place is known before anything is folded."""
        worker = self._restoring.newest(self._store, *stage_of(place))
        self._guard.exclusions.refresh(granted_s)
        return worker, self._guard.of(worker, lambda: place in self._attendance.orders.held)

    def _read(self, place: Place, worker: PartitionWorker, fold: Fold, now_s: float) -> None:
        if place not in self._attendance.orders.held:
            return
        stage, partition = stage_of(place)
        topic = stage_topic(self._restoring.application, stage)
        # Partitions are saved one after the other, not all at a time.
        due_s = now_s + self._intervals.snapshot_s * ((len(self._held) % 16) + 1) / 16
        self._reader.add(topic, partition, worker.next_offset)
        self._held[topic, partition] = Holding(place, topic, worker, fold=fold, due_s=due_s)
        self._log.debug("takes a partition", place=place, offset=worker.next_offset)

    def _drop(self, orders: Orders) -> None:
        """Another task holds these: not a word more."""
        for holding in [each for each in self._held.values() if each.place not in orders.held]:
            self._stop_reading(holding)
            self._log.warning("a partition is another task's now", place=holding.place)
        for place in [each for each in self._leaving if each not in orders.held]:
            del self._leaving[place]

    def _leave(self, orders: Orders, now_s: float) -> None:
        for holding in [
            each for each in self._held.values() if orders.stop or each.place not in orders.dealt
        ]:
            self._stop_reading(holding)
            holding.cut()
            holding.leaves_by_s = now_s + (_DRAIN_S_MAX if orders.stop else _LEAVE_S_MAX)
            self._leaving[holding.place] = holding
        for place, holding in list(self._leaving.items()):
            late = holding.leaves_by_s is not None and now_s >= holding.leaves_by_s
            if holding.settled or late:
                del self._leaving[place]
                self._attendance.let_go(place)
                self._log.debug("lets a partition go", place=place, saved=holding.settled)

    def _stop_reading(self, holding: Holding) -> None:
        del self._held[holding.topic, holding.partition]
        self._reader.remove(holding.topic, holding.partition)

    def _save(self, holding: Holding, now_s: float) -> None:
        if holding.leaves_by_s is None and not holding.cuts and now_s >= holding.due_s:
            holding.due_s = now_s + self._intervals.snapshot_s
            holding.cut()
        if not holding.cuts:
            return
        cut = holding.cuts[0]
        if cut.saving is None:
            if cut.answers.complete and now_s >= cut.not_before_s:
                cut.saving = self._storing.submit(self._saved, holding, cut)
        elif cut.saving.done():
            try:
                cut.saving.result()
                holding.cuts.pop(0)
                holding.saved_offset = cut.increment.offset
            except StoreError as error:
                self._log.warning(
                    "snapshot not saved; the state is safe in the log, recovery would take longer",
                    place=holding.place,
                    fault=str(error),
                )
                cut.saving, cut.not_before_s = None, now_s + _PAUSE_S

    def _saved(self, holding: Holding, cut: Cut) -> None:
        self._store.save(holding.stage, holding.partition, cut.increment, cut.data)

    def _tell(self, now_s: float) -> None:
        if now_s < self._tell_s or (self._told is not None and not self._told.done()):
            return
        self._tell_s = now_s + self._intervals.live_s
        again = now_s >= self._tell_again_s
        if again:
            self._tell_again_s = now_s + _TELL_AGAIN_S
        changed = []
        for holding in self._held.values():
            worker = holding.worker
            lag = self._reader.lag(holding.topic, holding.partition)
            figures = self._figures.of(worker, holding.saved_offset)
            figures |= holding.measure.figures(worker.counters.messages, lag, now_s)
            if again or figures != holding.told:
                holding.told = figures
                changed.append((holding.stage, holding.partition, figures))
        if changed:
            self._told = self._telling.submit(self._write, changed)

    def _write(self, changed: list[tuple[str, int, dict[str, str | int | float]]]) -> None:
        for stage, partition, figures in changed:
            self._figures.write(stage, partition, figures)
