"""`Stream.join_within` and the other joins of two streams: pairs of messages, and messages that are late for any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bettong.application.joins.joined import Joined, LateSide
from bettong.application.joins.kinds import Latest
from bettong.frames.columns import Array
from bettong.worker.batch import Batch
from bettong.worker.calling.joins import JoinClosing, JoinMessages
from bettong.worker.calling.results import Results
from bettong.worker.exclusions import ExcludedTimer
from bettong.worker.fired import DueTimers, fired_at, order_of_key, rows_of_keys
from bettong.worker.joins.column_joins import ColumnTable
from bettong.worker.joins.key_joins import key_join
from bettong.worker.joins.late_sides import LateSides
from bettong.worker.joins.sides import sides_of
from bettong.worker.operators.column_join import ColumnJoinOperator
from bettong.worker.operators.operator import Operator, OperatorParts, WithoutTime, derived
from bettong.worker.operators.stateful import StatefulOperator
from bettong.worker.output.dead_letters import DeadLetters
from bettong.worker.progress import FoldProgress
from bettong.worker.state.table import StateTable


def join_operator(node: Joined, parts: OperatorParts) -> Operator:
    """The operator of `join_within`, `join_latest`, `join_as_of` and `join_window`."""
    table = parts.tables[node.name]
    if isinstance(table, ColumnTable):
        return ColumnJoinOperator(
            node, table, parts.pair_calling(node), parts.deletes_calling(node), parts.progress
        )
    return JoinOperator(node, table, parts.progress)


def late_side_operator(node: LateSide, parts: OperatorParts) -> Operator:
    """The operator of a join's late messages."""
    join = parts.made[node.joined.name]
    assert isinstance(join, JoinOperator | ColumnJoinOperator)  # noqa: S101 - it is of a join
    return LateSideOperator(node, join.late_sides)


class JoinOperator(StatefulOperator):
    """See Operator. It reads batches of SidedColumns. Results of timers have an event time of their own."""

    def __init__(self, node: Joined, table: StateTable, progress: FoldProgress) -> None:
        join = key_join(node)
        self._adding = JoinMessages(node, join, progress)
        self._closing = JoinClosing(node, join)
        super().__init__(
            node,
            table,
            self._adding,
            dict.fromkeys((each.field for each in node.timers), self._adding),
            progress,
        )
        self.late_sides = LateSides()
        self._changes_by_right_alone = isinstance(node.kind, Latest)
        self._times: Array = np.empty(0, np.int64)

    def on_batch(self, batch: Batch, dead_letters: DeadLetters) -> Batch:
        """See Operator."""
        columns = sides_of(batch)
        changing = batch.take(np.flatnonzero(columns.of_right)) if self._changes_by_right_alone else batch
        results = self._adding.call(batch, self.table.open(changing))
        rows = self._adding.rows
        self.late_sides.note(batch, rows.late, len(rows.partly_late))
        return derived(self.name, batch, results, dead_letters, rows.late)

    def soonest_due(self, times: Array) -> Array | None:
        """See Operator."""
        return self._adding.join.soonest_due(times)

    def _take_due(self, log_ns: int, watermark_ns: int) -> Sequence[DueTimers]:
        """See StatefulOperator. With all due times of these keys: a round costs time, and a key may have many."""
        while due := super()._take_due(log_ns, watermark_ns):
            found = [self._with_all_due_times(each, watermark_ns) for each in due]
            if firing := [each for each in found if each.rows.length]:
                return firing
        return ()

    def _with_all_due_times(self, due: DueTimers, watermark_ns: int) -> DueTimers:
        states = self.table.open(due.rows, renews=False)
        found: list[tuple[int, Any]] = []
        has_others = False
        for key, at_ns in zip(due.rows.key_values(), due.rows.columns.values(1), strict=True):
            state = states.get(key)
            times = self._adding.join.due_ns(state, at_ns, watermark_ns)
            found += [(each_ns, key) for each_ns in times]
            has_others |= len(times) != 1
            if not times and states.timers is not None:
                states.timers.note(key, state)
        if not has_others:
            return due
        if not found:
            return DueTimers(due.field, due.rows.slice(0, 0))
        found.sort(key=lambda each: (each[0], order_of_key(each[1])))
        (rows,) = rows_of_keys(
            [key for _, key in found], [at_ns for at_ns, _ in found], due.rows.schema.fields[0]
        )
        return DueTimers(due.field, rows)

    def _fire(self, due: DueTimers, refused: Mapping[int, str | ExcludedTimer]) -> Results:
        rows = due.rows
        if called := [row for row in range(rows.length) if row not in refused]:
            of_called = rows if len(called) == rows.length else rows.take(np.array(called, np.int64))
            self._progress.fire(self.name, of_called, due.text)
        results = self._closing.call(rows, self.table.open(rows, renews=False), refused)
        self._progress.rest(self.name)
        self._times = np.maximum(np.array(self._closing.times, np.int64), 0)
        return results

    def _fired(self, due: DueTimers) -> DueTimers:
        return DueTimers(due.field, fired_at(due.rows, self._times))


class LateSideOperator(WithoutTime):
    """See Operator. It reads the rows that its join reads, and runs after it."""

    def __init__(self, node: LateSide, late_sides: LateSides) -> None:
        self.name = node.name
        self._late_sides = late_sides
        self._is_right = node.is_right
        late_sides.keep(is_right=node.is_right)

    def on_batch(self, batch: Batch, dead_letters: DeadLetters) -> Batch:  # noqa: ARG002
        """See Operator."""
        late = self._late_sides.take(is_right=self._is_right)
        return Batch.concatenated(late) if late else batch.slice(0, 0)
