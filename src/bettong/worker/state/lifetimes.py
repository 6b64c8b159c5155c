"""Which states have outlived their time to live: keys, or slots of an array, in the order of their last messages.

The log clock never goes back, so a key that gets a message moves to the end of the order, and those whose time is over
are at its beginning. Finding them costs nothing for the others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from operator import itemgetter
from typing import Any, ClassVar

import numpy as np

from bettong.frames.columns import Array
from bettong.frames.frame import CLOCK_NS_MAX
from bettong.machine_code import allocating, inlined, kernel
from bettong.user_errors import ANY_ERROR
from bettong.worker.batch import Batch, NoKey

_STORED = np.dtype("<i8")
# Stands for the clock at the last message, in a slot that no key has.
NO_KEY_NS = -1
_ONE = np.uint64(1)


class Lifetimes(ABC):
    """How long the states of a table live, by one of the clocks."""

    by_event: ClassVar[bool]

    def __init__(self, ttl_ns: int) -> None:
        self._ttl_ns = ttl_ns

    def note_clock(self, log_ns: int) -> None:  # noqa: B027 - event time comes with the messages
        """Advances the log clock."""

    @property
    @abstractmethod
    def due_ns(self) -> int | None:
        """When the time to live of the next key ends, or some time before; None without a key."""


class KeyLifetimes(Lifetimes):
    """Of a table whose keys are Python objects."""

    def __init__(self, ttl_ns: int) -> None:
        super().__init__(ttl_ns)
        # The clock at each key's last message.
        self._last_ns: dict[Any, int] = {}

    @abstractmethod
    def open(self, batch: Batch, *, renews: bool) -> None:
        """Begins a batch, which later calls refer to. `renews`: its keys have messages now; else they are looked up."""

    def begin(self, key: Any) -> None:  # nothing where `restart` has done it
        """A key of the open batch got a new state."""

    def restart(self, key: Any, batch: Batch, row: int) -> None:  # nothing where `begin` does it
        """The state of a key was deleted at that row of the open batch: the next state lives by later rows."""

    def end_ns(self, key: Any) -> int:
        """When the time to live of a key ends."""
        return self._last_ns[key] + self._ttl_ns

    def forget(self, keys: Iterable[Any]) -> None:
        """The states of these keys have ended."""
        for key in keys:
            self._last_ns.pop(key, None)

    @abstractmethod
    def expired(self, clock_ns: int) -> list[Any]:
        """Advances the clock. Returns the keys whose time to live is over, and forgets them."""

    def dump(self, keys: Iterable[Any]) -> bytes:
        """The clock at the last message of each key, to be stored."""
        return np.array([self._last_ns[key] for key in keys], _STORED).tobytes()

    @abstractmethod
    def load(self, keys: Collection[Any], last_ns: Array) -> None:
        """Restores what `stored_clocks` read for these keys."""


class SlotLifetimes(Lifetimes):
    """Of a table whose keys have slots of an array."""

    def __init__(self, ttl_ns: int) -> None:
        super().__init__(ttl_ns)
        # The clock at each slot's last message.
        self._last_ns = np.zeros(0, np.int64)

    def grow(self, slots: int) -> None:
        """Makes room for that many slots."""
        more = slots - len(self._last_ns)
        if more > 0:
            self._last_ns = np.concatenate([self._last_ns, np.full(more, NO_KEY_NS)])

    @abstractmethod
    def renew(self, slots: Array, batch: Batch) -> None:
        """Renews the keys of these slots by the messages of a batch."""

    def restart(self, slots: Array, batch: Batch, rows: Array) -> None:  # where all rows have one time
        """The states at `slots[rows]` were deleted at those rows: the next states live by later rows."""

    def ends_ns(self, slots: Array) -> Array:
        """When the times to live at these slots end."""
        return self._last_ns[slots] + self._ttl_ns

    def forget(self, slots: Array) -> None:
        """The states at these slots have ended."""
        self._last_ns[slots] = NO_KEY_NS

    @abstractmethod
    def expired(self, clock_ns: int) -> Array:
        """Advances the clock. Returns the slots of keys whose time to live is over."""

    def dump(self, slots: Array | slice) -> bytes:
        """The clock at the last message of the key at each slot, to be stored."""
        return self._last_ns[slots].astype(_STORED).tobytes()

    @abstractmethod
    def load(self, slots: Array, last_ns: Array) -> None:
        """Restores what `stored_clocks` read for the keys at these slots."""


class LogKeyLifetimes(KeyLifetimes):
    """By the log clock. See KeyLifetimes."""

    by_event = False

    def __init__(self, ttl_ns: int) -> None:
        super().__init__(ttl_ns)
        self._log_ns = 0
        self._last_ns: OrderedDict[Any, int] = OrderedDict()
        self._is_ordered = True

    def note_clock(self, log_ns: int) -> None:
        """See KeyLifetimes."""
        self._log_ns = log_ns

    def open(self, batch: Batch, *, renews: bool) -> None:
        """See KeyLifetimes."""
        if renews:
            with_keys(batch, self._renew)

    def _renew(self, keys: Iterable[Any]) -> None:
        last_ns, log_ns = self._last_ns, self._log_ns
        for key in set(keys):
            last_ns[key] = log_ns
            last_ns.move_to_end(key)

    def begin(self, key: Any) -> None:
        """See KeyLifetimes."""
        # Its state may have been deleted since the batch was opened.
        if key not in self._last_ns:
            self._last_ns[key] = self._log_ns

    def expired(self, log_ns: int) -> list[Any]:
        """See KeyLifetimes."""
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
        """See KeyLifetimes."""
        self._put_in_order()
        return next((last_ns + self._ttl_ns for last_ns in self._last_ns.values()), None)

    def load(self, keys: Collection[Any], last_ns: Array) -> None:
        """See KeyLifetimes. In order at once, unless it is of older messages."""
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


class LogSlotLifetimes(SlotLifetimes):
    """By the log clock. See SlotLifetimes."""

    by_event = False

    def __init__(self, ttl_ns: int) -> None:
        super().__init__(ttl_ns)
        self._log_ns = 0
        # A doubly linked list in the order of age: for each node the one before and the one after. A slot's node is its
        # number + 1; node 0 is the beginning and the end. A node out of the list stands before and after itself.
        self._ring = _no_ring(0)
        self._is_ordered = True

    def grow(self, slots: int) -> None:
        """See SlotLifetimes."""
        super().grow(slots)
        if len(self._ring) <= slots:
            self._ring = np.concatenate([self._ring, _no_ring(slots)[len(self._ring) :]])

    def note_clock(self, log_ns: int) -> None:
        """See SlotLifetimes."""
        self._log_ns = log_ns

    def renew(self, slots: Array, _batch: Batch) -> None:
        """See SlotLifetimes."""
        self._last_ns[slots] = self._log_ns
        _move_to_end(slots, self._ring)

    def expired(self, log_ns: int) -> Array:
        """See SlotLifetimes."""
        self._log_ns = log_ns
        self._put_in_order()
        found: Array = _first_until(log_ns - self._ttl_ns, self._ring, self._last_ns)
        return found

    @property
    def due_ns(self) -> int | None:
        """See SlotLifetimes."""
        self._put_in_order()
        first = int(self._ring[0, 1])
        return int(self._last_ns[first - 1]) + self._ttl_ns if first else None

    def forget(self, slots: Array) -> None:
        """See SlotLifetimes."""
        super().forget(slots)
        _take_out(slots, self._ring)

    def load(self, slots: Array, last_ns: Array) -> None:
        """See SlotLifetimes."""
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


def with_keys(batch: Batch, use: Callable[[list[Any]], object]) -> None:
    """Calls `use` with the keys of a batch; if it raises, once more, without those that could not be computed."""
    keys = batch.key_values()
    try:
        use(keys)
    except ANY_ERROR:  # a NoKey raises what the user's function raised
        use([key for key in keys if not isinstance(key, NoKey)])


def stored_clocks(data: bytes, keys: int, log_ns: int, *, by_event: bool = False) -> Array:
    """Reads what `dump` returned for that many keys, when the clock that they live by was at `log_ns`.

    States that were saved without a time to live (`data` is empty) begin to age at that moment. Raises ValueError for
    what cannot have been saved then. `by_event`: messages may be of any time, also ahead of the watermark.
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
    """An empty list, for that many slots."""
    return np.repeat(np.arange(slots + 1, dtype=np.uint32), 2).reshape(-1, 2)


@inlined
def _unlink(node: Any, ring: Any) -> Any:
    before, after = np.uint64(ring[node, 0]), np.uint64(ring[node, 1])
    ring[before, 1], ring[after, 0] = after, before


@kernel
def _move_to_end(slots: Any, ring: Any) -> None:
    for row in range(len(slots)):
        node = np.uint64(slots[row]) + _ONE
        _unlink(node, ring)
        last = np.uint64(ring[0, 0])
        ring[last, 1], ring[node, 0] = node, last
        ring[node, 1], ring[0, 0] = 0, node


@kernel
def _take_out(slots: Any, ring: Any) -> None:
    for row in range(len(slots)):
        node = np.uint64(slots[row]) + _ONE
        _unlink(node, ring)
        ring[node, 0], ring[node, 1] = node, node


@allocating
def _first_until(until_ns: Any, ring: Any, last_ns: Any) -> Any:
    """The slots at the beginning of the list whose last message is not later than `until_ns`."""
    count, node = 0, np.uint64(ring[0, 1])
    while node and last_ns[node - _ONE] <= until_ns:
        count += 1
        node = np.uint64(ring[node, 1])
    found, node = np.empty(count, np.int32), np.uint64(ring[0, 1])
    for index in range(count):
        found[index] = node - _ONE
        node = np.uint64(ring[node, 1])
    return found
