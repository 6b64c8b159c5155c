"""How far the clients, or the partitions of the stages before, have come in event time."""

from __future__ import annotations

from collections.abc import Collection

from bettong.identifiers import Origin, producer_of


class Origins:
    """How far each origin has come. None of them ends, or falls idle. `awaited`: those known before they send."""

    def __init__(self, producers: Collection[str], awaited: Collection[str]) -> None:
        self._producers = producers
        self._reached = dict.fromkeys(awaited, 0)
        self.watermark_ns = 0

    def reach(self, origin: str, watermark_ns: int) -> None:
        """An origin has come so far."""
        if producer_of(Origin(origin)) in self._producers:
            self._reached[origin] = max(self._reached.get(origin, 0), watermark_ns)
            self.watermark_ns = max(self.watermark_ns, min(self._reached.values()))

    def reached(self, origin: str, own_ns: int) -> int:
        """How far all are when that one has come so far."""
        return min([own_ns, *(each for name, each in self._reached.items() if name != origin)])
