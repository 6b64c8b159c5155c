"""Which states have outlived their time to live: keys, or slots of an array, in the order of their last messages.

The log clock never goes back, so a key that has a message goes to the end of the order, and those whose time is over
are at its beginning. To find them costs nothing for those that live.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable
from operator import itemgetter
from typing import Any

import numba
import numpy as np

from bettong.frames.columns import Array
from bettong.frames.frame import CLOCK_NS_MAX

_STORED = np.dtype("<i8")
# In place of the clock at its last message: of a slot that no key has.
NO_KEY_NS = -1
_ONE = np.uint64(1)


class KeyClocks:
    """Of a table whose keys are Python objects: the clock at each key's last message."""

    def __init__(self, ttl_ns: int) -> None:
        self._ttl_ns = ttl_ns
        self._last_ns: dict[Any, int] = {}

    def end_ns(self, key: Any) -> int:
        """When the time of a key is over."""
        return self._last_ns[key] + self._ttl_ns

    def forget(self, keys: Iterable[Any]) -> None:
        """The states of these keys have ended."""
        for key in keys:
            self._last_ns.pop(key, None)

    def dump(self, keys: Iterable[Any]) -> bytes:
        """The clock at the last message of each key, to be stored."""
        return np.array([self._last_ns[key] for key in keys], _STORED).tobytes()


class SlotClocks:
    """Of a table whose keys have slots of an array: the clock at each slot's last message."""

    def __init__(self, ttl_ns: int) -> None:
        self._ttl_ns = ttl_ns
        self._last_ns = np.zeros(0, np.int64)

    def grow(self, slots: int) -> None:
        """There are so many slots now."""
        more = slots - len(self._last_ns)
        if more > 0:
            self._last_ns = np.concatenate([self._last_ns, np.full(more, NO_KEY_NS)])

    def ends_ns(self, slots: Array) -> Array:
        """When the times of the keys of these slots are over."""
        return self._last_ns[slots] + self._ttl_ns

    def forget(self, slots: Array) -> None:
        """The states at these slots have ended."""
        self._last_ns[slots] = NO_KEY_NS

    def dump(self, slots: Array | slice) -> bytes:
        """The clock at the last message of the key at each slot, to be stored."""
        return self._last_ns[slots].astype(_STORED).tobytes()


class KeyLifetimes(KeyClocks):
    """By the log clock, of a table whose keys are Python objects."""

    def __init__(self, ttl_ns: int) -> None:
        super().__init__(ttl_ns)
        self._log_ns = 0
        self._last_ns: OrderedDict[Any, int] = OrderedDict()
        self._is_ordered = True

    def note_clock(self, log_ns: int) -> None:
        """The log clock is there now."""
        self._log_ns = log_ns

    def renew(self, keys: Iterable[Any]) -> None:
        """These keys have a message now."""
        last_ns, log_ns = self._last_ns, self._log_ns
        for key in set(keys):
            last_ns[key] = log_ns
            last_ns.move_to_end(key)

    def begin(self, key: Any) -> None:
        """This key, which has a message now, has a new state."""
        if key not in self._last_ns:
            self._last_ns[key] = self._log_ns

    def expired(self, log_ns: int) -> list[Any]:
        """The log clock is there now: the keys whose time is over. They are forgotten."""
        self._log_ns = log_ns
        self._put_in_order()
        found = []
        for key, last_ns in self._last_ns.items():
            if log_ns - last_ns < self._ttl_ns:
                break
            found.append(key)
        self.forget(found)
        return found

    @property
    def due_ns(self) -> int | None:
        """The log clock at which the next key's time is over; None without a key."""
        self._put_in_order()
        return next((last_ns + self._ttl_ns for last_ns in self._last_ns.values()), None)

    def load(self, keys: Collection[Any], last_ns: Array) -> None:
        """Takes over what `stored_clocks` read for these keys: in order at once, unless it is of older messages."""
        known = self._last_ns
        newest_ns = known[next(reversed(known))] if known else 0
        moved = [each for each in zip(keys, last_ns.tolist(), strict=True) if known.get(each[0]) != each[1]]
        moved.sort(key=itemgetter(1))
        for key, at_ns in moved:
            known[key] = at_ns
            known.move_to_end(key)
        if moved and moved[0][1] < newest_ns:
            self._is_ordered = False

    def _put_in_order(self) -> None:
        if not self._is_ordered:
            self._last_ns = OrderedDict(sorted(self._last_ns.items(), key=itemgetter(1)))
            self._is_ordered = True


class SlotLifetimes(SlotClocks):
    """By the log clock, of a table whose keys have slots of an array."""

    def __init__(self, ttl_ns: int) -> None:
        super().__init__(ttl_ns)
        self._log_ns = 0
        # A ring of places, a slot's number + 1: for each the place before and the one after. Place 0 is its beginning
        # and end; a place that is not in it stands before and after itself.
        self._ring = _no_ring(0)
        self._is_ordered = True

    def grow(self, slots: int) -> None:
        """There are so many slots now."""
        super().grow(slots)
        if len(self._ring) <= slots:
            self._ring = np.concatenate([self._ring, _no_ring(slots)[len(self._ring) :]])

    def note_clock(self, log_ns: int) -> None:
        """The log clock is there now."""
        self._log_ns = log_ns

    def renew(self, slots: Array) -> None:
        """The keys of these slots have a message now."""
        self._last_ns[slots] = self._log_ns
        _move_to_end(slots, self._ring)

    def expired(self, log_ns: int) -> Array:
        """The log clock is there now: the slots of keys whose time is over."""
        self._log_ns = log_ns
        self._put_in_order()
        found: Array = _first_until(log_ns - self._ttl_ns, self._ring, self._last_ns)
        return found

    @property
    def due_ns(self) -> int | None:
        """The log clock at which the next key's time is over; None without a key."""
        self._put_in_order()
        first = int(self._ring[0, 1])
        return int(self._last_ns[first - 1]) + self._ttl_ns if first else None

    def forget(self, slots: Array) -> None:
        """The states at these slots have ended."""
        super().forget(slots)
        _take_out(slots, self._ring)

    def load(self, slots: Array, last_ns: Array) -> None:
        """Takes over what `stored_clocks` read for the keys at these slots."""
        last = int(self._ring[0, 0])
        newest_ns = self._last_ns[last - 1] if last else 0
        moved = np.flatnonzero(self._last_ns[slots] != last_ns)
        moved = moved[np.argsort(last_ns[moved], kind="stable")]
        self._last_ns[slots] = last_ns
        _move_to_end(slots[moved], self._ring)
        if len(moved) and last_ns[moved[0]] < newest_ns:
            self._is_ordered = False

    def _put_in_order(self) -> None:
        if not self._is_ordered:
            known = np.flatnonzero(self._last_ns != NO_KEY_NS).astype(np.int32)
            self._ring = _no_ring(len(self._last_ns))
            _move_to_end(known[np.argsort(self._last_ns[known], kind="stable")], self._ring)
            self._is_ordered = True


def stored_clocks(data: bytes, keys: int, log_ns: int, *, by_event: bool = False) -> Array:
    """What `dump` gave for so many keys, when the clock that they live by was at `log_ns`.

    A state that was saved without a time to live (`data` is empty) begins to age at that moment. Raises ValueError for
    what cannot have been saved then. `by_event`: messages may be of any time, ahead of the watermark, too.
    """
    found = np.frombuffer(data, _STORED) if data else np.full(keys, log_ns, _STORED)
    if len(found) != keys:
        raise ValueError(f"clocks of {len(found)} keys, expected {keys}")
    if keys and not 0 <= found.min() <= found.max() <= (CLOCK_NS_MAX if by_event else log_ns):
        raise ValueError(
            f"a key's last message at {found.min()} to {found.max()} ns, at a log clock of {log_ns}"
        )
    return found


def _no_ring(slots: int) -> Array:
    """A ring with no place in it but the first, for so many slots."""
    return np.repeat(np.arange(slots + 1, dtype=np.uint32), 2).reshape(-1, 2)


@numba.njit(cache=True, inline="always")
def _unlink(place: Any, ring: Any) -> Any:
    before, after = np.uint64(ring[place, 0]), np.uint64(ring[place, 1])
    ring[before, 1], ring[after, 0] = after, before


@numba.njit(cache=True)
def _move_to_end(slots: Any, ring: Any) -> None:
    for row in range(len(slots)):
        place = np.uint64(slots[row]) + _ONE
        _unlink(place, ring)
        last = np.uint64(ring[0, 0])
        ring[last, 1], ring[place, 0] = place, last
        ring[place, 1], ring[0, 0] = 0, place


@numba.njit(cache=True)
def _take_out(slots: Any, ring: Any) -> None:
    for row in range(len(slots)):
        place = np.uint64(slots[row]) + _ONE
        _unlink(place, ring)
        ring[place, 0], ring[place, 1] = place, place


@numba.njit(cache=True)
def _first_until(until_ns: Any, ring: Any, last_ns: Any) -> Any:
    """The slots at the beginning of the ring whose last message is not later than `until_ns`."""
    count, place = 0, np.uint64(ring[0, 1])
    while place and last_ns[place - _ONE] <= until_ns:
        count += 1
        place = np.uint64(ring[place, 1])
    found, place = np.empty(count, np.int32), np.uint64(ring[0, 1])
    for index in range(count):
        found[index] = place - _ONE
        place = np.uint64(ring[place, 1])
    return found
