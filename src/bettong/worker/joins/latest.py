"""`join_latest`: pairs a message with the newest one of a table, in the order of the log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bettong.application.joins.kinds import How, Latest
from bettong.application.joins.states import LatestState
from bettong.application.timers import NEVER
from bettong.frames.columns import Array
from bettong.worker.joins.key_join import Add, ClosedPairs, Pair
from bettong.worker.state.objects import ObjectTable
from bettong.worker.windows.window_rows import WindowRows


class LatestJoin:
    """See KeyJoin. It has no timers and no late messages."""

    def __init__(self, kind: Latest, how: How) -> None:
        self._deletes = kind.deletes
        self._emits_alone = how == "left"

    def adders(self, rows: WindowRows, states: ObjectTable, pair: Pair) -> tuple[Add, Add]:
        """See KeyJoin."""
        find, create, deletes, emits_alone = states.get, states.create, self._deletes, self._emits_alone

        def look_up(row: int, key: Any, message: Any) -> None:
            state = find(key)
            value = None if state is None else state.value
            if value is not None or emits_alone:
                pair(message, value, row)

        def renew(row: int, key: Any, message: Any) -> None:
            is_gone = deletes is not None and deletes(message)
            state = find(key)
            if not is_gone:
                (create(key) if state is None else state).value = message
            elif state is not None:
                state.value = None
                rows.emptied.append(row)

        return look_up, renew

    def soonest_due(self, times: Array) -> Array:
        """See KeyJoin."""
        return np.full(len(times), NEVER, np.int64)

    def due_ns(self, state: LatestState, at_ns: int, until_ns: int) -> Sequence[int]:
        """See KeyJoin."""
        raise AssertionError(f"{state} has no timer for {at_ns} to {until_ns}")

    def close(self, key: Any, state: LatestState, at_ns: int) -> ClosedPairs:
        """See KeyJoin."""
        raise AssertionError(f"{key!r}: {state} has no timer for {at_ns}")
