"""Sessions: messages of a key that are at most a gap apart.

One covers the time from its first message to its last one, and the gap behind that. It is over when the watermark, less
the delay, is past the gap. A message within the gap of two sessions makes one of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bettong.application.timers import NEVER
from bettong.application.windows.kinds import Sessions
from bettong.application.windows.states import SessionState
from bettong.application.windows.window import Window
from bettong.application.windows.windowing import Windowing
from bettong.frames.columns import Array
from bettong.worker.state.objects import ObjectTable
from bettong.worker.windows.window_rows import Add, Closed, RowByRow, Take, WindowRows

# What the list of a session holds.
_FIRST, _LAST, _ACCUMULATOR, _CHANGED = range(4)


class SessionWindows(RowByRow):
    """See KeyWindows."""

    def __init__(self, kind: Sessions, windowing: Windowing) -> None:
        self._gap_ns = kind.gap_ns
        # From a session's last message to its end, and to when it is due.
        self._behind_ns = kind.gap_ns + 1
        self._wait_ns = kind.gap_ns + 1 + kind.delay_ns
        self._windowing = windowing
        self._aggregation = windowing.aggregation

    def adder(self, rows: WindowRows, states: ObjectTable, take: Take) -> Add:
        """See KeyWindows."""
        times, watermarks = rows.times.tolist(), rows.watermarks.tolist()
        early_ns, gap_ns, update = self._windowing.early_ns, self._gap_ns, self._aggregation.update
        # Of later ones the session ends beyond 64 bits.
        latest_ns = NEVER - 1 - self._wait_ns
        find, create, timers = states.get, states.create, states.timers
        assert timers is not None  # noqa: S101 - it has at least one

        def add_to_newest(row: int, key: Any, message: Any) -> None:
            """Nearly every row: it goes on with the newest session of its key."""
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
                raise ValueError(f"its event time is {at_ns} ns: its session ends after the year 2262")
            state = find(key)
            sessions = state.sessions if state is not None else []
            # Whatever is due by the watermark has fired where a message is older than it: so these are open.
            start, stop = self._near(sessions, at_ns)
            if start == stop and at_ns + self._wait_ns <= watermark_ns:
                if self._windowing.late != "oldest" or not sessions:
                    self._leave(row, key, message, at_ns, take)
                    rows.late.append(row)
                    return
                session = self._with(sessions[:1], sessions[0][_FIRST], message)
                rows.late.append(row)
                start, stop = 0, 1
            else:
                session = self._with(sessions[start:stop], at_ns, message)
            if state is None:
                state = create(key)
            state.sessions[start:stop] = [session]
            is_early = state.early == NEVER
            if early_ns is None:
                is_early = False
            elif is_early:
                state.early = states.log_ns + early_ns
            # One that grows stays due when it was: then it is seen how long it has become.
            if is_early or session[_LAST] + self._wait_ns < state.due:
                state.due = min(state.due, session[_LAST] + self._wait_ns)
                timers.note(key, state)

        return add if early_ns is not None else add_to_newest

    def soonest_due(self, times: Array) -> Array:
        """See KeyWindows."""
        return np.minimum(times, NEVER - 1 - self._wait_ns) + self._wait_ns

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
        over = self._over(state, at_ns)
        if over is None:
            return Closed(at_ns, [])
        window = self._window(over, is_final=True)
        return Closed(window.end - 1, [output(key, over[_ACCUMULATOR], window)])

    def has_grown(self, state: Any, at_ns: int) -> bool:
        """Whether the oldest session of a state that was due then has grown since: the state is due later."""
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
            self._over(state, at_ns)

    def _over(self, state: SessionState, at_ns: int) -> list[Any] | None:
        """Takes out the oldest session, if it is over by then: it may have grown. The state is due again."""
        oldest = state.sessions[0]
        is_over = oldest[_LAST] + self._wait_ns <= at_ns
        if is_over:
            del state.sessions[0]
        if state.sessions:
            state.due = state.sessions[0][_LAST] + self._wait_ns
        return oldest if is_over else None

    def _near(self, sessions: list[list[Any]], at_ns: int) -> tuple[int, int]:
        """The sessions within the gap of a time, at most two; else the place between them where one begins."""
        stop = len(sessions)
        while stop and sessions[stop - 1][_FIRST] - self._gap_ns > at_ns:
            stop -= 1
        start = stop
        while start and sessions[start - 1][_LAST] + self._gap_ns >= at_ns:
            start -= 1
        return start, stop

    def _with(self, near: list[list[Any]], at_ns: int, message: Any) -> list[Any]:
        """The session of those and the message; these stay as they are when the user's function raises."""
        aggregation = self._aggregation
        if not near:
            return [at_ns, at_ns, aggregation.update(aggregation.initial(), message), True]
        accumulator = near[0][_ACCUMULATOR]
        for later in near[1:]:
            accumulator = aggregation.combine(accumulator, later[_ACCUMULATOR])
        accumulator = aggregation.update(accumulator, message)
        return [min(near[0][_FIRST], at_ns), max(near[-1][_LAST], at_ns), accumulator, True]

    def _leave(self, row: int, key: Any, message: Any, at_ns: int, take: Take) -> None:
        """What becomes of a late message that goes into no session."""
        if self._windowing.late == "fire":
            alone = self._with([], at_ns, message)
            result = self._aggregation.output(key, alone[_ACCUMULATOR], self._window(alone, is_final=True))
            if result is not None:
                take(result, row)

    def _window(self, session: list[Any], *, is_final: bool) -> Window:
        return Window(session[_FIRST], session[_LAST] + self._behind_ns, final=is_final)
