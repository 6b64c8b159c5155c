"""Restores partition workers from saved increments, for both schedules."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from bettong.errors import SnapshotError, StateChangedError
from bettong.identifiers import PartitionId
from bettong.logs import Logger
from bettong.snapshots.chain import Increment, chains
from bettong.snapshots.store import SnapshotStore
from bettong.worker.partition import Assignment, PartitionWorker
from bettong.worker.references.versions import ReferenceTables
from bettong_processor.programs import Programs

# Another process may save newer increments, so that the store deletes those that are being read: then the search is
# repeated, this often at most.
ATTEMPTS_MAX = 10

Load = Callable[[PartitionId, Increment], bytes | None]


class RestoreGuard(Protocol):
    """Guards a process against states that kill it: `crashes.states.GuardedStates`."""

    def try_restoring(self, worker: PartitionWorker, increments: Sequence[Increment], load: Load) -> None:
        """Called before these are restored, oldest first. Raises StoreError if that would kill the process."""

    def restore(self, worker: PartitionWorker, increment: Increment, data: bytes) -> list[str]:
        """See PartitionWorker."""


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """The settings that workers need."""

    partitions: int
    frame_bytes_max: int
    measures: bool = True


class Restoring:
    """Makes partition workers of one application. Not thread-safe."""

    def __init__(
        self, programs: Programs, limits: WorkerLimits, log: Logger, references: ReferenceTables | None = None
    ) -> None:
        """`references`: see PartitionWorker."""
        self._references = references
        self._programs = programs
        self._limits = limits
        self._log = log
        self._reported: set[tuple[str, str]] = set()

    @property
    def application(self) -> str:
        """The application's name."""
        return self._programs.plan.application

    def fresh(self, partition: PartitionId) -> PartitionWorker:
        """A worker at offset 0, without any state."""
        limits = self._limits
        assignment = Assignment(
            self.application,
            partition.partition,
            limits.partitions,
            limits.frame_bytes_max,
            samples_keys=limits.measures,
        )
        return PartitionWorker(self._programs.stages[partition.stage], assignment, self._references)

    def newest(
        self,
        store: SnapshotStore,
        partition: PartitionId,
        guard: RestoreGuard | None = None,
    ) -> PartitionWorker:
        """A worker with the newest readable state in a store; a fresh one when there is none.

        Raises StoreError, and StateChangedError.
        """
        for _ in range(ATTEMPTS_MAX):
            saved = store.increments(partition)
            for increments in chains(saved):
                worker = self.fresh(partition)
                if self.apply_increments(worker, increments, store.load, guard):
                    return worker
            if set(store.increments(partition)) <= set(saved):
                break
        return self.fresh(partition)

    def apply_increments(
        self,
        worker: PartitionWorker,
        increments: Sequence[Increment],
        load: Load,
        guard: RestoreGuard | None = None,
    ) -> bool:
        """Restores increments into a worker. False when one is damaged or missing: then the worker must not be used.

        Raises StoreError, and StateChangedError.
        """
        if guard is not None:
            guard.try_restoring(worker, increments, load)
        for each in increments:
            data = load(worker.id, each)
            try:
                if data is None:
                    return False
                self._report_changed(
                    worker.id.stage, guard.restore(worker, each, data) if guard else worker.restore(data)
                )
            except StateChangedError:
                raise
            except SnapshotError as error:
                self._log.warning("a state is damaged, another one is tried", fault=str(error))
                return False
        return True

    def _report_changed(self, stage: str, changed: list[str]) -> None:
        """Logs once which computations have new code: their results may differ from now on."""
        for computation in changed:
            if (stage, computation) not in self._reported:
                self._reported.add((stage, computation))
                self._log.warning(
                    "the state was saved by different code; raise version= to refuse it",
                    stage=stage,
                    computation=computation,
                )
