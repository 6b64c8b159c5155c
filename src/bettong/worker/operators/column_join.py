"""Compiled joins: all pairs of a batch at once, and all of what is due at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bettong.application.joins.joined import Joined
from bettong.frames.columns import Array
from bettong.worker.batch import Batch
from bettong.worker.calling.compiled import PairCalling
from bettong.worker.calling.deletes import deletes_of
from bettong.worker.calling.results import Calling
from bettong.worker.due import Due
from bettong.worker.fired import DueTimers
from bettong.worker.joins.column_join import ClosedKeys
from bettong.worker.joins.column_joins import ColumnTable, column_join
from bettong.worker.joins.late_sides import LateSides
from bettong.worker.operators.firings import Firings
from bettong.worker.operators.operator import derived
from bettong.worker.output.dead_letters import DeadLetters, FiringDeadLetters


class ColumnJoinOperator:
    """See Operator."""

    def __init__(
        self, node: Joined, table: ColumnTable, calling: PairCalling, deletes: Calling[None] | None
    ) -> None:
        self.name = node.name
        self.table = table
        self.late_sides = LateSides()
        self._node = node
        self._join = column_join(node, table, deletes_of(node, deletes))
        self._calling = calling

    def on_batch(self, batch: Batch, dead_letters: DeadLetters) -> Batch:
        """See Operator."""
        taken = self._join.take(batch)
        self.late_sides.note(batch, taken.late)
        results = self._calling.call(taken.pairs, taken.failures)
        return derived(self.name, batch, results, dead_letters, taken.late)

    @property
    def due(self) -> Due | None:
        """See Operator."""
        return self.table.due if self._node.timers else None

    def soonest_due(self, times: Array) -> Array | None:
        """See Operator."""
        return self._join.soonest_due(times)

    def on_time(self, log_ns: int, watermark_ns: int, dead_letters: FiringDeadLetters) -> Sequence[Batch]:  # noqa: ARG002
        """See Operator. A key fires once for each time of its messages, so how often is bounded by these."""
        closed = self._join.close(watermark_ns)
        return () if closed is None else self._fired(closed, dead_letters)

    def _fired(self, closed: ClosedKeys, dead_letters: FiringDeadLetters) -> Sequence[Batch]:
        exclusion = dead_letters.exclusion
        firings = Firings(self._node.schema, exclusion.of_timers(self.name) if exclusion is not None else {})
        (timer,) = self._node.timers
        due, pairs = DueTimers(timer.field, closed.fired), closed.pairs
        if refused := firings.refused(due):
            pairs = [each.take(np.flatnonzero(~np.isin(each.rows, list(refused)))) for each in pairs]
        firings.add(due, self._calling.call(pairs, []))
        return firings.results(self.name, dead_letters)
