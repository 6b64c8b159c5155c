"""Reads the newest states of an application at rest and divides them over partitions; the stored ones stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from bettong.application.plan import Plan
from bettong.errors import SnapshotError
from bettong.identifiers import PartitionId
from bettong.snapshots import snapshot as codec
from bettong.snapshots.chain import Increment, chain, chains, superfluous
from bettong.snapshots.store import SnapshotStore, read_chain
from bettong.v1.snapshot_pb2 import Snapshot
from bettong.worker.partition import Assignment, PartitionWorker
from bettong.worker.repartitioning.heads import NewGeneration, new_heads
from bettong.worker.repartitioning.states import with_states
from bettong.worker.stage_program import StageProgram


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest snapshot of a partition. `head`: its newest increment without states; `increments`: its chain.

    Where nothing was ever saved, an empty head without increments.
    """

    head: Snapshot
    increments: tuple[Increment, ...]


Found: TypeAlias = Mapping[str, Sequence[Newest]]


class NewestStates:
    """Of one application. Methods block, and raise StoreError and SnapshotError. `program`: returns a stage's."""

    def __init__(
        self,
        plan: Plan,
        snapshots: SnapshotStore,
        *,
        program: Callable[[str], StageProgram],
        frame_bytes_max: int,
    ) -> None:
        self._plan = plan
        self._snapshots = snapshots
        self._program = program
        self._frame_bytes_max = frame_bytes_max

    def newest(self, partitions: int, below: Mapping[PartitionId, int] | None = None) -> Found:
        """By stage and partition; `below`: only snapshots at lower offsets than these."""
        return {
            stage.name: [
                self._newest(id_, None if below is None else below[id_])
                for id_ in (PartitionId(stage.name, number) for number in range(partitions))
            ]
            for stage in self._plan.stages
        }

    def lasting(self, found: Found, begins: Mapping[PartitionId, int]) -> Found:
        """The same states, saved so that they stay in the store when whole snapshots are saved at `begins`.

        A store keeps what the newest roots need. Where a zombie has saved a newer root than the newest state has, the
        store would delete that state: it is saved once more, whole.
        """
        return {
            stage: [
                self._lasting(PartitionId(stage, number), each, begins, len(of_stage))
                for number, each in enumerate(of_stage)
            ]
            for stage, of_stage in found.items()
        }

    def divided(self, found: Found, new: NewGeneration) -> Iterator[tuple[PartitionId, bytes, int]]:
        """The new snapshots, one after the other, each with the number of its states."""
        head = new_heads(
            self._plan, {stage: [each.head for each in of_stage] for stage, of_stage in found.items()}, new
        )
        for stage, of_stage in found.items():
            workers = [
                self._worker(PartitionId(stage, number), each, len(of_stage))
                for number, each in enumerate(of_stage)
            ]
            yield from with_states(self._program(stage), workers, new.partitions, head)

    def _newest(self, id_: PartitionId, below: int | None) -> Newest:
        known = [each for each in self._snapshots.increments(id_) if below is None or each.offset < below]
        for increments in chains(known):
            if (data := self._snapshots.load(id_, increments[-1])) is not None:
                head = codec.decode(data, application=self._plan.application, partition=id_)
                for name in ("states", "last_ns", "last_event_ns", "ended"):
                    head.ClearField(name)
                return Newest(head, increments)
        empty = Snapshot(application=self._plan.application, stage=id_.stage, partition=id_.partition)
        return Newest(empty, ())

    def _lasting(
        self, id_: PartitionId, newest: Newest, begins: Mapping[PartitionId, int], partitions: int
    ) -> Newest:
        known = {*self._snapshots.increments(id_), Increment(begins[id_], 0, begins[id_])}
        if not newest.increments or chain(known - set(superfluous(known)), newest.increments[-1]) is not None:
            return newest
        whole = Increment(newest.head.offset, 0, newest.head.offset)
        self._snapshots.save(id_, whole, self._worker(id_, newest, partitions).snapshot())
        return Newest(newest.head, (whole,))

    def _worker(self, id_: PartitionId, newest: Newest, partitions: int) -> PartitionWorker:
        assignment = Assignment(self._plan.application, id_.partition, partitions, self._frame_bytes_max)
        worker = PartitionWorker(self._program(id_.stage), assignment)
        data = read_chain(self._snapshots, id_, newest.increments)
        if data is None:
            raise SnapshotError(
                f"{id_}: a part of its newest snapshot, at {newest.head.offset}, was deleted while it was read: a"
                " service of the application may run. Stop it, and try again"
            )
        for each in data:
            worker.restore(each)
        return worker
