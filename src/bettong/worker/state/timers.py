"""Which timers of states are due: found without reading those that are not.

| of a table of | kept                                                           | to find what is due                |
| ------------- | -------------------------------------------------------------- | ---------------------------------- |
| objects       | a heap of keys for each timer: `lazy_heap`                     | takes the heap's beginning off     |
| records       | bounds of blocks of slots: `block_bounds`                      | looks through slots of due blocks  |

The times themselves are fields of the states. So none of this is saved: it is rebuilt from restored states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from operator import attrgetter, index
from typing import Any, NamedTuple

import numpy as np

from bettong.application.timers import NEVER, Clock, StateTimer
from bettong.frames.columns import Array
from bettong.user_errors import ANY_ERROR
from bettong.worker.due import Due
from bettong.worker.fired import order_of_key
from bettong.worker.lazy_heap import LazyHeap
from bettong.worker.state.block_bounds import BlockBounds

# The earliest time that 64 bits hold.
_EARLIEST = -NEVER - 1


class DueTimer(NamedTuple):
    """A timer that fires: of which key, and which of the computation's timers."""

    at_ns: int
    key: Any
    timer: int


class KeyTimers:
    """The timers of a table whose keys and states are Python objects."""

    def __init__(self, timers: Sequence[StateTimer]) -> None:
        self._fields = [timer.field for timer in timers]
        self._clocks = [timer.clock for timer in timers]
        self._read: Callable[[Any], Any] = attrgetter(*self._fields)
        self._is_single = len(timers) == 1
        self._never = (NEVER,) * len(timers)
        # Keys whose states may have changed since their times were read.
        self._noted: dict[Any, Any] = {}
        # Of each key that has a timer set, the times of all of them.
        self._times: dict[Any, tuple[int, ...]] = {}
        self._heaps = [LazyHeap(partial(self._time_of, timer)) for timer in range(len(timers))]

    def note(self, key: Any, state: Any) -> None:
        """The state of a key may have changed. Raises what `times_of` raises; then the timer is NEVER."""
        # Nearly always one timer, which holds a time: checked without making a tuple of it.
        found = self._read(state) if self._is_single else None
        if type(found) is not int or not _EARLIEST <= found <= NEVER:
            self.times_of(state)
        self._noted[key] = state

    def _read_noted(self) -> None:
        """Reads the times of states that may have changed: once, however many messages a key had."""
        noted, self._noted = self._noted, {}
        for key, state in noted.items():
            self._set(key, self._repaired_times(state))

    def _set(self, key: Any, times: tuple[int, ...]) -> None:
        known = self._times.get(key, self._never)
        if times == known:
            return
        if times == self._never:
            del self._times[key]
            return
        self._times[key] = times
        for heap, at_ns, known_ns in zip(self._heaps, times, known, strict=True):
            if at_ns < known_ns:
                heap.push(key, at_ns)
                heap.compact(len(self._times))

    def note_failed(self, key: Any, state: Any) -> None:
        """The same after a call that raised, which was reported: what is not a time becomes NEVER without an error."""
        self._repaired_times(state)
        self._noted[key] = state

    def _repaired_times(self, state: Any) -> tuple[int, ...]:
        """The times of a state, after values that are not times became NEVER."""
        for _ in self._fields:
            with suppress(ValueError):
                return self.times_of(state)
        return self.times_of(state)

    def times_of(self, state: Any) -> tuple[int, ...]:
        """The times of a state's timers. Raises ValueError for a value that is not a time, which becomes NEVER."""
        times: Any
        try:
            times = self._read(state)
        except AttributeError:  # one is deleted
            times = tuple(getattr(state, field, None) for field in self._fields)
        else:
            times = times if len(self._fields) > 1 else (times,)
        for field, at_ns in zip(self._fields, times, strict=True):
            if type(at_ns) is not int or not _EARLIEST <= at_ns <= NEVER:
                _to_time(state, field, at_ns)
                return self.times_of(state)
        found: tuple[int, ...] = times
        return found

    def forget(self, keys: Iterable[Any]) -> None:
        """The states of these keys have ended."""
        for key in keys:
            self._times.pop(key, None)
            self._noted.pop(key, None)
        for heap in self._heaps:
            heap.compact(len(self._times))

    def rebuild(self, states: Mapping[Any, Any]) -> None:
        """Reads the times of restored states."""
        self._noted = {}
        found = ((key, self.times_of(state)) for key, state in states.items())
        self._times = {key: times for key, times in found if times != self._never}
        for timer, heap in enumerate(self._heaps):
            heap.rebuild((key, times[timer]) for key, times in self._times.items() if times[timer] != NEVER)

    @property
    def due(self) -> Due:
        """When the first one is due."""
        self._read_noted()
        first_ns = dict.fromkeys(Clock, NEVER)
        for heap, clock in zip(self._heaps, self._clocks, strict=True):
            if (first := heap.first(first_ns[clock])) is not None:
                first_ns[clock] = first[0]
        return Due(first_ns[Clock.LOG], first_ns[Clock.EVENT])

    def take_due(self, log_ns: int, watermark_ns: int) -> list[DueTimer]:
        """The first due timer of each key; by time, then by key. In this index it is NEVER from now on."""
        self._read_noted()
        found: dict[Any, DueTimer] = {}
        later: list[DueTimer] = []
        for timer, (heap, clock) in enumerate(zip(self._heaps, self._clocks, strict=True)):
            until_ns = min(log_ns if clock is Clock.LOG else watermark_ns, NEVER - 1)
            while (entry := heap.first(until_ns)) is not None:
                heap.drop_first()
                at_ns, key = entry
                due = DueTimer(at_ns, key, timer)
                first = found.setdefault(key, due)
                if at_ns < first.at_ns:
                    found[key], due = due, first
                if due != found[key]:
                    later.append(due)
        for due in later:
            self._heaps[due.timer].push(due.key, due.at_ns)
        for due in found.values():
            self._unset(due)
        return sorted(found.values(), key=lambda due: (due.at_ns, order_of_key(due.key)))

    def _unset(self, due: DueTimer) -> None:
        times = self._times.pop(due.key)
        times = (*times[: due.timer], NEVER, *times[due.timer + 1 :])
        if times != self._never:
            self._times[due.key] = times

    def _time_of(self, timer: int, key: Any) -> int:
        return self._times.get(key, self._never)[timer]


class SlotTimers:
    """The timers of a table whose keys have slots of an array of records."""

    def __init__(self, timers: Sequence[StateTimer]) -> None:
        self.fields = [timer.field for timer in timers]
        self._clocks = [timer.clock for timer in timers]
        self._bounds = [BlockBounds() for _ in timers]
        # Slots whose states may have changed; None: all may have.
        self._changed: Array | None = None
        # The last result of `due`, until something has changed: it is asked several times a record.
        self._due: Due | None = None

    def note(self, slots: Array, states: Array) -> None:
        """The states at these slots may change from now on, until `due` or `take_due` is called."""
        if self._changed is not None:
            self._lower(states)
            self._changed = slots

    def make_exact(self, slots: Array, states: Array) -> None:
        """Some timers of these slots, in their order, may be later than they were: makes `due` exact again."""
        self._lower(states)
        self._due = None
        for field, bounds in zip(self.fields, self._bounds, strict=True):
            bounds.rebuild_blocks(states[field], slots)

    def rebuild(self) -> None:
        """All states have changed."""
        self._changed = None

    def due(self, states: Array) -> Due:
        """When the first one is due, or some time before."""
        self._lower(states)
        if self._due is None:
            log, event = (
                min(
                    (
                        each.first_ns
                        for each, own in zip(self._bounds, self._clocks, strict=True)
                        if own is clock
                    ),
                    default=NEVER,
                )
                for clock in (Clock.LOG, Clock.EVENT)
            )
            self._due = Due(log, event)
        return self._due

    def take_due(self, log_ns: int, watermark_ns: int, states: Array) -> tuple[Array, Array, Array]:
        """The first due timer of each key, as slots, times and timers. In the states they are NEVER from now on."""
        self._lower(states)
        self._due = None
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
        """Updates the bounds by the states that have changed."""
        if self._changed is not None and not len(self._changed):
            return
        self._due = None
        for field, bounds in zip(self.fields, self._bounds, strict=True):
            if self._changed is None:
                bounds.rebuild(states[field])
            else:
                bounds.grow(len(states))
                bounds.lower(states[field], self._changed)
        self._changed = np.empty(0, np.int32)


def without_never(shown: Any, fields: Iterable[str]) -> Any:
    """A state as JSON can hold it, where a timer that is not set is null."""
    for field in fields if isinstance(shown, dict) else ():
        if shown.get(field) == NEVER:
            shown[field] = None
    return shown


def _to_time(state: Any, field: str, at_ns: Any) -> None:
    """Makes an int of a whole number of another type. Sets what is not a time to NEVER, and raises ValueError."""
    try:
        found = index(at_ns)
    except ANY_ERROR:
        found = NEVER + 1
    if _EARLIEST <= found <= NEVER:
        object.__setattr__(state, field, found)
        return
    object.__setattr__(state, field, NEVER)
    raise ValueError(
        f"field {field!r}: {at_ns!r:.60} is no time: expected nanoseconds, a whole number of 64 bits, or"
        " bettong.NEVER"
    )
