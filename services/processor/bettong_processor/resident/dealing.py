"""Which slot gets which partition. Pure: members and the present deal in, the next deal out.

Each stage is dealt by itself, for the stages of an application differ in load: every member gets as many of its
partitions as any other, give or take one. A partition stays where it is unless its slot is gone or has too many.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import groupby

Place = str


def place_of(stage: str, partition: int) -> Place:
    """How a partition of a stage is called among members."""
    return f"{stage}/{partition}"


def stage_of(place: Place) -> tuple[str, int]:
    """The inverse of `place_of`."""
    stage, _, partition = place.rpartition("/")
    return stage, int(partition)


def dealt(
    places: Sequence[Place], members: Collection[int], current: Mapping[Place, int]
) -> dict[Place, int]:
    """The slot of each place. Without any member the present deal, for there is nobody to hold anything."""
    if not members:
        return dict(current)
    total = dict.fromkeys(sorted(members), 0)
    found: dict[Place, int] = {}
    ordered = sorted(places, key=stage_of)
    for _, group in groupby(ordered, key=lambda place: stage_of(place)[0]):
        stage = _stage_dealt(list(group), total, current)
        for slot in stage.values():
            total[slot] += 1
        found |= stage
    return found


def _stage_dealt(
    places: list[Place], total: Mapping[int, int], current: Mapping[Place, int]
) -> dict[Place, int]:
    """One stage. `total`: what members got of earlier stages; who got less is the first to get one more."""
    kept: dict[int, list[Place]] = {slot: [] for slot in total}
    loose: list[Place] = []
    for place in places:
        slot = current.get(place)
        (kept[slot] if slot is not None and slot in kept else loose).append(place)
    share, more = divmod(len(places), len(kept))
    # One more goes to who has it already, else to who has least.
    ranked = sorted(kept, key=lambda slot: (-min(len(kept[slot]), share + 1), total[slot], slot))
    quota = {slot: share + (rank < more) for rank, slot in enumerate(ranked)}
    for slot, held in kept.items():
        loose += held[quota[slot] :]
        del held[quota[slot] :]
    loose.sort(key=stage_of)
    for slot in ranked:
        while len(kept[slot]) < quota[slot]:
            kept[slot].append(loose.pop(0))
    return {place: slot for slot, held in kept.items() for place in held}
