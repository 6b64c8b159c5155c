"""Which slot gets which partition. Pure: members and the present assignment in, the next assignment out.

Each stage is assigned by itself, for the stages of an application differ in load: every member gets as many of its
partitions as any other, give or take one. A partition stays where it is unless its slot is gone or has too many.
"""

from collections.abc import Collection, Iterable, Mapping
from itertools import groupby

from bettong.identifiers import PartitionId


def assign_partitions(
    partitions: Iterable[PartitionId], members: Collection[int], current: Mapping[PartitionId, int]
) -> dict[PartitionId, int]:
    """The slot of each partition. Without any member the present assignment: nobody is there to hold anything."""
    if not members:
        return dict(current)
    total = dict.fromkeys(sorted(members), 0)
    assigned: dict[PartitionId, int] = {}
    for _, group in groupby(sorted(partitions), key=lambda each: each.stage):
        stage = _assign_stage(list(group), total, current)
        for slot in stage.values():
            total[slot] += 1
        assigned |= stage
    return assigned


def _assign_stage(
    partitions: list[PartitionId], total: Mapping[int, int], current: Mapping[PartitionId, int]
) -> dict[PartitionId, int]:
    """One stage. `total`: what members got of earlier stages; the one with less is the first to get one more."""
    kept: dict[int, list[PartitionId]] = {slot: [] for slot in total}
    unassigned: list[PartitionId] = []
    for partition in partitions:
        slot = current.get(partition)
        (kept[slot] if slot is not None and slot in kept else unassigned).append(partition)
    share, more = divmod(len(partitions), len(kept))
    # One more goes to the member that has it already, else to the one with least.
    ranked = sorted(kept, key=lambda slot: (-min(len(kept[slot]), share + 1), total[slot], slot))
    quota = {slot: share + (rank < more) for rank, slot in enumerate(ranked)}
    for slot, held in kept.items():
        unassigned += held[quota[slot] :]
        del held[quota[slot] :]
    unassigned.sort()
    for slot in ranked:
        while len(kept[slot]) < quota[slot]:
            kept[slot].append(unassigned.pop(0))
    return {partition: slot for slot, held in kept.items() for partition in held}
