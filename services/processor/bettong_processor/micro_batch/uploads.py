"""Durable snapshots, off the hot path: a thread copies increments from shared memory to the store.

After each batch the partitions' increments are in shared memory. Once their output is known to be durable, and the
snapshot interval has passed, the chain up to there is completed in the store. An unreachable store blocks nothing: what
it lacks is copied when it is back, and until then a recovery replays more of the log.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from bettong.errors import StoreError
from bettong.identifiers import PartitionId
from bettong.logs import Logger
from bettong.snapshots.chain import chain
from bettong.snapshots.store import SnapshotStore
from bettong_processor.saved_snapshots import SavedSnapshot, SnapshotCost

# The pause after a failure of the store.
_PAUSE_S = 1.0


@dataclass(frozen=True, slots=True)
class Stores:
    """The stores of states: `local` in this machine's shared memory, `durable` as `BETTONG_SNAPSHOTS` says."""

    local: SnapshotStore
    durable: SnapshotStore


def upload(stores: Stores, partition: PartitionId, offset: int) -> SavedSnapshot | None:
    """Completes the chain of the newest local state at or below `offset`; None when there is none.

    Raises StoreError.
    """
    begun_ns, size = time.perf_counter_ns(), 0
    local = stores.local.increments(partition)
    usable = [each for each in local if each.offset <= offset]
    if not usable:
        return None
    durable = stores.durable.increments(partition)
    wanted = chain({*local, *durable}, usable[-1])
    for each in wanted or ():
        if each not in durable:
            data = stores.local.load(partition, each)
            if data is None:
                return None  # deleted, as there are newer ones: the next upload copies those
            stores.durable.save(partition, each, data)
            size += len(data)
    if not wanted:
        return None
    if not size:  # another process has saved it, and reports the cost
        return SavedSnapshot(usable[-1].offset)
    took_ms = (time.perf_counter_ns() - begun_ns) / 1e6
    return SavedSnapshot(usable[-1].offset, SnapshotCost(time.time(), size, took_ms, 0.0))


class Uploads:
    """Uploads in a thread, which starts with the first one. Bounded: at most one upload waits for each partition."""

    def __init__(self, stores: Stores, *, interval_s: float, clock: Callable[[], float], log: Logger) -> None:
        self._stores = stores
        self._interval_s = interval_s
        self._clock = clock
        self._log = log
        self._changed = threading.Condition()
        self._due: dict[PartitionId, int] = {}
        self._begun_s: dict[PartitionId, float] = {}
        self._saved: dict[PartitionId, SavedSnapshot] = {}
        self._faults: dict[PartitionId, str] = {}
        self._busy = False
        self._thread: threading.Thread | None = None

    def offer(self, partition: PartitionId, offset: int) -> None:
        """Notes that all output of the records below `offset` is durable. Never blocks for long, never raises."""
        now = self._clock()
        with self._changed:
            too_soon = now - self._begun_s.get(partition, float("-inf")) < self._interval_s
            saved = self._saved.get(partition)
            if too_soon or offset <= (saved.offset if saved is not None else 0):
                return
            self._begun_s[partition] = now
            self._due[partition] = offset
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="snapshots", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def complete(self, partition: PartitionId, offset: int) -> SavedSnapshot | None:
        """Uploads the state of exactly this offset at once, on the caller's thread; None if this machine has none.

        Another machine may have it: what is older here is no news. Raises StoreError.
        """
        return self._upload(partition, offset)

    def saved(self, partition: PartitionId) -> SavedSnapshot | None:
        """The last snapshot that this process completed, of an offset that it was asked for; None if there is none."""
        return self._saved.get(partition)

    def fault(self, partition: PartitionId) -> str:
        """Why the last upload failed; "" if it did not."""
        return self._faults.get(partition, "")

    def wait_until_saved(self, timeout_s: float) -> bool:
        """Waits until no upload is due or running; False after `timeout_s`."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._due and not self._busy, timeout_s)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._due)
                partition = next(iter(self._due))
                offset = self._due.pop(partition)
                self._busy = True
            failed = False
            try:
                self._upload(partition, offset)
            except StoreError:
                failed = True
            with self._changed:
                self._busy = False
                self._changed.notify_all()
                if failed:
                    self._changed.wait_for(lambda: False, _PAUSE_S)

    def _upload(self, partition: PartitionId, offset: int) -> SavedSnapshot | None:
        try:
            saved = upload(self._stores, partition, offset)
        except StoreError as error:
            self._log.warning(
                "snapshot not saved; the state is safe in the log, recovery would take longer",
                **partition._asdict(),
                fault=str(error),
            )
            self._faults[partition] = str(error)
            raise
        self._faults.pop(partition, None)
        if saved is None or saved.offset != offset:
            return None
        self._saved[partition] = saved
        return saved
