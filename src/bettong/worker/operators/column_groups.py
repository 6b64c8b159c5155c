"""`Stream.window` of what is marked `bettong.compiled`, by windows of which a key has one at a time."""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter

import numpy as np

from bettong.application.windows.windowed import Windowed
from bettong.worker.batch import Batch
from bettong.worker.calling.results import Failure, Results
from bettong.worker.operators.column_window import ColumnWindowOperator, beyond
from bettong.worker.operators.operator import derived
from bettong.worker.output.dead_letters import DeadLetters
from bettong.worker.state.pane_table import PaneTable
from bettong.worker.windows.accumulators import Accumulators
from bettong.worker.windows.group_columns import CountColumns, EphemeralColumns
from bettong.worker.windows.pane_kernels import BEYOND, LATE, REFUSED


class CountOperator(ColumnWindowOperator):
    """Of groups of so many messages, which give their results with the messages that make them full."""

    def __init__(
        self, node: Windowed, table: PaneTable, windows: CountColumns, accumulators: Accumulators
    ) -> None:
        super().__init__(node, table, windows, accumulators)
        self._windows = windows

    def on_batch(self, batch: Batch, dead_letters: DeadLetters) -> Batch:
        """See Operator."""
        refused = self._accumulators.refused(batch.columns)
        taken, rows = batch, np.arange(batch.length)
        if refused:
            rows = np.delete(rows, list(refused))
            taken = batch.take(rows)
        full = self._windows.add(taken.columns, self.table.slots(taken), taken.event_times())
        keys = self.table.keys_of(taken)[full.rows]
        columns, violations = self._accumulators.results(keys, full.starts, full.ends, full.kept)
        self.table.panes.give_back_items(full.kept.words[:, 1:])
        given = rows[full.rows]
        failures = [(int(given[index]), why) for index, why in violations.items()]
        results = Results(columns, np.delete(given, list(violations)), _in_order(refused.items(), failures))
        return derived(self.name, batch, results, dead_letters)


class EphemeralOperator(ColumnWindowOperator):
    """Of ephemeral windows."""

    def __init__(
        self, node: Windowed, table: PaneTable, windows: EphemeralColumns, accumulators: Accumulators
    ) -> None:
        super().__init__(node, table, windows, accumulators)
        self._windows = windows

    def on_batch(self, batch: Batch, dead_letters: DeadLetters) -> Batch:
        """See Operator."""
        times, why = batch.event_times(), self._accumulators.refused(batch.columns)
        marks, opened = self._windows.add(
            batch.columns,
            self.table.slots(batch),
            times,
            batch.message_watermarks(),
            np.array(list(why), np.int64),
        )
        results, late = self._nothing, np.empty(0, np.int64)
        if marks.any():
            late = np.flatnonzero(marks == LATE)
            self._count_late(batch, late)
            if self._late == "fire" and len(late):
                results = self._each_alone(batch, late, *self._windows.covered(opened[late]))
            out = [(row, beyond(times[row])) for row in np.flatnonzero(marks == BEYOND).tolist()]
            out += [(row, why[row]) for row in np.flatnonzero(marks == REFUSED).tolist()]
            results = results._replace(failures=_in_order(out, results.failures))
        return derived(self.name, batch, results, dead_letters, late)


def _in_order(*failures: Iterable[Failure]) -> list[Failure]:
    return sorted((each for some in failures for each in some), key=itemgetter(0))
