"""Calls the function of a join: for the pairs that a message makes, and for those that time makes."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from itertools import repeat
from operator import length_hint
from typing import Any

import numpy as np

from bettong.application.joins.joined import Joined
from bettong.application.on_error import STOP
from bettong.user_errors import ANY_ERROR, reason_of
from bettong.worker.batch import Batch
from bettong.worker.calling.result_builder import ResultBuilder
from bettong.worker.calling.results import Results
from bettong.worker.joins.key_join import Add, KeyJoin, Pair
from bettong.worker.joins.sides import sides_of
from bettong.worker.progress import FoldProgress
from bettong.worker.state.objects import ObjectTable
from bettong.worker.windows.window_rows import WindowRows

_NO_TIMES = np.empty(0, np.int64)


class JoinMessages:
    """Adds messages to a join. See Calling. `rows`: those of the last call."""

    def __init__(self, node: Joined, join: KeyJoin, progress: FoldProgress) -> None:
        self.rows = WindowRows(_NO_TIMES, _NO_TIMES)
        self.join = join
        self._node = node
        self._progress = progress

    def call(self, batch: Batch, states: ObjectTable) -> Results:
        """See Calling. `batch`: of SidedColumns. A pair that fails does not affect the others of its message."""
        self.rows = (
            WindowRows(batch.event_times(), batch.message_watermarks())
            if self._node.judges_lateness
            else WindowRows(_NO_TIMES, _NO_TIMES)
        )
        output = ResultBuilder(self._node.schema)
        adders = self.join.adders(self.rows, states, _pair(self._node, output))
        rows, keys = range(batch.length), iter(batch.key_values())
        messages = iter(self._progress.messages(self._node.name, batch, keys))
        last = batch.length - 1
        numbers, adds = iter(rows), _of_sides(batch, adders)
        while True:
            try:
                # `keys` comes first: what is left of it says how far the loop is.
                for key, message, row, add in zip(keys, messages, numbers, adds, strict=False):
                    add(row, key, message)
            except ANY_ERROR as error:
                failed = last - length_hint(keys)
                output.fail(failed, reason_of(error))
                numbers, adds = iter(rows[failed + 1 :]), _of_sides(batch, adders, failed + 1)
                if self._node.on_error != STOP:
                    continue
            states.delete_emptied(batch, self.rows.emptied)
            return output.results(batch.length)


class JoinClosing:
    """Calls the function for pairs that time makes. `times`: by row of the last call, the event time of its results."""

    def __init__(self, node: Joined, join: KeyJoin) -> None:
        self.times: Sequence[int] = ()
        self._node = node
        self._join = join

    def call(self, batch: Batch, states: ObjectTable, refused: Container[int]) -> Results:
        """The rows are fired timers, each of a key. For those that are refused the function is not called.

        States and times are complete whatever the function raises.
        """
        output = ResultBuilder(self._node.schema)
        pair, is_stopped = _pair(self._node, output), False
        keys, due = batch.key_values(), batch.columns.values(1)
        self.times = times = list(due)
        for row, (key, at_ns) in enumerate(zip(keys, due, strict=True)):
            state = states.get(key)
            closed = self._join.close(key, state, at_ns)
            times[row] = closed.at_ns
            if row not in refused and not is_stopped:
                try:
                    for left, right in closed.pairs:
                        pair(left, right, row)
                except ANY_ERROR as error:
                    output.fail(row, reason_of(error))
                    is_stopped = True
            states.delete_or_rearm(key, state, batch, row)
        return output.results(batch.length)


def _pair(node: Joined, output: ResultBuilder) -> Pair:
    """Returns what calls the join's function for a pair. With on_error="stop", that raises what the function raises.

    A message that may have several partners is copied for each, so that no pair sees what the function did to it for
    another one.
    """
    combine, add, fail, stops = node.combine, output.add, output.fail, node.on_error == STOP
    copied_left = node.parent.one_schema(node.name).copied if node.kind.left_has_several else None
    copied_right = node.right.one_schema(node.name).copied

    def pair(left: Any, right: Any, row: int) -> None:
        try:
            if copied_left is not None and left is not None:
                left = copied_left(left)
            if copied_right is not None and right is not None:
                right = copied_right(right)
            result = combine(left, right)
            if result is not None:
                add(result, row)
        except ANY_ERROR as error:
            if stops:
                raise
            fail(row, reason_of(error))

    return pair


def _of_sides(batch: Batch, adders: tuple[Add, Add], start: int = 0) -> Iterator[Add]:
    """What adds the message of each row to the join, from row `start` on."""
    columns = sides_of(batch)
    if (one_side := columns.one_side) is not None:
        return repeat(adders[one_side])
    return iter([adders[is_right] for is_right in columns.of_right[start:].tolist()])
