"""Reads the states of an application from its newest snapshots, also while it runs, a partition at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bettong.application.plan import Plan, Stage
from bettong.closing import Closing
from bettong.edges.kafka_log import LogAdmin
from bettong.edges.partitioning_log import partitions_in_use
from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.edges.snapshot_stores import clear_local_states, snapshot_store
from bettong.errors import LocalError, LogTruncatedError, SnapshotError
from bettong.identifiers import PartitionId
from bettong.inspection.live.forgetting import forget_progress
from bettong.inspection.locations import Locations
from bettong.inspection.overview import service_of
from bettong.inspection.states import KeyState, LogEnds, RestoredSnapshot
from bettong.routing import partition_of
from bettong.schema.key_types import KeyValue
from bettong.services import PROCESSOR
from bettong.snapshots.chain import chains
from bettong.snapshots.store import read_chain
from bettong.topics import stage_topic
from bettong.worker.partition import Assignment, PartitionWorker
from bettong.worker.stage_program import StageProgram, program


class States(Closing):
    """Reads snapshots. A context manager. Methods raise LogError, StoreError and SnapshotError."""

    def __init__(self, plan: Plan, where: Locations) -> None:
        self._plan = plan
        self._where = where
        self._store = RedisStore(where.redis, plan.application)
        self._snapshots = snapshot_store(where.snapshots, plan.application, self._store)
        self._programs: dict[str, StageProgram] = {}

    def logs(self, stage: Stage) -> dict[int, LogEnds]:
        """Where the log of each partition in use of a stage begins, in its generation, and ends."""
        topic = stage_topic(self._plan.application, stage.name)
        with LogAdmin(self._where.kafka) as admin:
            begins, ends = admin.beginnings([topic]), admin.ends([topic])
            used = partitions_in_use(admin, self._where.kafka, self._plan.application, topic)
        return {
            each.partition: LogEnds(
                max(begins[each], used.begin_of(PartitionId(stage.name, each.partition))), end
            )
            for each, end in ends.items()
            if each.partition < used.partitions
        }

    def are_kept(self, stage: Stage, partitions: Iterable[int]) -> bool:
        """Whether any of these partitions of a stage has a snapshot."""
        return any(self._snapshots.increments(PartitionId(stage.name, each)) for each in partitions)

    def held(self, stage: Stage, partition: int) -> RestoredSnapshot | None:
        """The newest snapshot that is not damaged; None when there is none.

        Raises SnapshotError when there are some and none can be used.
        """
        fault: SnapshotError | None = None
        id_ = PartitionId(stage.name, partition)
        for chain in chains(self._snapshots.increments(id_)):
            kept = read_chain(self._snapshots, id_, chain)
            if kept is None:
                continue
            worker = PartitionWorker(
                self._program(stage),
                Assignment(self._plan.application, partition, partition + 1, self._where.frame_bytes_max),
            )
            try:
                for each in kept:
                    worker.restore(each)
            except SnapshotError as error:
                fault = error
            else:
                return RestoredSnapshot(
                    stage.name, partition, worker.next_offset, sum(map(len, kept)), worker
                )
        if fault is not None:
            raise fault
        return None

    def of_key(self, stage: Stage, key: KeyValue) -> tuple[int, list[KeyState]]:
        """The partition of a key, and its state in each computation that has one."""
        partition = partition_of(key, len(self.logs(stage)))
        held = self.held(stage, partition)
        if held is None:
            return partition, []
        states = ((name, table.state_of(key)) for name, table in held.worker.tables.items())
        return partition, [held.state(name, key, state) for name, state in states if state is not None]

    def all(self, stages: list[Stage]) -> Iterator[KeyState]:
        """Every state, partition by partition."""
        for stage in stages:
            for partition in sorted(self.logs(stage)):
                if (held := self.held(stage, partition)) is not None:
                    for name, table in held.worker.tables.items():
                        for key, state in table.items():
                            yield held.state(name, key, state)

    def refuse_while_folded(self) -> None:
        """Raises LocalError where a processor has a live record: it would save its states again."""
        live = LiveMetrics(self._store).live()
        running = [name for name, record in live.items() if service_of(record) == PROCESSOR.name]
        if running:
            raise LocalError(
                f"{', '.join(running)} of {self._plan.application} runs, and would save its states again: stop it first"
            )

    def records_to_fold(self) -> int:
        """How many records there are to fold from the beginning of each log.

        Raises LogTruncatedError where the beginning of one was deleted.
        """
        logs = {
            (each.name, partition): log
            for each in self._plan.stages
            for partition, log in self.logs(each).items()
        }
        if trimmed := [f"{name}/{partition}" for (name, partition), log in logs.items() if log.begin > 0]:
            raise LogTruncatedError(
                f"the beginning of the log of {', '.join(trimmed)} was deleted, or the application was repartitioned"
                " since: without its snapshot the state could never be folded again. Start under another application"
                " name instead"
            )
        return sum(log.end for log in logs.values())

    def clear(self) -> None:
        """Deletes all snapshots of the application, also those in this machine's shared memory.

        How far it was folded is forgotten first: an interrupted reset can be repeated.
        """
        forget_progress(self._store, by="state reset")
        self._snapshots.clear()
        for folder in self._where.state_dir.glob(f"{self._plan.application}-{'[0-9a-f]' * 12}"):
            clear_local_states(folder)

    def close(self) -> None:
        """Closes the connections to Redis."""
        self._store.close()

    def _program(self, stage: Stage) -> StageProgram:
        if stage.name not in self._programs:
            where = self._where
            self._programs[stage.name] = program(
                stage, compiled=where.compiled, cache=where.kernel_cache, state_key=where.state_key
            )
        return self._programs[stage.name]
