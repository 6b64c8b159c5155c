"""The partition workers of one Python process, and where their states come from.

Spark does not bind partitions to processes: another process may get a partition's next batch. So each batch's state
changes are also kept in shared memory, as an increment named by its offset. The process that gets the next batch starts
from the state in its own memory, updated by those increments, or else from a saved state, and replays the log from
there. `bettong.snapshots.recovery` decides which state; this module restores it.
"""

from collections.abc import Sequence

from bettong.errors import LogTruncatedError
from bettong.identifiers import PartitionId, TopicPartition
from bettong.logs import Logger
from bettong.snapshots.chain import Increment, chain
from bettong.snapshots.recovery import StateCandidate, StateLocation, candidates, reaches
from bettong.topics import stage_of_topic, stage_topic
from bettong.worker.partition import PartitionWorker
from bettong_processor.crashes.guard import Guard
from bettong_processor.crashes.states import GuardedStates
from bettong_processor.micro_batch.replay import Replay
from bettong_processor.micro_batch.uploads import Stores, Uploads
from bettong_processor.restoring import ATTEMPTS_MAX, Restoring


class Partitions:
    """Finds or restores the worker of a partition, and saves it after each batch."""

    def __init__(
        self,
        restoring: Restoring,
        *,
        stores: Stores,
        uploads: Uploads,
        replay_log: Replay,
        guard: Guard,
        log: Logger,
    ) -> None:
        self._restoring = restoring
        self._application = restoring.application
        self._stores = stores
        self._uploads = uploads
        self._replay_log = replay_log
        self._guard = guard
        self._states = GuardedStates(guard)
        self._log = log
        self._workers: dict[PartitionId, PartitionWorker] = {}

    def begin(self, log: TopicPartition, first: int) -> PartitionWorker:
        """The worker with the state of all records below `first`.

        The start of a batch at `first` proves that all output of earlier batches is durable: only now may the state
        become a snapshot. Raises LogTruncatedError when the state can no longer be rebuilt.
        """
        id_ = PartitionId(stage_of_topic(self._application, log.topic), log.partition)
        worker = self._restore(id_, first)
        self._uploads.offer(id_, first)
        return worker

    def finish(self, worker: PartitionWorker) -> None:
        """Keeps a worker after its batch, and saves its changes to shared memory."""
        if worker.next_offset > worker.saved.offset:
            saved = self._states.increment(worker)
            if saved is not None:
                self._stores.local.save(worker.id, *saved)
        self._workers[worker.id] = worker

    def _restore(self, id_: PartitionId, first: int) -> PartitionWorker:
        # Removed while it is used: if the task fails half-way, the half-folded state must not be found again.
        memory = self._workers.pop(id_, None)
        if memory is not None and memory.next_offset == first:
            return memory
        tried: tuple[StateCandidate, ...] = ()
        for _ in range(ATTEMPTS_MAX):
            saved = self._saved(id_, first)
            if memory is not None:
                memory = self._advanced(memory, saved, first)
            tried = candidates(first, memory=memory.next_offset if memory else None, saved=saved)
            for candidate in tried:
                in_memory = candidate.location is StateLocation.MEMORY
                worker = memory if in_memory else self._loaded(candidate, id_)
                if worker is not None and self._replay(worker, candidate, first):
                    return worker
            if saved <= self._saved(id_, first):
                break
        raise LogTruncatedError(
            f"stage {id_.stage!r}, partition {id_.partition}: no state reaches offset {first}: tried "
            + ", ".join(f"{each.location.value} at {each.offset}" for each in tried)
            + "; the log no longer holds the records in between. Restore a snapshot, or lengthen the"
            " retention of the topic and reset the partition"
        )

    def _saved(self, id_: PartitionId, first: int) -> set[Increment]:
        """The saved increments of a partition: those on this machine, and if they do not suffice, the durable ones."""
        local = self._stores.local.increments(id_)
        if first == 0 or any(each.offset == first and chain(local, each) for each in local):
            return {*local}
        return {*local, *self._stores.durable.increments(id_)}

    def _advanced(self, memory: PartitionWorker, saved: set[Increment], first: int) -> PartitionWorker | None:
        """A state in memory, advanced towards `first` by increments that other processes have saved since.

        Returns it unchanged if there are none; None if one is damaged or missing, which leaves the state unusable.
        """
        for candidate in candidates(first, memory=None, saved=saved):
            if memory.saved in candidate.chain and memory.next_offset == memory.saved.offset:
                newer = candidate.chain[candidate.chain.index(memory.saved) + 1 :]
                return memory if self._apply_increments(memory, newer) else None
        return memory

    def _loaded(self, candidate: StateCandidate, id_: PartitionId) -> PartitionWorker | None:
        """A worker with a candidate's state; None if that is damaged or missing, so that the next one is tried."""
        worker = self._restoring.fresh(id_)
        return worker if self._apply_increments(worker, candidate.chain) else None

    def _apply_increments(self, worker: PartitionWorker, increments: Sequence[Increment]) -> bool:
        return self._restoring.apply_increments(worker, increments, self._load, self._states)

    def _load(self, id_: PartitionId, increment: Increment) -> bytes | None:
        data = self._stores.local.load(id_, increment)
        return data if data is not None else self._stores.durable.load(id_, increment)

    def _replay(self, worker: PartitionWorker, candidate: StateCandidate, first: int) -> bool:
        """Replays the log from the candidate's offset to `first`; False when the log no longer holds it."""
        if worker.next_offset == first:
            return True
        log = TopicPartition(stage_topic(self._application, worker.id.stage), worker.id.partition)
        if not reaches(candidate, first=first, log_start=self._replay_log.log_start(log)):
            return False
        self._log.info(
            "folding the log again",
            **log._asdict(),
            first=worker.next_offset,
            until=first,
            location=candidate.location.value,
        )
        self._guard.exclusions.refresh()
        fold = self._guard.of(worker)
        known = set(worker.exclusions)
        for record in self._replay_log.records(log, first=worker.next_offset, until=first):
            fold(record.offset, record.value)
        if found := sorted(set(worker.exclusions) - known):
            self._log.warning(
                "messages that kill workers are left out, although their results were written before",
                **log._asdict(),
                offsets=found,
            )
        return True
