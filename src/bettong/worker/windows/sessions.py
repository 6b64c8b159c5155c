"""Session windows: messages of a key that are at most a gap apart.

A session covers the time from its first message to its last one, plus the gap. It closes when the watermark, less the
delay, passes the gap. A message within the gap of two sessions merges them.
"""

from __future__ import annotations

from typing import Any

from bettong.application.timers import NEVER
from bettong.application.windows.kinds import Sessions
from bettong.application.windows.states import SessionState
from bettong.application.windows.window import Window
from bettong.application.windows.windowing import Windowing
from bettong.frames.columns import Array
from bettong.worker.state.objects import ObjectTable
from bettong.worker.windows.soonest import soonest_of_sessions
from bettong.worker.windows.window_rows import Add, Closed, Emit, RowByRow, WindowRows, ends_beyond

# Indexes into the list that represents a session.
_FIRST, _LAST, _ACCUMULATOR, _CHANGED = range(4)


class SessionWindows(RowByRow):
    """See KeyWindows."""

    def __init__(self, kind: Sessions, windowing: Windowing) -> None:
        self._kind = kind
        self._gap_ns = kind.gap_ns
        # From a session's last message to its end, and to when it is due.
        self._behind_ns = kind.gap_ns + 1
        self._wait_ns = kind.wait_ns
        self._windowing = windowing
        self._aggregation = windowing.aggregation

    def adder(self, rows: WindowRows, states: ObjectTable, emit: Emit) -> Add:
        """See KeyWindows."""
        times, watermarks = rows.times.tolist(), rows.watermarks.tolist()
        early_ns, gap_ns, update = self._windowing.early_ns, self._gap_ns, self._aggregation.update
        find, create, timers, latest_ns = states.get, states.create, states.timers, self._kind.latest_ns
        assert timers is not None  # noqa: S101 - it has at least one

        def add_to_newest(row: int, key: Any, message: Any) -> None:
            """The fast path of nearly every row: it extends the newest session of its key."""
            state = find(key)
            if state is not None:
                newest, at_ns = state.sessions[-1], times[row]
                if newest[_FIRST] <= at_ns <= newest[_LAST] + gap_ns and at_ns <= latest_ns:
                    newest[_ACCUMULATOR] = update(newest[_ACCUMULATOR], message)
                    newest[_LAST] = max(newest[_LAST], at_ns)
                    return
            add(row, key, message)

        def add(row: int, key: Any, message: Any) -> None:
            at_ns, watermark_ns = times[row], watermarks[row]
            if at_ns > latest_ns:
                raise ends_beyond(at_ns, "session")
            state = find(key)
            sessions = state.sessions if state is not None else []
            # Sessions due by the watermark fired before a message older than it, so these are open.
            start, stop = self._sessions_near(sessions, at_ns)
            if start == stop and at_ns + self._wait_ns <= watermark_ns:
                if self._windowing.late != "oldest" or not sessions:
                    self._fire_late(row, key, message, at_ns, emit)
                    rows.late.append(row)
                    return
                session = self._merged(sessions[:1], sessions[0][_FIRST], message)
                rows.late.append(row)
                start, stop = 0, 1
            else:
                session = self._merged(sessions[start:stop], at_ns, message)
            if state is None:
                state = create(key)
            state.sessions[start:stop] = [session]
            is_early = state.early == NEVER
            if early_ns is None:
                is_early = False
            elif is_early:
                state.early = states.log_ns + early_ns
            # A session that grows keeps its timer: when that is due, the new end is read.
            if is_early or session[_LAST] + self._wait_ns < state.due:
                state.due = min(state.due, session[_LAST] + self._wait_ns)
                timers.note(key, state)

        return add if early_ns is not None else add_to_newest

    def soonest_due(self, times: Array) -> Array:
        """See KeyWindows."""
        return soonest_of_sessions(self._kind, times)

    def close(self, key: Any, state: SessionState, timer: str, at_ns: int) -> Closed:
        """See KeyWindows."""
        output = self._aggregation.output
        if timer == "early":
            changed = [each for each in state.sessions if each[_CHANGED]]
            for each in changed:
                each[_CHANGED] = False
            results = [
                output(key, each[_ACCUMULATOR], self._window(each, is_final=False)) for each in changed
            ]
            return Closed(state.sessions[0][_LAST] + self._gap_ns, results)
        over = self._remove_oldest(state, at_ns)
        if over is None:
            return Closed(at_ns, [])
        window = self._window(over, is_final=True)
        return Closed(window.end - 1, [output(key, over[_ACCUMULATOR], window)])

    def has_grown(self, state: Any, at_ns: int) -> bool:
        """Whether the oldest session has grown since its timer was set for `at_ns`; if so, sets the later timer."""
        due_ns: int = state.sessions[0][_LAST] + self._wait_ns
        if due_ns <= at_ns:
            return False
        state.due = due_ns
        return True

    def skip(self, key: Any, state: SessionState, timer: str, at_ns: int, *, empty: bool) -> None:  # noqa: ARG002
        """See KeyWindows."""
        if timer == "early":
            for each in state.sessions:
                each[_CHANGED] = False
        else:
            self._remove_oldest(state, at_ns)

    def _remove_oldest(self, state: SessionState, at_ns: int) -> list[Any] | None:
        """Removes and returns the oldest session, unless it has grown beyond `at_ns`; sets the next timer."""
        oldest = state.sessions[0]
        is_over = oldest[_LAST] + self._wait_ns <= at_ns
        if is_over:
            del state.sessions[0]
        if state.sessions:
            state.due = state.sessions[0][_LAST] + self._wait_ns
        return oldest if is_over else None

    def _sessions_near(self, sessions: list[list[Any]], at_ns: int) -> tuple[int, int]:
        """The slice of sessions within the gap of a time, at most two; an empty one where a session would begin."""
        stop = len(sessions)
        while stop and sessions[stop - 1][_FIRST] - self._gap_ns > at_ns:
            stop -= 1
        start = stop
        while start and sessions[start - 1][_LAST] + self._gap_ns >= at_ns:
            start -= 1
        return start, stop

    def _merged(self, near: list[list[Any]], at_ns: int, message: Any) -> list[Any]:
        """One session of the given ones and the message; these are unchanged when the user's function raises."""
        aggregation = self._aggregation
        if not near:
            return [at_ns, at_ns, aggregation.update(aggregation.initial(), message), True]
        accumulator = near[0][_ACCUMULATOR]
        for later in near[1:]:
            accumulator = aggregation.combine(accumulator, later[_ACCUMULATOR])
        accumulator = aggregation.update(accumulator, message)
        return [min(near[0][_FIRST], at_ns), max(near[-1][_LAST], at_ns), accumulator, True]

    def _fire_late(self, row: int, key: Any, message: Any, at_ns: int, emit: Emit) -> None:
        """Emits the result of a late message by itself, where `late` is "fire"."""
        if self._windowing.late == "fire":
            alone = self._merged([], at_ns, message)
            result = self._aggregation.output(key, alone[_ACCUMULATOR], self._window(alone, is_final=True))
            if result is not None:
                emit(result, row)

    def _window(self, session: list[Any], *, is_final: bool) -> Window:
        return Window(session[_FIRST], session[_LAST] + self._behind_ns, final=is_final)
