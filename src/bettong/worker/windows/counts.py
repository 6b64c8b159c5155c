"""Groups of a fixed number of messages of a key, in the order of the log. No message is ever late."""

from __future__ import annotations

from typing import Any

import numpy as np

from bettong.application.timers import NEVER
from bettong.application.windows.kinds import Counts
from bettong.application.windows.states import CountState
from bettong.application.windows.window import Window
from bettong.application.windows.windowing import Windowing
from bettong.frames.columns import Array
from bettong.worker.state.objects import ObjectTable
from bettong.worker.windows.window_rows import Add, Closed, Emit, RowByRow, WindowRows


class CountWindows(RowByRow):
    """See KeyWindows."""

    def __init__(self, kind: Counts, windowing: Windowing) -> None:
        self._kind = kind
        self._aggregation = windowing.aggregation

    def adder(self, rows: WindowRows, states: ObjectTable, emit: Emit) -> Add:
        """See KeyWindows."""
        times, full, timeout_ns = rows.times.tolist(), self._kind.count, self._kind.timeout_ns
        initial, update = self._aggregation.initial, self._aggregation.update
        find, create, timers = states.get, states.create, states.timers

        def add(row: int, key: Any, message: Any) -> None:
            state = find(key)
            is_first = state is None or not state.count
            accumulator = update(initial() if state is None or is_first else state.accumulator, message)
            if state is None:
                state = create(key)
            at_ns = times[row]
            state.first_ns = at_ns if is_first else min(state.first_ns, at_ns)
            state.last_ns = at_ns if is_first else max(state.last_ns, at_ns)
            state.accumulator = accumulator
            state.count += 1
            if is_first and timers is not None and timeout_ns is not None:
                state.timeout = states.log_ns + timeout_ns
                timers.note(key, state)
            if state.count == full:
                rows.emptied.append(row)
                result = self._result(key, state)
                if result is not None:
                    emit(result, row)

        return add

    def soonest_due(self, times: Array) -> Array:
        """See KeyWindows. Groups have no event-time timers."""
        return np.full(len(times), NEVER, np.int64)

    def close(self, key: Any, state: CountState, timer: str, at_ns: int) -> Closed:  # noqa: ARG002
        """See KeyWindows. The event time is that of the newest message."""
        last_ns = state.last_ns
        return Closed(last_ns, [self._result(key, state)])

    def skip(self, key: Any, state: CountState, timer: str, at_ns: int, *, empty: bool) -> None:  # noqa: ARG002
        """See KeyWindows."""
        self._reset(state)

    def _result(self, key: Any, state: CountState) -> Any:
        """The result of a complete group; the next one begins."""
        accumulator, window = state.accumulator, Window(state.first_ns, state.last_ns + 1)
        self._reset(state)
        return self._aggregation.output(key, accumulator, window)

    @staticmethod
    def _reset(state: CountState) -> None:
        """Makes the next message the first one of a group."""
        state.count, state.accumulator, state.timeout = 0, None, NEVER
