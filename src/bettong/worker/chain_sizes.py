"""The sizes of the increments that make up a partition's state: see `bettong.snapshots.chain`."""

from __future__ import annotations


class ChainSizes:
    """The increments of the newest chain, in bytes. Bounded as chains are."""

    def __init__(self) -> None:
        self._by_offset: dict[int, int] = {}

    def note(self, offset: int, root: int, size: int) -> None:
        """Adds an increment that was made or restored; those before its root are no longer needed."""
        kept = {each: own for each, own in self._by_offset.items() if root <= each < offset}
        self._by_offset = {**kept, offset: size}

    @property
    def total(self) -> int:
        """What a recovery reads: the state, and what has changed in it since its root. 0 before the first increment."""
        return sum(self._by_offset.values())
