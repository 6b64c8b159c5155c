"""One window a key: it opens with the first message, fires some time later, and is remembered for some time more."""

from __future__ import annotations

from typing import Any

from bettong.application.timers import NEVER
from bettong.application.windows.kinds import Ephemeral
from bettong.application.windows.states import EphemeralState
from bettong.application.windows.window import Window
from bettong.application.windows.windowing import Windowing
from bettong.frames.columns import Array
from bettong.worker.state.objects import ObjectTable
from bettong.worker.windows.soonest import soonest_of_ephemeral
from bettong.worker.windows.window_rows import Add, Closed, Emit, RowByRow, WindowRows, ends_beyond


class EphemeralWindows(RowByRow):
    """See KeyWindows."""

    def __init__(self, kind: Ephemeral, windowing: Windowing) -> None:
        self._kind = kind
        self._windowing = windowing
        self._aggregation = windowing.aggregation

    def adder(self, rows: WindowRows, states: ObjectTable, emit: Emit) -> Add:
        """See KeyWindows. Whatever was due by the watermark before a row has fired."""
        times, watermarks = rows.times.tolist(), rows.watermarks.tolist()
        aggregation, early_ns = self._aggregation, self._windowing.early_ns
        latest_ns = self._kind.latest_ns
        timers = states.timers
        assert timers is not None  # noqa: S101 - it has at least one

        def add(row: int, key: Any, message: Any) -> None:
            state = states.get(key)
            at_ns = times[row]
            opened_ns = at_ns if state is None else state.opened_ns
            # A window that would be over at once is not opened.
            if opened_ns + self._kind.trigger_ns <= watermarks[row] if state is None else state.has_fired:
                if self._windowing.late == "fire":
                    alone = aggregation.update(aggregation.initial(), message)
                    result = aggregation.output(key, alone, self._window(opened_ns, is_final=True))
                    if result is not None:
                        emit(result, row)
                rows.late.append(row)
                return
            if state is None:
                if at_ns > latest_ns:
                    raise ends_beyond(at_ns)
                accumulator = aggregation.update(aggregation.initial(), message)
                state = states.create(key)
                state.opened_ns, state.due = at_ns, at_ns + self._kind.trigger_ns
                state.accumulator = accumulator
                timers.note(key, state)
            else:
                state.accumulator = aggregation.update(state.accumulator, message)
            if early_ns is not None and state.early == NEVER:
                state.early = states.log_ns + early_ns
                timers.note(key, state)

        return add

    def soonest_due(self, times: Array) -> Array:
        """See KeyWindows."""
        return soonest_of_ephemeral(self._kind, times)

    def close(self, key: Any, state: EphemeralState, timer: str, at_ns: int) -> Closed:
        """See KeyWindows. The second time it is due, the key is forgotten."""
        if state.has_fired:
            state.is_over = timer == "due"
            return Closed(at_ns, [])
        window = self._window(state.opened_ns, is_final=timer == "due")
        accumulator = state.accumulator
        if timer == "due":
            self._end_window(state, at_ns)
        return Closed(window.end - 1, [self._aggregation.output(key, accumulator, window)])

    def skip(self, key: Any, state: EphemeralState, timer: str, at_ns: int, *, empty: bool) -> None:  # noqa: ARG002
        """See KeyWindows."""
        if timer == "due":
            if state.has_fired:
                state.is_over = True
            else:
                self._end_window(state, at_ns)

    def _end_window(self, state: EphemeralState, at_ns: int) -> None:
        state.has_fired, state.accumulator = True, None
        state.is_over = not self._kind.keep_ns
        state.due = NEVER if state.is_over else at_ns + self._kind.keep_ns

    def _window(self, opened_ns: int, *, is_final: bool) -> Window:
        return Window(opened_ns, opened_ns + self._kind.trigger_ns, final=is_final)
