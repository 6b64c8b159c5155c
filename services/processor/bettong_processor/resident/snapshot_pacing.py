"""How often a partition of a slot is saved. Pure.

Making a snapshot pauses the folding of all partitions of the slot, so large states are saved less often.
"""

from collections.abc import Iterable

# The most of a slot's time that the snapshots of all its partitions may take.
_SHARE_MAX = 0.1
# Bounds the interval as a multiple of the setting: a recovery replays all records since the last snapshot.
_TIMES_MAX = 10


def next_snapshot_s(interval_s: float, pauses_s: Iterable[float]) -> float:
    """Seconds between two snapshots of a partition.

    `pauses_s`: how long the snapshots of each partition of the slot pause the folding.
    """
    return min(max(interval_s, sum(pauses_s) / _SHARE_MAX), _TIMES_MAX * interval_s)
