"""The loop of one slot: polls the logs of its partitions, folds each record at once, appends its output.

    desired assignment ─> acquire: restore the state beside the loop, then read on from there
                          revoke: read no more, last snapshot, output durable and saved ─> others may acquire it
    poll ─> fold ─> append           a frame that comes alone goes out alone; under load the log's client fills batches
    every interval ─> snapshot ─> save   beside the loop
    idle, and something due ─> TICK      into the partition's own log, from where it is folded as any record

Output in flight is bounded: beyond that nothing is read, until the broker has caught up.
"""

import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from bettong.clocks import CheckedClock
from bettong.edges.kafka_log import LogReader, LogWriter, Record
from bettong.errors import DeadlyStateError, LogUnavailableError, StoreError
from bettong.identifiers import PartitionId, TopicPartition
from bettong.logs import Logger
from bettong.metrics import HELD
from bettong.queue_metrics import READ_AHEAD, UNACKNOWLEDGED
from bettong.snapshots.store import SnapshotStore
from bettong.topics import stage_topic
from bettong.worker.partition import PartitionWorker
from bettong_processor.crashes.guard import Fold, Guard
from bettong_processor.crashes.states import DEADLY_PAUSE_S, GuardedStates
from bettong_processor.reporting import PartitionMetrics
from bettong_processor.resident.active_partition import ActivePartition, OutputBuffer, PendingSnapshot
from bettong_processor.resident.heartbeat import DesiredAssignment, Heartbeat
from bettong_processor.resident.snapshot_pacing import next_snapshot_s
from bettong_processor.rest import Rest
from bettong_processor.restoring import Restoring
from bettong_processor.saved_snapshots import SavedSnapshot
from bettong_processor.stamping import Stamping

# Back-pressure: with more output in flight nothing is read. A broker accepts this from one client in some hundred ms.
OUTPUT_BYTES_MAX = 32 * 1024 * 1024
# Records that one poll returns, and how long it waits for the first one; shorter while a partition is acquired or
# revoked.
_RECORDS_MAX = 256
_POLL_MS = 20
_MOVING_POLL_MS = 1
# At rest, and for as long nothing may be due by the log clock.
_REST_POLL_MS = 100
# While records are folded, the desired assignment and the snapshots are attended to this often.
_MAINTENANCE_S = 0.01
# A partition that is revoked waits this long for its last snapshot: with an older one its next owner folds more again.
_REVOKE_S_MAX = 0.5
# The pause after a failure of the store.
_PAUSE_S = 1.0
# Unchanged metrics are written again this often: after Redis has lost its data, idle partitions must not look as if
# nothing in them had ever been folded.
_REPEAT_METRICS_S = 5.0
# How long an ending loop waits for output in flight and snapshots.
_DRAIN_S_MAX = 15.0


@dataclass(frozen=True, slots=True)
class Intervals:
    """How often partitions are saved and metrics written, in seconds."""

    snapshot_s: float
    live_s: float


class Loop:
    """Folds until it is stopped or superseded. Used by one thread; has three threads of its own."""

    def __init__(
        self,
        restoring: Restoring,
        store: SnapshotStore,
        *,
        heartbeat: Heartbeat,
        reader: LogReader,
        writer: LogWriter,
        metrics: PartitionMetrics,
        guard: Guard,
        intervals: Intervals,
        clock: CheckedClock,
        log: Logger,
        stamping: Stamping | None = None,
        output_bytes_max: int = OUTPUT_BYTES_MAX,
    ) -> None:
        self._restoring = restoring
        self._store = store
        self._heartbeat = heartbeat
        self._reader = reader
        self._writer = writer
        self._metrics = metrics
        self._guard = guard
        self._states = GuardedStates(guard)
        self._intervals = intervals
        self._clock = clock
        self._log = log
        self._stamping = stamping or Stamping()
        self._output_bytes_max = output_bytes_max
        self._buffer = OutputBuffer()
        self._acquiring: dict[PartitionId, Future[tuple[PartitionWorker, Fold]]] = {}
        self._not_before_s: dict[PartitionId, float] = {}
        self._active: dict[TopicPartition, ActivePartition] = {}
        self._revoking: dict[PartitionId, ActivePartition] = {}
        self._store_thread = ThreadPoolExecutor(1, thread_name_prefix="snapshots")
        self._exclusions_thread = ThreadPoolExecutor(1, thread_name_prefix="exclusions")
        self._metrics_thread = ThreadPoolExecutor(1, thread_name_prefix="metrics")
        self._metrics_written: Future[None] | None = None
        self._metrics_due_s = 0.0
        self._repeat_metrics_due_s = 0.0
        self._maintenance_due_s = 0.0
        self._rest = Rest(time.monotonic())

    def fold_until_stopped(self) -> None:
        """Raises the errors of workers (PoisonError, LogTruncatedError ...), LogError, StateChangedError, and the error
        that ended the heartbeats.

        Output that was appended by then is still flushed, when the writer closes.
        """
        try:
            while not self._is_done():
                moving = self._revoking or self._acquiring
                wait_ms = _MOVING_POLL_MS if moving else self._poll_ms()
                if self._active:
                    self._fold_records(self._reader.poll(wait_ms, _RECORDS_MAX))
                else:
                    self._heartbeat.await_change(wait_ms / 1000)
                if moving or not self._active or time.monotonic() >= self._maintenance_due_s:
                    self._maintain_partitions()
        finally:
            self._store_thread.shutdown(wait=False, cancel_futures=True)
            self._exclusions_thread.shutdown(wait=False, cancel_futures=True)
            self._metrics_thread.shutdown(wait=False, cancel_futures=True)

    def _poll_ms(self) -> int:
        at_rest = self._rest.has_begun(time.monotonic())
        self._heartbeat.rest(at_rest=at_rest)
        return _REST_POLL_MS if at_rest else _POLL_MS

    def _is_done(self) -> bool:
        desired = self._heartbeat.desired
        at_rest = not self._active and not self._revoking and not self._acquiring
        return desired.superseded or (desired.stop and at_rest)

    def _fold_records(self, records: list[Record]) -> None:
        if records:
            self._rest.end(time.monotonic())
        for record in records:
            partition = self._active.get(TopicPartition(record.topic, record.partition))
            if partition is None or record.offset != partition.worker.next_offset:
                continue  # revoked since the poll, or acquired again
            partition.fold_record(record, self._writer, self._buffer)
            if not self._buffer.has_room(self._output_bytes_max) and not self._await_room(partition):
                return  # the broker may be away for long
            if time.monotonic() >= self._maintenance_due_s:
                self._maintain_partitions()

    def _await_room(self, partition: ActivePartition) -> bool:
        """Waits until the broker has acknowledged enough of the output; False if this loop ends first."""
        while not self._is_done():
            begun_s = time.monotonic()
            has_room = self._buffer.await_room(self._output_bytes_max, _MAINTENANCE_S)
            partition.held_s += time.monotonic() - begun_s
            if has_room:
                return True
            self._maintain_partitions()
        return False

    def _maintain_partitions(self) -> None:
        """Does everything besides folding; never blocks."""
        if self._buffer.failure is not None:
            raise self._buffer.failure
        now_s = time.monotonic()
        self._maintenance_due_s = now_s + _MAINTENANCE_S
        desired = self._heartbeat.desired
        self._drop_lost(desired)
        self._acquire_partitions(desired, now_s)
        self._revoke_partitions(desired, now_s)
        for partition in (*self._active.values(), *self._revoking.values()):
            self._save_snapshots(partition, now_s)
        self._write_ticks(now_s)
        self._write_metrics(now_s)

    def _acquire_partitions(self, desired: DesiredAssignment, now_s: float) -> None:
        known = {each.id for each in self._active.values()} | self._revoking.keys() | self._acquiring.keys()
        for partition in desired.held - known:
            if desired.stop or partition not in desired.assigned:
                self._heartbeat.report_revoked(partition)
            elif now_s >= self._not_before_s.get(partition, 0.0):
                self._acquiring[partition] = self._store_thread.submit(
                    self._restore,
                    partition,
                    self._exclusions_thread.submit(self._guard.exclusions.refresh, now_s),
                )
        for partition, restored in list(self._acquiring.items()):
            if restored.done():
                del self._acquiring[partition]
                try:
                    self._start_reading(partition, *restored.result(), now_s=now_s)
                except (StoreError, LogUnavailableError) as error:
                    self._log.warning(
                        "a state cannot be restored yet", partition=str(partition), fault=str(error)
                    )
                    deadly = isinstance(error, DeadlyStateError)
                    self._not_before_s[partition] = now_s + (DEADLY_PAUSE_S if deadly else _PAUSE_S)

    def _restore(self, partition: PartitionId, refreshed: Future[None]) -> tuple[PartitionWorker, Fold]:
        """Restores a partition. `refreshed`: the exclusions are read that were logged before this slot held it."""
        worker = self._restoring.newest(self._store, partition, self._states)
        refreshed.result()
        return worker, self._guard.of(worker, lambda: self._keeps(partition))

    def _keeps(self, partition: PartitionId) -> bool:
        """Whether this task may go on with a partition; any thread."""
        desired = self._heartbeat.desired
        return partition in desired.held and not (desired.stop or desired.superseded)

    def _start_reading(self, id_: PartitionId, worker: PartitionWorker, fold: Fold, now_s: float) -> None:
        if id_ not in self._heartbeat.desired.held:
            return
        log = TopicPartition(stage_topic(self._restoring.application, id_.stage), id_.partition)
        # Partitions are saved one after the other, not all at a time.
        due_s = now_s + self._intervals.snapshot_s * ((len(self._active) % 16) + 1) / 16
        self._reader.add(log, worker.next_offset)
        self._active[log] = ActivePartition(
            log, worker, fold=fold, save=self._states.increment, due_s=due_s, stamping=self._stamping
        )
        self._log.debug("partition acquired", partition=str(id_), offset=worker.next_offset)

    def _drop_lost(self, desired: DesiredAssignment) -> None:
        """Drops partitions that another task holds now, and writes nothing more for them."""
        for partition in [each for each in self._active.values() if each.id not in desired.held]:
            self._stop_reading(partition)
            self._log.warning("partition lost: another task holds it now", partition=str(partition.id))
        for lost in [each for each in self._revoking if each not in desired.held]:
            del self._revoking[lost]

    def _revoke_partitions(self, desired: DesiredAssignment, now_s: float) -> None:
        for partition in [
            each for each in self._active.values() if desired.stop or each.id not in desired.assigned
        ]:
            self._stop_reading(partition)
            partition.begin_snapshot()
            partition.revoke_by_s = now_s + (_DRAIN_S_MAX if desired.stop else _REVOKE_S_MAX)
            self._revoking[partition.id] = partition
        for partition in list(self._revoking.values()):
            late = partition.revoke_by_s is not None and now_s >= partition.revoke_by_s
            if partition.complete or late:
                del self._revoking[partition.id]
                self._heartbeat.report_revoked(partition.id)
                self._log.debug("partition revoked", partition=str(partition.id), saved=partition.complete)

    def _stop_reading(self, partition: ActivePartition) -> None:
        del self._active[partition.log]
        self._reader.remove(partition.log)

    def _write_ticks(self, now_s: float) -> None:
        """Advances time in idle partitions.

        Not while the broker may be unreachable: a delivery that times out ends the writer, and with it the loop.
        """
        if not self._active or self._reader.is_suspect:
            return
        log_ns = self._clock.now_ns(self._heartbeat.redis_ns)
        for partition in self._active.values():
            partition.tick_if_due(log_ns, self._writer, self._buffer, now_s)
            if partition.is_due(log_ns + _REST_POLL_MS * 1_000_000) or partition.pending:
                self._rest.end(now_s)

    def _save_snapshots(self, partition: ActivePartition, now_s: float) -> None:
        if partition.revoke_by_s is None and not partition.pending and now_s >= partition.due_s:
            partition.begin_snapshot()
            pauses_s = (each.pause_s for each in self._active.values())
            partition.due_s = now_s + next_snapshot_s(self._intervals.snapshot_s, pauses_s)
        if not partition.pending:
            return
        snapshot = partition.pending[0]
        if snapshot.saving is None:
            if snapshot.output.complete and now_s >= snapshot.not_before_s:
                snapshot.saving = self._store_thread.submit(self._save, partition.id, snapshot)
        elif snapshot.saving.done():
            try:
                partition.saved = snapshot.saving.result()
                partition.save_fault = ""
                partition.pending.pop(0)
            except StoreError as error:
                self._log.warning(
                    "snapshot not saved; the state is safe in the log, recovery would take longer",
                    partition=str(partition.id),
                    fault=str(error),
                )
                partition.save_fault = str(error)
                snapshot.saving, snapshot.not_before_s = None, now_s + _PAUSE_S

    def _save(self, id_: PartitionId, snapshot: PendingSnapshot) -> SavedSnapshot:
        begun_ns = time.perf_counter_ns()
        self._store.save(id_, snapshot.increment, snapshot.data)
        return snapshot.saved((time.perf_counter_ns() - begun_ns) / 1e6)

    def _write_metrics(self, now_s: float) -> None:
        if now_s < self._metrics_due_s or (
            self._metrics_written is not None and not self._metrics_written.done()
        ):
            return
        self._metrics_due_s = now_s + self._intervals.live_s
        repeat = now_s >= self._repeat_metrics_due_s
        if repeat:
            self._repeat_metrics_due_s = now_s + _REPEAT_METRICS_S
        changed = []
        for log, partition in self._active.items():
            worker = partition.worker
            metrics = self._metrics.of(worker, partition.saved, partition.save_fault)
            lag = self._reader.lag(log)
            metrics |= partition.measure.metrics(worker.counters.messages, lag, now_s)
            metrics |= self._queues(log, partition)
            if repeat or metrics != partition.published:
                partition.published = metrics
                changed.append((partition.id, metrics))
        if changed:
            self._metrics_written = self._metrics_thread.submit(self._write, changed)

    def _queues(self, log: TopicPartition, partition: ActivePartition) -> dict[str, str | int | float]:
        ahead = self._reader.read_ahead(log)
        return {
            HELD.name: round(partition.held_s, 3),
            UNACKNOWLEDGED.name: partition.unacknowledged,
            READ_AHEAD.name: "" if ahead is None else ahead,
        }

    def _write(self, changed: list[tuple[PartitionId, dict[str, str | int | float]]]) -> None:
        for id_, metrics in changed:
            self._metrics.write(id_, metrics)
