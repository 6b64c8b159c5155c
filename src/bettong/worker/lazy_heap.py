"""A heap of keys by time, whose entries may be out of date: for times that change, and keys that go.

A key's time is never before its entry's. The two are compared only when the entry comes first: then an entry that is
too early moves to the key's time, and one whose key has no time, or an earlier one, is dropped. So it costs nothing
when a time becomes later.
"""

from collections.abc import Callable, Hashable, Iterable
from heapq import heapify, heappop, heappush, heapreplace
from itertools import count
from typing import Generic, TypeVar

from bettong.application.timers import NEVER

_Key = TypeVar("_Key", bound=Hashable)

# Entries allowed beyond twice the keys: so few that rebuilding the heap would cost more than they do.
_SPARE = 64


class LazyHeap(Generic[_Key]):
    """Finds the earliest time. `time_of`: a key's current time; NEVER where it has none."""

    def __init__(self, time_of: Callable[[_Key], int]) -> None:
        self._time_of = time_of
        # (time, number, key): numbers, so that keys are never compared.
        self._entries: list[tuple[int, int, _Key]] = []
        self._numbers = count()

    def __len__(self) -> int:
        """How many entries there are, out-of-date ones included."""
        return len(self._entries)

    @property
    def bound_ns(self) -> int:
        """The earliest time, or some time before; NEVER without an entry."""
        return self._entries[0][0] if self._entries else NEVER

    def push(self, key: _Key, at_ns: int) -> None:
        """Sets the time of a key. Must be called unless the key had an earlier one."""
        heappush(self._entries, (at_ns, next(self._numbers), key))

    def first(self, until_ns: int = NEVER) -> tuple[int, _Key] | None:
        """The earliest time and its key; None where none is at `until_ns` or before."""
        entries, time_of = self._entries, self._time_of
        while entries and entries[0][0] <= until_ns:
            at_ns, number, key = entries[0]
            now_ns = time_of(key)
            if now_ns == at_ns:
                return at_ns, key
            if at_ns < now_ns < NEVER:
                heapreplace(entries, (now_ns, number, key))
            else:
                heappop(entries)
        return None

    def drop_first(self) -> None:
        """Drops the entry that `first` found."""
        heappop(self._entries)

    def compact(self, keys: int) -> None:
        """Bounds the entries to twice as many as `keys`, those that have a time. Call it when keys come or go."""
        if len(self._entries) > 2 * keys + _SPARE:
            times = {key: self._time_of(key) for _, _, key in self._entries}
            self.rebuild((key, at_ns) for key, at_ns in times.items() if at_ns != NEVER)

    def rebuild(self, times: Iterable[tuple[_Key, int]]) -> None:
        """Replaces all entries: by the keys that have a time, and their times."""
        self._entries = [(at_ns, next(self._numbers), key) for key, at_ns in times]
        heapify(self._entries)
