"""Panes combined into windows that slide over them, at a cost that does not grow with the panes of a window.

Panes lie in blocks of as many as a window has, so a window is a suffix of one block and a prefix of the next. Suffixes
are in a stack: each pane combined with all later ones of the block, the oldest on top. The prefix is one accumulator,
to which the next panes are added. So each pane is combined twice, however many windows it is in.

Nothing of this is saved: the accumulator of a window depends on its panes and on where blocks begin, not on the windows
before it. So it is the same, to the last bit of a float, when it is rebuilt from restored panes.
"""

from collections.abc import Callable, Mapping
from typing import Any

# The accumulator of a window without messages; None may be a user's.
NOTHING = object()


class PaneStack:
    """The combined panes of one key."""

    __slots__ = ("_block", "_front", "_front_stop", "_stack")

    def __init__(self) -> None:
        self._block: int | None = None
        # (pane, it combined with all later ones of its block), the oldest last.
        self._stack: list[tuple[int, Any]] = []
        # The next block's panes before `_front_stop`, combined.
        self._front: Any = NOTHING
        self._front_stop = 0

    def combined(
        self, panes: Mapping[int, Any], start: int, count: int, combine: Callable[[Any, Any], Any]
    ) -> Any:
        """The `count` panes from `start` on; NOTHING when none of them exists. `start` must not decrease."""
        block = start // count
        edge = (block + 1) * count
        if block != self._block:
            self._begin_block(panes, block, range(start, edge), combine)
        stack = self._stack
        while stack and stack[-1][0] < start:
            stack.pop()
        older = stack[-1][1] if stack else NOTHING
        for pane in range(self._front_stop, start + count):
            found = panes.get(pane, NOTHING)
            if found is not NOTHING:
                self._front = found if self._front is NOTHING else combine(self._front, found)
        self._front_stop = max(self._front_stop, start + count)
        if older is NOTHING:
            return self._front
        return older if self._front is NOTHING else combine(older, self._front)

    def _begin_block(
        self, panes: Mapping[int, Any], block: int, rest: range, combine: Callable[[Any, Any], Any]
    ) -> None:
        self._block, self._front, self._front_stop = block, NOTHING, rest.stop
        self._stack, behind = [], NOTHING
        for pane in reversed(rest):
            found = panes.get(pane, NOTHING)
            if found is not NOTHING:
                behind = found if behind is NOTHING else combine(found, behind)
                self._stack.append((pane, behind))
