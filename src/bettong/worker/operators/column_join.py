"""`join_within` whose function is compiled: all pairs of a batch at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bettong.application.joins.joined import Joined
from bettong.application.timers import NEVER
from bettong.frames.columns import Array
from bettong.user_errors import reason_of
from bettong.worker.batch import Batch
from bettong.worker.calling.compiled import PairCalling
from bettong.worker.due import Due
from bettong.worker.joins.late_sides import LateSides
from bettong.worker.joins.within import beyond
from bettong.worker.joins.within_columns import within_columns
from bettong.worker.operators.operator import derived
from bettong.worker.output.dead_letters import DeadLetters, FiringDeadLetters
from bettong.worker.state.join_table import JoinTable


class ColumnJoinOperator:
    """See Operator. Of pairs alone, so nothing comes of what time does."""

    def __init__(self, node: Joined, table: JoinTable, calling: PairCalling) -> None:
        self.name = node.name
        self.table = table
        self.late_sides = LateSides()
        self._join = within_columns(node, table)
        self._calling = calling

    def on_batch(self, batch: Batch, dead_letters: DeadLetters) -> Batch:
        """See Operator."""
        found = self._join.take(batch)
        self.late_sides.note(batch, found.late)
        failures = []
        if len(found.beyond):
            times = batch.event_times()
            failures = [(row, reason_of(beyond(int(times[row])))) for row in found.beyond.tolist()]
        results = self._calling.call(found.left, found.right, found.rows, failures)
        return derived(self.name, batch, results, dead_letters, found.late)

    @property
    def due(self) -> Due | None:
        """See Operator."""
        return self.table.due

    def soonest_due(self, times: Array) -> Array | None:
        """See Operator. Nobody sees when a message is thrown away."""
        return np.full(len(times), NEVER, np.int64)

    def on_time(self, log_ns: int, watermark_ns: int, dead_letters: FiringDeadLetters) -> Sequence[Batch]:  # noqa: ARG002
        """See Operator."""
        self._join.drop_past(watermark_ns)
        return ()
