"""The number of an application's partitions, once it was changed, and the progress of a change. Pure.

complete    generation g, n partitions
   |  begin: nothing that runs has changed; it is checked whether the states of n partitions can be divided by m
begun       generation g, n partitions, m to come          --back--> complete: generation g, n partitions
   |  switch: one record
switched    generation g + 1, m partitions, n before       no way back: snapshots are put in place, logs are marked
   |  finish
complete    generation g + 1, m partitions

Each record names the run that began the change. A run may begin after another one has, which may have died: from then
on the records of the other one are ignored. So the order of the records decides between two runs.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from google.protobuf.message import DecodeError

from bettong.errors import LogError
from bettong.identifiers import PartitionId
from bettong.v1 import partitioning_pb2

PARTITIONS_MAX = 4096
# As for a snapshot: see `snapshot`.
_OFFSET_MAX = 2**43


@dataclass(frozen=True, slots=True)
class PartitionChange:
    """A change under way. `partitions`: before the switch the new number, after it the old one."""

    partitions: int
    switched: bool = False


@dataclass(frozen=True, slots=True)
class Partitioning:
    """The partitioning of an application. `generation`: how often the number was changed.

    `begins`: by stage and partition, where the generation begins in the logs: the offset after their marks. It is empty
    for the first generation. It includes partitions that are no longer used since this generation.
    `run`: the run that began the current or the last change. `before`: how many partitions the previous generation had;
    0 for the first one.
    """

    generation: int
    partitions: int
    change: PartitionChange | None = None
    begins: Mapping[str, Sequence[int]] = field(default_factory=dict)
    run: str = ""
    before: int = 0

    def begun(self, partitions: int, run: str) -> "Partitioning":
        """The record that a run begins a change to so many partitions."""
        return replace(self, change=PartitionChange(partitions), run=run)

    def switched(self, begins: Mapping[str, Sequence[int]]) -> "Partitioning":
        """The record that the change takes effect."""
        assert self.change is not None  # noqa: S101 - called with a change that has begun
        change = PartitionChange(self.partitions, switched=True)
        to = self.change.partitions
        return Partitioning(self.generation + 1, to, change, begins, self.run, before=self.partitions)

    def completed(self) -> "Partitioning":
        """The record that no change is under way any more."""
        return replace(self, change=None)

    def follows(self, before: "Partitioning") -> bool:
        """Whether it is valid as the record after a valid one. A change begins only on the current partitioning."""
        same = (self.generation, self.partitions) == (before.generation, before.partitions)
        if self.change is not None and not self.change.switched:
            return same and not (before.change is not None and before.change.switched)
        if before.change is None or self.run != before.run:
            return False
        if self.change is None:
            return same
        to = (before.generation + 1, before.change.partitions)
        return not before.change.switched and (self.generation, self.partitions) == to

    def begin_of(self, partition: PartitionId) -> int:
        """The offset of the first record of this generation in a partition's log."""
        of_stage = self.begins.get(partition.stage, ())
        return of_stage[partition.partition] if partition.partition < len(of_stage) else 0

    def by_partition(self) -> dict[PartitionId, int]:
        """Where this generation begins, by partition."""
        return {
            PartitionId(stage, number): offset
            for stage, offsets in self.begins.items()
            for number, offset in enumerate(offsets)
        }

    def encode(self) -> bytes:
        """The bytes of a record of the topic for partitioning."""
        stored = partitioning_pb2.Partitioning(
            generation=self.generation, partitions=self.partitions, run=self.run, before=self.before
        )
        if self.change is not None:
            stored.change.partitions, stored.change.switched = self.change.partitions, self.change.switched
        for stage, offsets in self.begins.items():
            stored.begins.add(stage=stage, offsets=offsets)
        return stored.SerializeToString(deterministic=True)

    @classmethod
    def decode(cls, data: bytes) -> "Partitioning":
        """Reads a record. Raises LogError for bytes that are not a valid one."""
        try:
            stored = partitioning_pb2.Partitioning.FromString(data)
        except DecodeError as error:
            raise LogError(f"a record of the topic for partitioning is damaged ({error})") from None
        numbers = [stored.partitions, *([stored.change.partitions] if stored.HasField("change") else [])]
        numbers += [stored.before] if stored.before else []
        if not all(1 <= each <= PARTITIONS_MAX for each in numbers):
            raise LogError(
                f"a record of the topic for partitioning says {numbers}: expected 1 to {PARTITIONS_MAX} partitions;"
                " has another program written there?"
            )
        offsets = [each for of_stage in stored.begins for each in of_stage.offsets]
        if not all(1 <= each <= _OFFSET_MAX for each in offsets):
            raise LogError(
                f"a record of the topic for partitioning says offsets from {min(offsets)} to {max(offsets)}: expected"
                f" 1 to {_OFFSET_MAX}"
            )
        change = PartitionChange(stored.change.partitions, stored.change.switched)
        return cls(
            stored.generation,
            stored.partitions,
            change if stored.HasField("change") else None,
            {each.stage: tuple(each.offsets) for each in stored.begins},
            stored.run,
            stored.before,
        )


def newest(records: Iterable[Partitioning]) -> Partitioning | None:
    """The newest valid record, of all in order; None if there is none."""
    found: Partitioning | None = None
    for each in records:
        if found is None or each.follows(found):
            found = each
    return found


def fault_of(kept: Partitioning | None, application: str, partitions: int) -> str | None:
    """Why a service that is configured with so many partitions must not run; None if it may.

    `kept`: None if the number was never changed.
    """
    if kept is None:
        return None
    if kept.change is not None:
        numbers = (kept.partitions, kept.change.partitions)
        old, new = reversed(numbers) if kept.change.switched else numbers
        back = "" if kept.change.switched else ", or take it back with --back"
        return (
            f"application {application!r} is being repartitioned, from {old} to {new} partitions: finish that with"
            f" `bettong repartition --partitions {new}`{back}; nothing of it runs until then"
        )
    if kept.partitions != partitions:
        return (
            f"application {application!r} has {kept.partitions} partitions since it was repartitioned, expected"
            f" {partitions}; set BETTONG_PARTITIONS to {kept.partitions} (`--partitions {kept.partitions}`), or change"
            " the application with `bettong repartition`"
        )
    return None
