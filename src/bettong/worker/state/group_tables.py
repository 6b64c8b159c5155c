"""Windows of which a key has one open at a time, so one pane at most: for folds over columns."""

from typing import Any

from bettong.application.timers import NEVER
from bettong.application.windows.kinds import Ephemeral
from bettong.application.windows.states import CountState, EphemeralState
from bettong.application.windows.windowed import Windowed
from bettong.frames.columns import Array
from bettong.worker.state.pane_pool import DUE, MESSAGES, OLDEST, VALUES
from bettong.worker.state.pane_table import PaneTable

# A group's first accumulators are its first and its last event time.
FIRST, LAST = VALUES, VALUES + 1


class CountTable(PaneTable):
    """See PaneTable. Groups of a number of messages."""

    def _are_open(self, dues: Array, counts: Array) -> bool:  # noqa: ARG002 - they may have no timeout
        return bool((counts == 1).all())

    def _state(self, due_ns: int, panes: Array) -> CountState:
        (group,) = panes
        return CountState(
            timeout=due_ns,
            count=int(group[MESSAGES]),
            first_ns=int(group[FIRST]),
            last_ns=int(group[LAST]),
            accumulator=self._accumulator(group),
        )


class EphemeralTable(PaneTable):
    """See PaneTable. Ephemeral windows: a key whose window has fired has no pane, and is due to be forgotten."""

    def _is_over(self, slots: Array) -> Any:
        words = self.words[slots]
        return (words[:, OLDEST] < 0) & (words[:, DUE] == NEVER)

    def _are_open(self, dues: Array, counts: Array) -> bool:
        return bool((counts <= 1).all() and (counts >= 0).all() and (dues != NEVER).all())

    def _state(self, due_ns: int, panes: Array) -> EphemeralState:
        assert isinstance(self._node, Windowed)  # noqa: S101 - no join has such windows
        kind = self._node.windowing.kind
        assert isinstance(kind, Ephemeral)  # noqa: S101 - it is of no other windows
        has_fired = not len(panes)
        return EphemeralState(
            due=due_ns,
            opened_ns=due_ns - kind.trigger_ns - kind.keep_ns * has_fired,
            has_fired=has_fired,
            accumulator=None if has_fired else self._accumulator(panes[0]),
        )
