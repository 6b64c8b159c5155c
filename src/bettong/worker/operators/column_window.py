"""Compiled `Stream.window`: processes a batch at once, and fires all windows that are over at once."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

import numpy as np

from bettong.application.windows.windowed import Windowed
from bettong.frames.columns import Array, Columns
from bettong.worker.batch import Batch
from bettong.worker.calling.results import Results
from bettong.worker.due import Due
from bettong.worker.event_times import EventTimes
from bettong.worker.exclusions import ExcludedTimer
from bettong.worker.fired import Firing
from bettong.worker.firing_bounds import too_many
from bettong.worker.operators.operator import derived
from bettong.worker.output.dead_letters import DeadLetters, FiringDeadLetters
from bettong.worker.state.pane_table import PaneTable
from bettong.worker.windows.compiled_kinds import column_windows
from bettong.worker.windows.late_rows import LateRows
from bettong.worker.windows.pane_kernels import BEYOND, LATE, PARTLY_LATE, REFUSED


class ColumnWindowOperator:
    """See Operator. It calls no user function, so nothing raises."""

    def __init__(self, node: Windowed, table: PaneTable) -> None:
        self.name = node.name
        self.table = table
        self.late_rows = LateRows(are_kept=node.windowing.late == "side")
        self._late = node.windowing.late
        self._windows, self._accumulators = column_windows(node, table)
        self._nothing = Results(Columns.of_messages(node.schema, []), np.empty(0, np.int64))
        # Groups without a timeout have none; the second timer is that of early results.
        self._timers = [timer.field for timer in node.timers]

    def on_batch(self, batch: Batch, dead_letters: DeadLetters) -> Batch:
        """See Operator."""
        refused = self._accumulators.refused(batch.columns)
        marks = self._windows.add(batch, refused)
        results, late = self._nothing, np.flatnonzero(marks == LATE)
        if marks.any():
            partly_late = int(np.count_nonzero(marks == PARTLY_LATE))
            self.late_rows.count(len(late), partly_late)
            self.late_rows.rows += len(late)
            self.late_rows.partly_late_rows += partly_late
            self.late_rows.keep(batch, late)
            times = batch.event_times()
            if self._late == "fire" and len(late):
                results = self._fire_late_rows(batch, late, times[late])
            failures = [
                (row, self._windows.beyond(times[row])) for row in np.flatnonzero(marks == BEYOND).tolist()
            ]
            failures += [(row, refused[row]) for row in np.flatnonzero(marks == REFUSED).tolist()]
            if failures:
                results = results._replace(failures=sorted([*failures, *results.failures], key=itemgetter(0)))
        return derived(self.name, batch, results, dead_letters, late)

    def _fire_late_rows(self, batch: Batch, late: Array, times: Array) -> Results:
        """The results of late rows, each in a window by itself."""
        rows = batch.take(late)
        starts, ends = self._windows.late_windows(late, times)
        keys = self.table.keys_of(rows)
        kept = self._accumulators.alone(rows.columns)
        columns, violations = self._accumulators.results(keys, starts, ends, kept)
        failures = [(int(late[row]), reason) for row, reason in violations.items()]
        return Results(columns, np.delete(late, list(violations)), failures)

    @property
    def due(self) -> Due | None:
        """See Operator."""
        return self.table.due if self._timers else None

    def soonest_due(self, times: Array) -> Array | None:
        """See Operator."""
        return self._windows.soonest_due(times)

    def on_time(self, log_ns: int, watermark_ns: int, dead_letters: FiringDeadLetters) -> Sequence[Batch]:
        """See Operator."""
        if not self._timers:
            return ()
        closed = self._windows.close(log_ns, watermark_ns)
        if closed is None:
            return ()
        given = closed.given
        fired = self.table.rows_of(closed.keys, closed.dues)

        def firing(index: int) -> Firing:
            field = self._timers[int(closed.are_early[index])]
            return Firing(field, fired.key_values()[index], int(closed.dues[index]))

        dead_letters.firing = firing
        columns, violations = self._accumulators.results(
            closed.keys[given], closed.starts, closed.ends, closed.kept, closed.are_early[given]
        )
        self._windows.release(closed)
        fit = np.delete(given, list(violations))
        left_out: dict[int, str | ExcludedTimer] = {
            **too_many(closed.keys),
            **dead_letters.left_out(self.name, fired.length),
        }
        if left_out:
            is_in = ~np.isin(fit, list(left_out))
            columns, fit = columns.take(np.flatnonzero(is_in)), fit[is_in]
        failures = [(int(given[row]), why) for row, why in violations.items()]
        failed = [each for each in failures if each[0] not in left_out]
        dead_letters.add_all(self.name, [*failed, *left_out.items()])
        if not columns.length:
            return ()
        rows = fired.at(EventTimes.of(np.maximum(closed.times, 0)))
        is_each = len(fit) == fired.length and not closed.are_early.any()
        return [rows.derived(columns, None if is_each else fit)]
