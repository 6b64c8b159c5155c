"""Assigns partitions to slots. Pure: takes the members and the current assignment, returns the next one.

Each stage is balanced separately, for the stages of an application differ in load: the members' numbers of its
partitions differ by at most one. A partition keeps its slot unless that slot is lost or has too many.
"""

from collections.abc import Collection, Iterable, Mapping
from itertools import groupby

from bettong.identifiers import PartitionId


def assign_partitions(
    partitions: Iterable[PartitionId], members: Collection[int], current: Mapping[PartitionId, int]
) -> dict[PartitionId, int]:
    """The slot of each partition. Without members the current assignment stays, as no slot could take a partition."""
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
    """Assigns one stage. `total`: members' partitions of earlier stages; those with fewer are first to get one more."""
    kept: dict[int, list[PartitionId]] = {slot: [] for slot in total}
    unassigned: list[PartitionId] = []
    for partition in partitions:
        slot = current.get(partition)
        (kept[slot] if slot is not None and slot in kept else unassigned).append(partition)
    share, more = divmod(len(partitions), len(kept))
    # The extra partitions go to members that already hold one more, then to those with the fewest in total.
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
