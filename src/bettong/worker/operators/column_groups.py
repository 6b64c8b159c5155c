"""Compiled `Stream.window` over groups of a fixed number of messages."""

from __future__ import annotations

from operator import itemgetter

import numpy as np

from bettong.worker.batch import Batch
from bettong.worker.calling.results import Results
from bettong.worker.operators.column_window import ColumnWindowOperator
from bettong.worker.operators.operator import derived
from bettong.worker.output.dead_letters import DeadLetters
from bettong.worker.windows.group_columns import CountColumns


class CountOperator(ColumnWindowOperator):
    """See ColumnWindowOperator. A group's result comes with the message that completes it; none is late."""

    def on_batch(self, batch: Batch, dead_letters: DeadLetters) -> Batch:
        """See Operator."""
        windows, refused = self._windows, self._accumulators.refused(batch.columns)
        assert isinstance(windows, CountColumns)  # noqa: S101 - it is of no others
        taken, rows = batch, np.arange(batch.length)
        if refused:
            rows = np.delete(rows, list(refused))
            taken = batch.take(rows)
        full = windows.fill(taken.columns, self.table.slots(taken), taken.event_times())
        keys = self.table.keys_of(taken)[full.rows]
        columns, violations = self._accumulators.results(keys, full.starts, full.ends, full.kept)
        self.table.panes.give_back_items(full.kept.words[:, 1:])
        given = rows[full.rows]
        failures = [*refused.items(), *((int(given[index]), why) for index, why in violations.items())]
        results = Results(columns, np.delete(given, list(violations)), sorted(failures, key=itemgetter(0)))
        return derived(self.name, batch, results, dead_letters)
