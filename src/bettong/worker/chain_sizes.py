"""How large the increments are that make a partition's state: see `bettong.snapshots.chain`."""

from __future__ import annotations


class ChainSizes:
    """Of the newest chain, in bytes; 0 before the first increment. Bounded as chains are."""

    def __init__(self) -> None:
        self._by_offset: dict[int, int] = {}

    def note(self, offset: int, root: int, size: int) -> None:
        """An increment was made, or taken over; nothing before its root is needed any more."""
        kept = {each: own for each, own in self._by_offset.items() if root <= each < offset}
        self._by_offset = {**kept, offset: size}

    @property
    def total(self) -> int:
        """What a recovery reads: the state, and what has changed in it since its root."""
        return sum(self._by_offset.values())
