"""How often a partition of a slot is saved. Pure.

To make a snapshot stops the folding of all partitions of its slot, so those of large states are made less often.
"""

from collections.abc import Iterable

# Of a slot's time, for the snapshots of all its partitions.
_SHARE_MAX = 0.1
# Of the interval that is set: a recovery folds all records since the last snapshot again.
_TIMES_MAX = 10


def next_snapshot_s(interval_s: float, pauses_s: Iterable[float]) -> float:
    """Seconds from one snapshot of a partition to its next one.

    `pauses_s`: for how long the last snapshot of each partition of the slot stopped the folding.
    """
    return min(max(interval_s, sum(pauses_s) / _SHARE_MAX), _TIMES_MAX * interval_s)
