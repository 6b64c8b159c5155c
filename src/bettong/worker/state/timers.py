"""Which timers of states are due: found without a look at those that are not.

| of a table of | kept                                                           | to find what is due                |
| ------------- | -------------------------------------------------------------- | ---------------------------------- |
| objects       | a heap of (time, key), with entries that no longer hold in it  | takes the heap's beginning off     |
| records       | bounds of blocks of slots: `block_bounds`                      | looks through slots of due blocks  |

The times themselves are fields of the states. So nothing of this is saved: it is made anew from restored states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from heapq import heapify, heappop, heappush
from itertools import count
from operator import attrgetter, index
from typing import Any, NamedTuple

import numpy as np

from bettong.application.timers import NEVER, Clock, StateTimer
from bettong.frames.columns import Array
from bettong.user_errors import ANY_ERROR
from bettong.worker.due import Due
from bettong.worker.fired import order_of_key
from bettong.worker.state.block_bounds import BlockBounds

# Entries of a heap beyond twice its timers: so few that to make it anew would cost more than they do.
_SPARE = 64
# The first nanosecond of 64 bits.
_EARLIEST = -NEVER - 1


class DueTimer(NamedTuple):
    """A timer that fires: of which key, and which of the computation's timers."""

    at_ns: int
    key: Any
    timer: int


class KeyTimers:
    """Of a table whose keys and states are Python objects."""

    def __init__(self, timers: Sequence[StateTimer]) -> None:
        self._fields = [timer.field for timer in timers]
        self._clocks = [timer.clock for timer in timers]
        self._read: Callable[[Any], Any] = attrgetter(*self._fields)
        self._is_single = len(timers) == 1
        self._never = (NEVER,) * len(timers)
        # Keys whose states may have changed since what is due was asked for.
        self._noted: dict[Any, Any] = {}
        # Of each key that has a timer set, the times of all of them.
        self._times: dict[Any, tuple[int, ...]] = {}
        self._heaps: dict[Clock, list[tuple[int, int, Any, int]]] = {clock: [] for clock in Clock}
        # In an entry before its key, so that keys are never compared.
        self._numbers = count()

    def note(self, key: Any, state: Any) -> None:
        """The state of a key may have changed. Raises what `times_of` raises: then the timer is NEVER."""
        # Nearly always one timer, and a time: told without making a tuple of it.
        found = self._read(state) if self._is_single else None
        if type(found) is not int or not _EARLIEST <= found <= NEVER:
            self.times_of(state)
        self._noted[key] = state

    def _look(self) -> None:
        """Looks at the states that may have changed: once, however many messages a key had."""
        noted, self._noted = self._noted, {}
        for key, state in noted.items():
            self._set(key, self._mended(state))

    def _set(self, key: Any, times: tuple[int, ...]) -> None:
        known = self._times.get(key, self._never)
        if times == known:
            return
        if times == self._never:
            del self._times[key]
            return
        self._times[key] = times
        for timer, at_ns in enumerate(times):
            if at_ns != known[timer] and at_ns != NEVER:
                heappush(self._heaps[self._clocks[timer]], (at_ns, next(self._numbers), key, timer))
        self._tidy()

    def note_failed(self, key: Any, state: Any) -> None:
        """The same after a call that raised, which is told already: what is no time is NEVER, and that is all."""
        self._mended(state)
        self._noted[key] = state

    def _mended(self, state: Any) -> tuple[int, ...]:
        """The times of a state, after what is none became NEVER."""
        for _ in self._fields:
            with suppress(ValueError):
                return self.times_of(state)
        return self.times_of(state)

    def times_of(self, state: Any) -> tuple[int, ...]:
        """The times of a state's timers. Raises ValueError for what is no time; that timer is NEVER from then on."""
        times: Any
        try:
            times = self._read(state)
        except AttributeError:  # one is deleted
            times = tuple(getattr(state, field, None) for field in self._fields)
        else:
            times = times if len(self._fields) > 1 else (times,)
        for field, at_ns in zip(self._fields, times, strict=True):
            if type(at_ns) is not int or not _EARLIEST <= at_ns <= NEVER:
                _mend(state, field, at_ns)
                return self.times_of(state)
        found: tuple[int, ...] = times
        return found

    def forget(self, keys: Iterable[Any]) -> None:
        """The states of these keys have ended."""
        for key in keys:
            self._times.pop(key, None)
            self._noted.pop(key, None)
        self._tidy()

    def rebuild(self, states: Mapping[Any, Any]) -> None:
        """Takes over restored states."""
        self._noted = {}
        found = ((key, self.times_of(state)) for key, state in states.items())
        self._times = {key: times for key, times in found if times != self._never}
        self._order()

    @property
    def due(self) -> Due:
        """When the first one is due."""
        self._look()
        log, event = (self._first(self._heaps[clock]) for clock in (Clock.LOG, Clock.EVENT))
        return Due(log, event)

    def take(self, log_ns: int, watermark_ns: int) -> list[DueTimer]:
        """Of each key that has timers due, the first one; by time, then by key. It is NEVER for this index."""
        self._look()
        found: dict[Any, DueTimer] = {}
        later: list[tuple[Clock, DueTimer]] = []
        for clock, until_ns in ((Clock.LOG, log_ns), (Clock.EVENT, watermark_ns)):
            heap = self._heaps[clock]
            while self._first(heap) <= min(until_ns, NEVER - 1):
                at_ns, _, key, timer = heappop(heap)
                due = DueTimer(at_ns, key, timer)
                first = found.setdefault(key, due)
                if (at_ns, timer) < (first.at_ns, first.timer):
                    found[key], due = due, first
                if due != found[key]:
                    later.append((self._clocks[due.timer], due))
        for clock, due in later:
            heappush(self._heaps[clock], (due.at_ns, next(self._numbers), due.key, due.timer))
        for due in found.values():
            self._unset(due)
        return sorted(found.values(), key=lambda due: (due.at_ns, order_of_key(due.key)))

    def _unset(self, due: DueTimer) -> None:
        times = self._times.pop(due.key)
        times = (*times[: due.timer], NEVER, *times[due.timer + 1 :])
        if times != self._never:
            self._times[due.key] = times

    def _first(self, heap: list[tuple[int, int, Any, int]]) -> int:
        """The time of the first entry that still holds; those before it are dropped."""
        while heap:
            at_ns, _, key, timer = heap[0]
            if self._times.get(key, self._never)[timer] == at_ns:
                return at_ns
            heappop(heap)
        return NEVER

    def _tidy(self) -> None:
        if sum(map(len, self._heaps.values())) > 2 * len(self._never) * len(self._times) + _SPARE:
            self._order()

    def _order(self) -> None:
        """Heaps of what holds, and nothing else."""
        for heap in self._heaps.values():
            heap.clear()
        for key, times in self._times.items():
            for timer, at_ns in enumerate(times):
                if at_ns != NEVER:
                    self._heaps[self._clocks[timer]].append((at_ns, next(self._numbers), key, timer))
        for heap in self._heaps.values():
            heapify(heap)


class SlotTimers:
    """Of a table whose keys have slots of an array of records."""

    def __init__(self, timers: Sequence[StateTimer]) -> None:
        self.fields = [timer.field for timer in timers]
        self._clocks = [timer.clock for timer in timers]
        self._bounds = [BlockBounds() for _ in timers]
        # Slots whose states may have changed; None: all may have.
        self._changed: Array | None = None

    def note(self, slots: Array, states: Array) -> None:
        """The states at these slots may change from now on, until what is due is asked for."""
        if self._changed is not None:
            self._lower(states)
            self._changed = slots

    def rebuild(self) -> None:
        """All states are others."""
        self._changed = None

    def due(self, states: Array) -> Due:
        """When the first one is due, or some time before."""
        self._lower(states)
        log, event = (
            min(
                (each.first_ns for each, own in zip(self._bounds, self._clocks, strict=True) if own is clock),
                default=NEVER,
            )
            for clock in (Clock.LOG, Clock.EVENT)
        )
        return Due(log, event)

    def take(self, log_ns: int, watermark_ns: int, states: Array) -> tuple[Array, Array, Array]:
        """Slots, times and timers: of each key that has timers due, the first one. Its field of the state is NEVER."""
        self._lower(states)
        parts = []
        for timer, clock in enumerate(self._clocks):
            until_ns = min(log_ns if clock is Clock.LOG else watermark_ns, NEVER - 1)
            times_ns = states[self.fields[timer]]
            slots = self._bounds[timer].due(times_ns, until_ns)
            parts.append((slots, times_ns[slots], np.full(len(slots), timer)))
        slots, at_ns, timers = (np.concatenate(each) for each in zip(*parts, strict=True))
        if len(parts) > 1:
            order = np.lexsort((timers, at_ns, slots))
            slots, at_ns, timers = slots[order], at_ns[order], timers[order]
            first = np.concatenate([slots[:1] == slots[:1], np.diff(slots) > 0])
            self._changed = slots[~first]
            slots, at_ns, timers = slots[first], at_ns[first], timers[first]
        for timer, field in enumerate(self.fields):
            states[field][slots[timers == timer]] = NEVER
        return slots, at_ns, timers

    def _lower(self, states: Array) -> None:
        """Brings the bounds up to the states that have changed."""
        for field, bounds in zip(self.fields, self._bounds, strict=True):
            if self._changed is None:
                bounds.find(states[field])
            else:
                bounds.grow(len(states))
                bounds.lower(states[field], self._changed)
        self._changed = np.empty(0, np.int32)


def without_never(shown: Any, timers: Sequence[StateTimer]) -> Any:
    """A state as JSON can hold it, where a timer that is not set is null."""
    for timer in timers if isinstance(shown, dict) else ():
        if shown.get(timer.field) == NEVER:
            shown[timer.field] = None
    return shown


def _mend(state: Any, field: str, at_ns: Any) -> None:
    """Makes an int of a number of another type. Raises ValueError for what is no time, and makes it NEVER."""
    try:
        found = index(at_ns)
    except ANY_ERROR:
        found = NEVER + 1
    if _EARLIEST <= found <= NEVER:
        object.__setattr__(state, field, found)
        return
    object.__setattr__(state, field, NEVER)
    raise ValueError(
        f"field {field!r}: {at_ns!r:.60} is no time: expected nanoseconds as a whole number of 64 bits, or"
        " bettong.NEVER"
    )
