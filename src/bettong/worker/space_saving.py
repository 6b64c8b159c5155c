"""Space-Saving: the heaviest keys of a stream, in bounded memory (Metwally, Agrawal, El Abbadi, ICDT 2005).

A new key takes the place of the lightest one, and inherits its count, as its error:

    capacity 2    a a b c    {a: 2, b: 1}, then c takes the place of b: {a: 2, c: 2, of which up to 1 is not c's}

Whatever the stream, with W the sum of its weights:

- every key whose weight is more than W / capacity is there;
- a key's count is at least its weight, and too high by its error at most, which is W / capacity at most;
- the counts add up to W.
"""

from __future__ import annotations

from collections.abc import Hashable
from heapq import heappush, heapreplace
from typing import Generic, NamedTuple, TypeVar

Key = TypeVar("Key", bound=Hashable)


class HeavyKey(NamedTuple, Generic[Key]):
    """A key that has `weight` at most, and `weight - error` at least."""

    key: Key
    weight: int
    error: int


class SpaceSaving(Generic[Key]):
    """Counts at most `capacity` keys, one or more. `add` takes O(log capacity), as a rule."""

    __slots__ = ("_capacity", "_counts", "_errors", "_lightest", "total")

    def __init__(self, capacity: int) -> None:
        self.total = 0
        self._capacity = capacity
        self._counts: dict[Key, int] = {}
        self._errors: dict[Key, int] = {}
        # A heap with each key once, by an earlier count: updated when it comes to the top.
        self._lightest: list[tuple[int, int, Key]] = []

    def add(self, key: Key, weight: int = 1) -> None:
        """Counts a key once more, with a weight of 1 or more."""
        counts = self._counts
        self.total += weight
        if key in counts:
            counts[key] += weight
        elif len(counts) < self._capacity:
            counts[key], self._errors[key] = weight, 0
            heappush(self._lightest, (weight, len(counts), key))
        else:
            error, index, lightest = self._find_lightest()
            del counts[lightest], self._errors[lightest]
            counts[key], self._errors[key] = error + weight, error
            heapreplace(self._lightest, (error + weight, index, key))

    def heaviest(self, keys: int) -> list[HeavyKey[Key]]:
        """At most that many keys, the highest count first."""
        found = sorted(self._counts.items(), key=lambda item: item[1], reverse=True)[:keys]
        return [HeavyKey(key, count, self._errors[key]) for key, count in found]

    def _find_lightest(self) -> tuple[int, int, Key]:
        heap, counts = self._lightest, self._counts
        while True:
            noted, index, key = heap[0]
            if noted == counts[key]:
                return heap[0]
            heapreplace(heap, (counts[key], index, key))
