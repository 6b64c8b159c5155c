"""The partition workers of one Python process, and where their states come from.

Spark binds no partition to a process: the next batch of a partition may come to another one. So what a batch has
changed also lies in shared memory, as an increment named by its offset; who gets the next batch goes on from the state
in its own memory, brought up to date by those increments, else from a saved state, and folds the log in between
again. Which one is a decision of `bettong.snapshots.recovery`; here it is carried out.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from bettong.errors import LogHoleError, SnapshotError, StateChangedError
from bettong.logs import Logger
from bettong.snapshots.chain import Increment, chain
from bettong.snapshots.recovery import Candidate, Place, candidates, reaches
from bettong.topics import stage_of_topic, stage_topic
from bettong.worker.partition import Assignment, PartitionWorker
from bettong_processor.programs import Programs
from bettong_processor.replay import Replay
from bettong_processor.uploads import Stores, Uploads

# Others may push out what is being read, by saving newer states: then it is looked for anew, this often at most.
_LOOKS_MAX = 10


@dataclass(frozen=True, slots=True)
class Limits:
    """What the workers need to know of the settings."""

    partitions: int
    frame_bytes_max: int


class Partitions:
    """Finds or restores the worker of a partition, and saves it after each batch."""

    def __init__(
        self,
        programs: Programs,
        *,
        limits: Limits,
        stores: Stores,
        uploads: Uploads,
        replay_log: Replay,
        log: Logger,
    ) -> None:
        self._programs = programs
        self._limits = limits
        self._stores = stores
        self._uploads = uploads
        self._replay_log = replay_log
        self._log = log
        self._workers: dict[tuple[str, int], PartitionWorker] = {}
        self._told: set[tuple[str, str]] = set()

    def begin(self, topic: str, partition: int, first: int) -> PartitionWorker:
        """The worker whose state is that of all records below `first`.

        A batch that starts at `first` proves that all output of the batches before is durable: only now may the
        state become a snapshot. Raises LogHoleError when the state cannot be reached any more.
        """
        stage = stage_of_topic(self._programs.plan.application, topic)
        worker = self._restore(stage, partition, first)
        self._uploads.offer(stage, partition, first)
        return worker

    def finish(self, worker: PartitionWorker) -> None:
        """Keeps a worker that has folded its batch, here and in shared memory."""
        stage, partition = worker.program.stage.name, worker.assignment.partition
        if worker.next_offset > worker.saved.offset:
            self._stores.local.save(stage, partition, *worker.increment())
        self._workers[stage, partition] = worker

    def _restore(self, stage: str, partition: int, first: int) -> PartitionWorker:
        # Taken out while it is at work: should the task fail half-way, the half-folded state is not found again.
        memory = self._workers.pop((stage, partition), None)
        if memory is not None and memory.next_offset == first:
            return memory
        tried: tuple[Candidate, ...] = ()
        for _ in range(_LOOKS_MAX):
            saved = self._saved(stage, partition, first)
            if memory is not None:
                memory = self._advanced(memory, saved, first)
            tried = candidates(first, memory=memory.next_offset if memory else None, saved=saved)
            for candidate in tried:
                worker = (
                    memory if candidate.place is Place.MEMORY else self._loaded(candidate, stage, partition)
                )
                if worker is not None and self._replay(worker, candidate, first):
                    return worker
            if saved <= self._saved(stage, partition, first):
                break
        raise LogHoleError(
            f"stage {stage!r}, partition {partition}: no state reaches offset {first}: tried "
            + ", ".join(f"{each.place.value} at {each.offset}" for each in tried)
            + "; the log no longer holds the records in between. Restore a snapshot, or lengthen the"
            " retention of the topic and reset the partition"
        )

    def _saved(self, stage: str, partition: int, first: int) -> set[Increment]:
        """What is saved of a partition: on this machine, and elsewhere too unless that is not needed."""
        local = self._stores.local.increments(stage, partition)
        if first == 0 or any(each.offset == first and chain(local, each) for each in local):
            return {*local}
        return {*local, *self._stores.durable.increments(stage, partition)}

    def _advanced(self, memory: PartitionWorker, saved: set[Increment], first: int) -> PartitionWorker | None:
        """A state in memory, brought as near to `first` as increments go that others saved since.

        Returns it as it is when there are none; None when one is damaged or gone, for that spoils the state.
        """
        for candidate in candidates(first, memory=None, saved=saved):
            if memory.saved in candidate.chain and memory.next_offset == memory.saved.offset:
                newer = candidate.chain[candidate.chain.index(memory.saved) + 1 :]
                return memory if self._took(memory, newer) else None
        return memory

    def _loaded(self, candidate: Candidate, stage: str, partition: int) -> PartitionWorker | None:
        """A worker of a candidate's state; None when it is damaged or gone, so that the next one is tried."""
        assignment = Assignment(
            self._programs.plan.application, partition, self._limits.partitions, self._limits.frame_bytes_max
        )
        worker = PartitionWorker(self._programs.stages[stage], assignment)
        return worker if self._took(worker, candidate.chain) else None

    def _took(self, worker: PartitionWorker, increments: Iterable[Increment]) -> bool:
        """Whether a worker has taken over increments. Raises StateChangedError."""
        stage, partition = worker.program.stage.name, worker.assignment.partition
        for each in increments:
            data = self._stores.local.load(stage, partition, each)
            if data is None:
                data = self._stores.durable.load(stage, partition, each)
            try:
                if data is None:
                    return False
                self._tell(stage, worker.restore(data))
            except StateChangedError:
                raise
            except SnapshotError as error:
                self._log.warning("a state is damaged, another one is tried", fault=str(error))
                return False
        return True

    def _tell(self, stage: str, changed: list[str]) -> None:
        """Says once which code is new: its results may differ from now on, those delivered stay."""
        for computation in changed:
            if (stage, computation) not in self._told:
                self._told.add((stage, computation))
                self._log.warning(
                    "this code did not make the state that it goes on from; raise version= if it must not",
                    stage=stage,
                    computation=computation,
                )

    def _replay(self, worker: PartitionWorker, candidate: Candidate, first: int) -> bool:
        """Folds the log from the candidate's offset to `first` again; False when the log no longer has it."""
        if worker.next_offset == first:
            return True
        topic = stage_topic(self._programs.plan.application, worker.program.stage.name)
        partition = worker.assignment.partition
        if not reaches(candidate, first=first, log_start=self._replay_log.log_start(topic, partition)):
            return False
        self._log.info(
            "folding the log again",
            topic=topic,
            partition=partition,
            first=worker.next_offset,
            until=first,
            place=candidate.place.value,
        )
        for record in self._replay_log.records(topic, partition, first=worker.next_offset, until=first):
            worker.fold(record.offset, record.value)
        return True
