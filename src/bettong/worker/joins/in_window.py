"""`join_window`: all pairs of the messages that are in one window."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from bettong.application.joins.kinds import How, InWindow
from bettong.frames.columns import Array
from bettong.worker.joins.key_join import Add, ClosedPairs, Pair
from bettong.worker.state.objects import ObjectTable
from bettong.worker.windows.key_windows import key_windows
from bettong.worker.windows.sessions import SessionWindows
from bettong.worker.windows.window_rows import WindowRows


class WindowJoin:
    """See KeyJoin."""

    def __init__(self, kind: InWindow, how: How) -> None:
        self._windows = key_windows(kind.windowing)
        self._left_emits_alone, self._right_emits_alone = how in ("left", "outer"), how in ("right", "outer")

    def adders(self, rows: WindowRows, states: ObjectTable, pair: Pair) -> tuple[Add, Add]:
        """See KeyJoin. A window has no results before it is over."""
        del pair
        add = self._windows.adder(rows, states, _no_early_result)

        def add_of(row: int, key: Any, message: Any, *, is_right: bool) -> None:
            add(row, key, (is_right, message))

        return partial(add_of, is_right=False), partial(add_of, is_right=True)

    def soonest_due(self, times: Array) -> Array:
        """See KeyJoin."""
        return self._windows.soonest_due(times)

    def due_ns(self, state: Any, at_ns: int, until_ns: int) -> Sequence[int]:  # noqa: ARG002
        """See KeyJoin. Only this timer: closing a window sets the next one. None for a session that has grown."""
        has_grown = isinstance(self._windows, SessionWindows) and self._windows.has_grown(state, at_ns)
        return () if has_grown else (at_ns,)

    def close(self, key: Any, state: Any, at_ns: int) -> ClosedPairs:
        """See KeyJoin. The pairs of a window are made one by one, since there may be many."""
        closed = self._windows.close(key, state, "due", at_ns)
        return ClosedPairs(
            closed.at_ns, (pair for gathered in closed.results for pair in self._pairs(*gathered))
        )

    def _pairs(self, lefts: list[Any], rights: list[Any]) -> Iterator[tuple[Any, Any]]:
        if lefts and rights:
            yield from ((left, right) for left in lefts for right in rights)
        elif self._left_emits_alone:
            yield from ((left, None) for left in lefts)
        if not lefts and self._right_emits_alone:
            yield from ((None, right) for right in rights)


def _no_early_result(result: Any, row: int) -> None:
    raise AssertionError(f"row {row} gave {result!r} before its window was over")
