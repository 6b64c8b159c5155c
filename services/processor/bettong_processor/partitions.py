"""The partition workers of one Python process, and where their states come from.

Spark binds no partition to a process: the next batch of a partition may come to another one. So the state
after each batch also lies in shared memory, in a file named by its offset; who gets the next batch takes it
from its own memory when it is there, else from that file, else from the newest snapshot, and folds the log in
between again. Which one is a decision of `bettong.snapshots.recovery`; here it is carried out.
"""

from collections.abc import Callable
from dataclasses import dataclass

from bettong.errors import LogHoleError, SnapshotError
from bettong.logs import Logger
from bettong.snapshots.recovery import Candidate, Place, candidates, reaches
from bettong.snapshots.store import SnapshotStore
from bettong.topics import stage_of_topic, stage_topic
from bettong.worker.partition import Assignment, PartitionWorker
from bettong_processor.programs import Programs
from bettong_processor.replay import Replay


@dataclass(frozen=True, slots=True)
class Stores:
    """Where states are kept: `local` in this machine's shared memory, `durable` in Redis."""

    local: SnapshotStore
    durable: SnapshotStore


@dataclass(frozen=True, slots=True)
class Limits:
    """What the workers need to know of the settings."""

    partitions: int
    frame_bytes_max: int
    snapshot_interval_s: float


class Partitions:
    """Finds or restores the worker of a partition, and saves it after each batch."""

    def __init__(
        self,
        programs: Programs,
        *,
        limits: Limits,
        stores: Stores,
        replay_log: Replay,
        clock: Callable[[], float],
        log: Logger,
    ) -> None:
        self._programs = programs
        self._limits = limits
        self._stores = stores
        self._replay_log = replay_log
        self._clock = clock
        self._log = log
        self._workers: dict[tuple[str, int], PartitionWorker] = {}
        self._saved: dict[tuple[str, int], tuple[float, int]] = {}

    def begin(self, topic: str, partition: int, first: int) -> PartitionWorker:
        """The worker whose state is that of all records below `first`.

        A batch that starts at `first` proves that all output of the batches before is durable: only now may the
        state become a snapshot. Raises LogHoleError when the state cannot be reached any more.
        """
        stage = stage_of_topic(self._programs.plan.application, topic)
        worker = self._restore(stage, partition, first)
        # Taken out while it is at work: should the task fail half-way, the half-folded state is not found again.
        self._workers.pop((stage, partition), None)
        self._snapshot(worker, stage, partition)
        return worker

    def finish(self, worker: PartitionWorker) -> None:
        """Keeps a worker that has folded its batch, here and in shared memory."""
        stage, partition = worker.program.stage.name, worker.assignment.partition
        self._stores.local.save(stage, partition, worker.next_offset, worker.snapshot())
        self._workers[stage, partition] = worker

    def snapshot_offset(self, stage: str, partition: int) -> int:
        """The offset of the last snapshot that this process saved; 0 when it saved none."""
        return self._saved.get((stage, partition), (0.0, 0))[1]

    def _snapshot(self, worker: PartitionWorker, stage: str, partition: int) -> None:
        now = self._clock()
        saved_at, saved_offset = self._saved.get((stage, partition), (float("-inf"), 0))
        if worker.next_offset > saved_offset and now - saved_at >= self._limits.snapshot_interval_s:
            self._stores.durable.save(stage, partition, worker.next_offset, worker.snapshot())
            self._saved[stage, partition] = (now, worker.next_offset)

    def _restore(self, stage: str, partition: int, first: int) -> PartitionWorker:
        memory = self._workers.get((stage, partition))
        if memory is not None and memory.next_offset == first:
            return memory
        local = self._stores.local.offsets(stage, partition)
        durable = [] if first in local or first == 0 else self._stores.durable.offsets(stage, partition)
        found = candidates(
            first, memory=memory.next_offset if memory is not None else None, local=local, store=durable
        )
        for candidate in found:
            worker = self._load(candidate, stage, partition, memory)
            if worker is not None and self._replay(worker, candidate, first):
                return worker
        raise LogHoleError(
            f"stage {stage!r}, partition {partition}: no state reaches offset {first}: tried "
            + ", ".join(f"{each.place.value} at {each.offset}" for each in found)
            + "; the log no longer holds the records in between. Restore a snapshot, or lengthen the"
            " retention of the topic and reset the partition"
        )

    def _load(
        self, candidate: Candidate, stage: str, partition: int, memory: PartitionWorker | None
    ) -> PartitionWorker | None:
        """The state of a candidate; None when it is damaged or gone, so that the next one is tried."""
        if candidate.place is Place.MEMORY:
            return memory
        worker = PartitionWorker(self._programs.stages[stage], self._assignment(partition))
        if candidate.place is Place.NOWHERE:
            return worker
        store = self._stores.local if candidate.place is Place.LOCAL else self._stores.durable
        kept = store.newest(stage, partition, at_most=candidate.offset)
        if kept is None or kept[0] != candidate.offset:
            return None
        try:
            worker.restore(kept[1])
        except SnapshotError as error:
            self._log.warning("a state is damaged, an older one is tried", fault=str(error))
            return None
        return worker

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

    def _assignment(self, partition: int) -> Assignment:
        return Assignment(
            self._programs.plan.application, partition, self._limits.partitions, self._limits.frame_bytes_max
        )
