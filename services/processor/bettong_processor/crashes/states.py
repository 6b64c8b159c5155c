"""Saves and restores states so that states which kill workers are reported, and the partition goes on if it can.

A mark is set while states are saved or restored, as while a record is folded. From the second death in a row on, the
same is tried in a child process first. If the child dies while it saves, nothing is saved: the partition goes on
without a snapshot, and tries again with the first one that is due at least 30 s later. If it dies while it restores,
the partition waits, and the slot's other partitions go on. Both are reported for as long as they last. The message that
caused such a state is not searched for: many messages did.
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

# A single death may have another cause.
_DEATHS_MIN = 2
# The pause between two trials of states that kill: each may use all available memory, and the partition is not folded
# while saving is tried.
DEADLY_PAUSE_S = 30.0

Load = Callable[[PartitionId, Increment], bytes | None]


@dataclass(frozen=True, slots=True)
class GuardedStates:
    """Saves and restores the states of all partitions of a process. `clock` is monotonic, in seconds."""

    guard: Guard
    clock: Callable[[], float] = time.monotonic
    _not_before_s: dict[PartitionId, float] = field(default_factory=dict)

    def increment(self, worker: PartitionWorker) -> tuple[Increment, bytes] | None:
        """See PartitionWorker. None, with the worker unchanged, if a child died of it; a later attempt may succeed."""
        mark = self.guard.marks.of(worker.id)
        deaths = mark.known_deaths()
        is_suspect = _is_suspect(deaths, Activity.SAVING)
        if deaths is not None and is_suspect:
            if self.clock() < self._not_before_s.get(worker.id, 0.0):
                return None
            # The child has a copy: this worker's states do not change.
            died = Trial(worker, SuspectRecord(worker.next_offset, b"", 0), 0).run(worker.increment)
            if isinstance(died, Death):
                self._not_before_s[worker.id] = self.clock() + DEADLY_PAUSE_S
                self._report_fault(
                    worker,
                    f"{_deaths_text(worker, deaths, died)}: no snapshot, a restart folds the log again from offset"
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
        """Called before these are restored, oldest first. Raises DeadlyStateError if a child died of it; StoreError.

        It tries only if workers have died of it. It loads all increments first, for the child must not use the store.
        """
        mark = self.guard.marks.of(worker.id)
        deaths = self.guard.read_deaths(worker, mark)
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
                f"{_deaths_text(worker, deaths, died)}: the partition waits. Give workers more memory, or run the"
                " version of the application that saved the state; `bettong state reset` folds it from the log again"
            )
            self._report_fault(worker, text)
            raise DeadlyStateError(f"{worker.id}: {text}")

    def restore(self, worker: PartitionWorker, increment: Increment, data: bytes) -> list[str]:
        """See PartitionWorker."""
        mark = self.guard.marks.of(worker.id)
        with _Marked(worker, mark, increment.offset, Activity.RESTORING):
            return worker.restore(data)

    def _report_fault(self, worker: PartitionWorker, text: str) -> None:
        self.guard.reports.hold_fault(worker.id, text)
        self.guard.log.warning("states kill workers", **worker.id._asdict(), fault=text)


class _Marked:
    """A context manager: marks that the process saves or restores states, and at which computation it is."""

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


def _deaths_text(worker: PartitionWorker, deaths: Deaths, trial: Death) -> str:
    at = computation_of(worker, deaths.computation)
    what = "saved" if deaths.activity is Activity.SAVING else "restored"
    return (
        f"workers died {deaths.count} time(s) while they {what} the states of stage {worker.id.stage!r}"
        + (f", computation {at!r}" if at is not None else "")
        + f", the last one at offset {deaths.offset}"
        + f", and so did a trial ({trial.reason}, computation {trial.computation!r})"
    )
