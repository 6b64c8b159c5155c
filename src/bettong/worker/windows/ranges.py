"""Windows of a fixed size on a grid: tumbling and sliding ones.

A message goes into one pane, whatever the number of windows that cover it; windows share panes. The grid starts at
1970, so what a window covers depends on no message. A window that ends at `end` is over when the watermark is `delay`
past it: the timer of a key's state is set to the next such time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

import numpy as np

from bettong.application.timers import NEVER
from bettong.application.windows.kinds import Ranges
from bettong.application.windows.states import RangeState
from bettong.application.windows.window import Window
from bettong.application.windows.windowing import Windowing
from bettong.frames.columns import Array
from bettong.user_errors import ANY_ERROR
from bettong.worker.state.objects import ObjectTable
from bettong.worker.windows.pane_stack import NOTHING, PaneStack
from bettong.worker.windows.soonest import soonest_of_ranges
from bettong.worker.windows.window_rows import Add, AddRows, Closed, Emit, WindowRows, each_row, ends_beyond


class _AssignedRows(NamedTuple):
    """By row its pane, and when its first open window is due; the rows that are late, and partly late.

    `has_too_late`: whether some have windows that end beyond 64 bits.
    """

    panes: list[int]
    dues: list[int]
    late: Collection[int]
    partly_late: Collection[int]
    has_too_late: bool

    @property
    def are_simple(self) -> bool:
        """Whether each row goes into all of its windows."""
        return not (self.late or self.partly_late or self.has_too_late)


class RangeWindows:
    """See KeyWindows. `latest_ns`: later event times have windows that end beyond 64 bits."""

    def __init__(self, kind: Ranges, windowing: Windowing) -> None:
        self._kind = kind
        self._windowing = windowing
        self._aggregation = windowing.aggregation
        # Kept here because the kind computes them on each access.
        self._pane_ns, self._panes = kind.pane_ns, kind.panes
        self.latest_ns = kind.latest_ns
        self._stacks: dict[Any, PaneStack] = {}

    def adder(self, rows: WindowRows, states: ObjectTable, emit: Emit) -> Add:
        """See KeyWindows."""
        return self._adder(self._assigned(rows), rows, states, emit)

    def rows_adder(self, rows: WindowRows, states: ObjectTable, emit: Emit) -> AddRows:
        """See KeyWindows."""
        assigned = self._assigned(rows)
        add = self._adder(assigned, rows, states, emit)
        if not assigned.are_simple or self._windowing.early_ns is not None:
            return each_row(add)
        find, panes, update = states.get, assigned.panes, self._aggregation.update

        def add_rows(keys: Iterator[Any], messages: Iterator[Any], numbers: Iterator[int]) -> None:
            for key, message, row in zip(keys, messages, numbers, strict=True):
                state = find(key)
                if state is not None:
                    pane, accumulators = panes[row], state.panes
                    # Nearly always the pane exists, so the timer of its windows is set.
                    if pane in accumulators:
                        accumulators[pane] = update(accumulators[pane], message)
                        continue
                add(row, key, message)

        return add_rows

    def _adder(self, assigned: _AssignedRows, rows: WindowRows, states: ObjectTable, emit: Emit) -> Add:
        panes, dues, late, partly_late, has_too_late = assigned
        aggregation, early_ns = self._aggregation, self._windowing.early_ns
        initial, update = aggregation.initial, aggregation.update
        find, create, timers, stacks = states.get, states.create, states.timers, self._stacks
        assert timers is not None  # noqa: S101 - it has at least one
        is_left = self._windowing.late != "oldest"

        def add(row: int, key: Any, message: Any) -> None:
            if has_too_late:
                self.check(int(rows.times[row]))
            if row in late and is_left:
                self._fire_late(row, key, message, rows, emit)
                rows.late.append(row)
                return
            pane, due = panes[row], dues[row]
            state = find(key)
            found = state.panes.get(pane, NOTHING) if state is not None else NOTHING
            changed = update(initial() if found is NOTHING else found, message)
            if state is None:
                state = create(key)
            state.panes[pane] = changed
            if row in late or row in partly_late:
                if row in late:
                    rows.late.append(row)
                else:
                    rows.partly_late.append(row)
                stacks.pop(key, None)
            if due < state.due:
                state.due = due
                timers.note(key, state)
            if early_ns is not None:
                if pane not in state.changed:
                    state.changed.append(pane)
                if state.early == NEVER:
                    state.early = states.log_ns + early_ns
                    timers.note(key, state)

        return add

    def check(self, at_ns: int) -> None:
        """Raises ValueError for an event time whose windows end beyond 64 bits."""
        if at_ns > self.latest_ns:
            raise ends_beyond(at_ns)

    def soonest_due(self, times: Array) -> Array:
        """See KeyWindows."""
        return soonest_of_ranges(self._kind, times)

    def close(self, key: Any, state: RangeState, timer: str, at_ns: int) -> Closed:
        """See KeyWindows."""
        if timer == "early":
            return self._fire_early(key, state)
        kind, aggregation = self._kind, self._aggregation
        end = at_ns - kind.delay_ns
        start = end - kind.size_ns
        try:
            found = self._combined(key, state, start)
        except ANY_ERROR:
            # The stack is half updated: the next window rebuilds it.
            self._stacks.pop(key, None)
            raise
        finally:
            self._advance(key, state, end, empty=self._windowing.emit_empty)
        if found is NOTHING:
            if not self._windowing.emit_empty:
                return Closed(end - 1, [])
            found = aggregation.initial()
        return Closed(end - 1, [aggregation.output(key, found, Window(start, end))])

    def skip(self, key: Any, state: RangeState, timer: str, at_ns: int, *, empty: bool) -> None:
        """See KeyWindows."""
        if timer == "early":
            state.changed = []
        else:
            end = at_ns - self._kind.delay_ns
            self._advance(key, state, end, empty=self._windowing.emit_empty and not empty)

    def _assigned(self, rows: WindowRows) -> _AssignedRows:
        kind, times = self._kind, rows.times
        has_too_late = bool(len(times)) and int(times.max()) > self.latest_ns
        panes = (times - kind.offset_ns) // self._pane_ns
        # Of the windows that cover a row, the one that ends first.
        dues = self.soonest_due(times)
        missed = np.flatnonzero((dues <= rows.watermarks) & (times < rows.watermarks))
        if not len(missed):
            return _AssignedRows(panes.tolist(), dues.tolist(), (), (), has_too_late)
        is_late = self._last_due(times[missed], dues[missed]) <= rows.watermarks[missed]
        dues[missed] += ((rows.watermarks[missed] - dues[missed]) // kind.slide_ns + 1) * kind.slide_ns
        late = missed[is_late]
        # Where late rows are added: the first pane of the oldest open window, which no later window has.
        oldest = dues[late] - kind.delay_ns - kind.size_ns
        panes[late] = (oldest - kind.offset_ns) // self._pane_ns
        partly_late = set(missed[~is_late].tolist())
        return _AssignedRows(panes.tolist(), dues.tolist(), set(late.tolist()), partly_late, has_too_late)

    def _last_due(self, times: Array, dues: Array) -> Array:
        """When the last window that covers these times is due. `dues`: the first ones."""
        kind = self._kind
        last: Array = dues + (times + kind.size_ns + kind.delay_ns - dues) // kind.slide_ns * kind.slide_ns
        return last

    def _fire_late(self, row: int, key: Any, message: Any, rows: WindowRows, emit: Emit) -> None:
        """Emits the result of a late message by itself, where `late` is "fire"."""
        if self._windowing.late != "fire":
            return
        aggregation, kind = self._aggregation, self._kind
        time = int(rows.times[row])
        start = time - (time - kind.offset_ns) % kind.slide_ns
        alone = aggregation.update(aggregation.initial(), message)
        result = aggregation.output(key, alone, Window(start, start + kind.size_ns))
        if result is not None:
            emit(result, row)

    def _combined(self, key: Any, state: RangeState, start: int) -> Any:
        """The accumulator of the window that starts there; NOTHING without messages."""
        kind = self._kind
        pane = (start - kind.offset_ns) // self._pane_ns
        if self._panes == 1:
            return state.panes.get(pane, NOTHING)
        stack = self._stacks.get(key)
        if stack is None:
            stack = self._stacks[key] = PaneStack()
        return stack.combined(state.panes, pane, self._panes, self._aggregation.combine)

    def _advance(self, key: Any, state: RangeState, end: int, *, empty: bool) -> None:
        """Drops panes that only the window ending there needed; sets the next timer, with `empty` of any window."""
        kind, panes = self._kind, state.panes
        # The panes that no later window has.
        first = (end - kind.size_ns - kind.offset_ns) // self._pane_ns
        behind = first + kind.slide_ns // self._pane_ns
        for pane in range(first, behind):
            panes.pop(pane, None)
        if not panes:
            self._stacks.pop(key, None)
            return
        state.changed = [pane for pane in state.changed if pane >= behind]
        next_end = end + kind.slide_ns
        if not empty and next(iter(panes)) >= behind + self._panes:
            # The next windows may be without messages.
            oldest = min(panes) * self._pane_ns + kind.offset_ns
            first_end = oldest + kind.slide_ns - (oldest - kind.offset_ns - kind.size_ns) % kind.slide_ns
            next_end = max(next_end, first_end)
        state.due = next_end + kind.delay_ns

    def _fire_early(self, key: Any, state: RangeState) -> Closed:
        """Early results of the open windows that have changed. Their event time is that of the oldest open window."""
        kind, aggregation, panes = self._kind, self._aggregation, state.panes
        oldest_end = state.due - kind.delay_ns
        changed, state.changed = sorted(state.changed), []
        results = []
        last_end = changed[-1] * self._pane_ns + kind.offset_ns + kind.size_ns if changed else oldest_end - 1
        for end in range(oldest_end, last_end + 1, kind.slide_ns):
            first = (end - kind.size_ns - kind.offset_ns) // self._pane_ns
            if any(first <= pane < first + self._panes for pane in changed):
                found = NOTHING
                for pane in range(first, first + self._panes):
                    if pane in panes:
                        found = panes[pane] if found is NOTHING else aggregation.combine(found, panes[pane])
                window = Window(end - kind.size_ns, end, final=False)
                results.append(aggregation.output(key, found, window))
        return Closed(oldest_end - 1, results)
