"""Increments that tests of snapshots share."""

from bettong.snapshots.chain import Increment


def whole(offset: int) -> Increment:
    """An increment that needs no other."""
    return Increment(offset, 0, offset)
