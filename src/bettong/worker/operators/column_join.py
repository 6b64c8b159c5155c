"""Joins whose function is compiled: they make all pairs of a batch at once, and all pairs that timers make."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from bettong.application.joins.joined import Joined
from bettong.frames.columns import Array, Columns
from bettong.worker.batch import Batch
from bettong.worker.calling.compiled import PairCalling
from bettong.worker.calling.deletes import deletes_of
from bettong.worker.calling.results import Calling, Results
from bettong.worker.due import Due
from bettong.worker.event_times import EventTimes
from bettong.worker.exclusions import ExcludedTimer
from bettong.worker.fired import DueTimers, Firing
from bettong.worker.joins.column_joins import ColumnTable, column_join
from bettong.worker.joins.late_sides import LateSides
from bettong.worker.joins.pair_columns import PairColumns
from bettong.worker.operators.operator import derived
from bettong.worker.output.dead_letters import DeadLetters, FiringDeadLetters
from bettong.worker.progress import FoldProgress


class ColumnJoinOperator:
    """See Operator. Results of timers have an event time of their own."""

    def __init__(
        self,
        node: Joined,
        table: ColumnTable,
        calling: PairCalling,
        deletes: Calling[None] | None,
        progress: FoldProgress,
    ) -> None:
        self.name = node.name
        self.table = table
        self.late_sides = LateSides()
        self._join = column_join(node, table, deletes_of(node, deletes))
        self._calling = calling
        self._progress = progress
        self._schema = node.schema
        self._timers = [timer.field for timer in node.timers]

    def on_batch(self, batch: Batch, dead_letters: DeadLetters) -> Batch:
        """See Operator."""
        found = self._join.add(batch)
        self.late_sides.note(batch, found.late, found.partly_late)
        results = self._calling.call(found.pairs, found.failures)
        return derived(self.name, batch, results, dead_letters, found.late)

    @property
    def due(self) -> Due | None:
        """See Operator."""
        return self.table.due if self._timers else None

    def soonest_due(self, times: Array) -> Array | None:
        """See Operator."""
        return self._join.soonest_due(times)

    def on_time(self, log_ns: int, watermark_ns: int, dead_letters: FiringDeadLetters) -> Sequence[Batch]:  # noqa: ARG002
        """See Operator. A key has a bounded number of firings: by its messages, or since the join refuses others."""
        found = self._join.close(watermark_ns, reports_all=dead_letters.exclusion is not None)
        if found is None:
            return ()
        (timer,) = self._timers
        due = self.table.due_timers(timer, found.keys, found.dues)
        rows = due.rows.at(EventTimes.of(np.maximum(found.times, 0)))

        def firing(index: int) -> Firing:
            return Firing(timer, rows.key_values()[index], int(found.dues[index]))

        dead_letters.firing = firing
        left_out: dict[int, str | ExcludedTimer] = {
            **found.refused,
            **dead_letters.left_out(self.name, rows.length),
        }
        results = self._fire(due, self._calls(found.pairs, list(left_out)))
        dead_letters.add_all(self.name, [*results.failures, *left_out.items()])
        if results.columns is None or not results.columns.length:
            return ()
        return [rows.derived(results.columns, results.rows)]

    def _calls(self, pairs: Iterable[PairColumns], left_out: Sequence[int]) -> Iterator[PairColumns]:
        """The pairs of each call: of all firings, or one firing a call where the progress of each is marked."""
        for each in pairs:
            part = each.take(np.flatnonzero(~np.isin(each.rows, left_out))) if left_out else each
            if self._progress.mark is None:
                yield part
            else:
                yield from (part.take(np.flatnonzero(part.rows == row)) for row in np.unique(part.rows))

    def _fire(self, due: DueTimers, calls: Iterable[PairColumns]) -> Results:
        found = []
        for pairs in calls:
            if pairs.left.length:
                self._progress.fire(self.name, due.rows.take(np.unique(pairs.rows)), due.text)
                found.append(self._calling.call(pairs))
        self._progress.rest(self.name)
        columns = [each.columns for each in found if each.columns is not None]
        rows = [each.rows for each in found if each.rows is not None]
        return Results(
            Columns.concatenated(self._schema, columns) if columns else None,
            np.concatenate(rows) if rows else None,
            [failure for each in found for failure in each.failures],
        )
