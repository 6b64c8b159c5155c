"""Saves and restores states so that workers which die of it are named, and their partition goes on where it can.

A mark stands while states are saved or restored, as while a record is folded. From the second death in a row on it is
tried in a child first. What a child dies of while it saves is not saved: the partition goes on without a snapshot, and
tries again at the next one that is due 30 s later. What it dies of while it restores is not restored: the partition
waits, the others of the slot go on. Either is said for as long as it is so. Which message made a state so is not looked
for: many did.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bettong.errors import DeadlyStateError
from bettong.identifiers import PartitionId
from bettong.snapshots.chain import Increment
from bettong.worker.halving import Death
from bettong.worker.partition import PartitionWorker
from bettong_processor.crashes.guard import Guard, marking
from bettong_processor.crashes.marks import Activity, Deaths, Mark
from bettong_processor.crashes.trial import SuspectRecord, Trial, computation_of

# One may have been any process's fate.
_DEATHS_MIN = 2
# States that kill are tried again this often, in a child: each may take all memory that is left, and a partition's
# folding waits while it is tried whether they can be saved.
DEADLY_PAUSE_S = 30.0

Load = Callable[[PartitionId, Increment], bytes | None]


@dataclass(frozen=True, slots=True)
class GuardedStates:
    """Those of all partitions of a process. `clock` is monotonic, in seconds."""

    guard: Guard
    clock: Callable[[], float] = time.monotonic
    _not_before_s: dict[PartitionId, float] = field(default_factory=dict)

    def increment(self, worker: PartitionWorker) -> tuple[Increment, bytes] | None:
        """See PartitionWorker. None, and nothing has changed, where a child died of it: a later time may do."""
        mark = self.guard.marks.of(worker.id)
        deaths = mark.known()
        is_suspect = _is_suspect(deaths, Activity.SAVING)
        if deaths is not None and is_suspect:
            if self.clock() < self._not_before_s.get(worker.id, 0.0):
                return None
            # A copy of its own, in the child: this worker's states are as before.
            died = Trial(worker, SuspectRecord(worker.next_offset, b"", 0), 0).run(worker.increment)
            if isinstance(died, Death):
                self._not_before_s[worker.id] = self.clock() + DEADLY_PAUSE_S
                self._hold(
                    worker,
                    f"{_died(worker, deaths)}, and so did a trial ({died.reason}, computation"
                    f" {died.computation!r}): no snapshot, a restart folds the log again from offset"
                    f" {worker.saved.offset}; results go on. Give workers more memory, shorten"
                    " BETTONG_SNAPSHOT_INTERVAL_MS, or mend what saves that state",
                )
                return None
        with _Marked(worker, mark, worker.next_offset, Activity.SAVING):
            found = worker.increment()
        mark.forget(Activity.SAVING)
        if is_suspect:
            self.guard.reports.report_fault(worker.id, "")  # another process may have reported it
        self.guard.reports.hold_fault(worker.id, "")
        return found

    def try_restoring(self, worker: PartitionWorker, increments: Sequence[Increment], load: Load) -> None:
        """Before these are restored, oldest first. Raises DeadlyStateError where a child died of it, and StoreError.

        Only where workers have died of it: then all are loaded, for a child that must not ask the store.
        """
        mark = self.guard.marks.of(worker.id)
        deaths = self.guard.noticed(worker, mark)
        if deaths is None or not _is_suspect(deaths, Activity.RESTORING) or not increments:
            return
        found = [data for each in increments if (data := load(worker.id, each)) is not None]

        def restore() -> None:
            for data in found:
                worker.restore(data)

        record = SuspectRecord(increments[-1].offset, b"", 0)
        died = Trial(worker, record, 0, parts=len(found)).run(restore)
        if isinstance(died, Death):
            text = (
                f"{_died(worker, deaths)}, and so did a trial ({died.reason}, computation"
                f" {died.computation!r}): the partition waits. Give workers more memory, or run the version of the"
                " application that saved the state; `bettong state reset` folds it from the log again"
            )
            self._hold(worker, text)
            raise DeadlyStateError(f"{worker.id}: {text}")

    def restore(self, worker: PartitionWorker, increment: Increment, data: bytes) -> list[str]:
        """See PartitionWorker."""
        mark = self.guard.marks.of(worker.id)
        with _Marked(worker, mark, increment.offset, Activity.RESTORING):
            return worker.restore(data)

    def _hold(self, worker: PartitionWorker, text: str) -> None:
        self.guard.reports.hold_fault(worker.id, text)
        self.guard.log.warning("states kill workers", **worker.id._asdict(), fault=text)


class _Marked:
    """While it is open, the process saves or restores states; what it is at is marked."""

    def __init__(self, worker: PartitionWorker, mark: Mark, offset: int, activity: Activity) -> None:
        self._worker = worker
        self._mark = mark
        self._offset = offset
        self._activity = activity

    def __enter__(self) -> None:
        self._mark.begin_states(self._offset, self._activity)
        self._worker.progress.mark = marking(self._worker, self._mark)

    def __exit__(self, *_: object) -> None:
        self._worker.progress.mark = None
        self._mark.end_states()


def _is_suspect(deaths: Deaths | None, activity: Activity) -> bool:
    return deaths is not None and deaths.activity is activity and deaths.count >= _DEATHS_MIN


def _died(worker: PartitionWorker, deaths: Deaths) -> str:
    at = computation_of(worker, deaths.computation)
    what = "saved" if deaths.activity is Activity.SAVING else "restored"
    return (
        f"workers died {deaths.count} time(s) while they {what} the states of stage {worker.id.stage!r}"
        + (f", computation {at!r}" if at is not None else "")
        + f", the last one at offset {deaths.offset}"
    )
