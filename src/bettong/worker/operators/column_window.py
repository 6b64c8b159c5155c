"""`Stream.window` of what is marked `bettong.compiled`: batches at once, and all windows that are over at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter

import numpy as np

from bettong.application.windows.windowed import Windowed
from bettong.frames.columns import Array, Columns
from bettong.user_errors import reason_of
from bettong.worker.batch import Batch
from bettong.worker.calling.results import Results
from bettong.worker.due import Due
from bettong.worker.event_times import EventTimes
from bettong.worker.exclusions import ExcludedTimer
from bettong.worker.fired import Firing
from bettong.worker.operators.operator import derived
from bettong.worker.output.dead_letters import DeadLetters, FiringDeadLetters
from bettong.worker.state.pane_table import PaneTable
from bettong.worker.windows.late_rows import LateRows
from bettong.worker.windows.pane_kernels import BEYOND, LATE, PARTLY_LATE, REFUSED
from bettong.worker.windows.range_columns import range_columns


class ColumnWindowOperator:
    """See Operator. No function of the user's is called here, so nothing raises."""

    def __init__(self, node: Windowed, table: PaneTable) -> None:
        self.name = node.name
        self.table = table
        self.late_rows = LateRows(are_kept=node.windowing.late == "side")
        self._late = node.windowing.late
        self._windows, self._accumulators = range_columns(node, table)
        self._nothing = Results(Columns.of_messages(node.schema, []), np.empty(0, np.int64))
        (self._timer,) = (timer.field for timer in node.timers)

    def on_batch(self, batch: Batch, dead_letters: DeadLetters) -> Batch:
        """See Operator."""
        times = batch.event_times()
        rows = self._windows.find_panes(times, batch.message_watermarks())
        kept, results = batch, self._nothing
        late: Sequence[int] | Array = ()
        refused = self._refused(batch, rows.marks)
        if rows.marked or refused:
            is_late, is_beyond = rows.marks == LATE, rows.marks == BEYOND
            is_out = is_beyond | (rows.marks == REFUSED)
            late = np.flatnonzero(is_late)
            partly_late = int(np.count_nonzero(rows.marks == PARTLY_LATE))
            self.late_rows.count(len(late), partly_late)
            self.late_rows.rows += len(late)
            self.late_rows.partly_late_rows += partly_late
            self.late_rows.keep(batch, late)
            is_kept = ~is_out if self._late == "oldest" else ~(is_out | is_late)
            if self._late == "fire" and len(late):
                results = self._each_alone(batch, late, times[late])
            if is_out.any():
                failures = [(row, _beyond(times[row])) for row in np.flatnonzero(is_beyond).tolist()]
                failures = sorted([*failures, *refused.items(), *results.failures], key=itemgetter(0))
                results = results._replace(failures=failures)
            if not is_kept.all():
                chosen = np.flatnonzero(is_kept)
                kept, rows = batch.take(chosen), rows.take(chosen)
        if kept.length:
            self._windows.add(kept.columns, self.table.slots(kept), rows)
        return derived(self.name, batch, results, dead_letters, late)

    def _refused(self, batch: Batch, marks: Array) -> Mapping[int, str]:
        """The rows that would be added to a window and that an aggregate refuses, which get a mark; and why."""
        found = self._accumulators.refused(batch.columns)
        left_alone = (BEYOND, LATE) if self._late in ("drop", "side") else (BEYOND,)
        refused = {row: why for row, why in found.items() if marks[row] not in left_alone}
        marks[list(refused)] = REFUSED
        return refused

    def _each_alone(self, batch: Batch, late: Array, times: Array) -> Results:
        """What late rows give at once."""
        rows = batch.take(late)
        starts, ends = self._windows.newest_windows(times)
        keys = self.table.keys_of(rows)
        kept = self._windows.alone(rows.columns)
        columns, violations = self._accumulators.results(keys, starts, ends, kept)
        failures = [(int(late[row]), reason) for row, reason in violations.items()]
        return Results(columns, np.delete(late, list(violations)), failures)

    @property
    def due(self) -> Due | None:
        """See Operator."""
        return self.table.due

    def soonest_due(self, times: Array) -> Array | None:
        """See Operator."""
        return self._windows.soonest_due(times)

    def on_time(self, log_ns: int, watermark_ns: int, dead_letters: FiringDeadLetters) -> Sequence[Batch]:  # noqa: ARG002
        """See Operator. A window fires once, so how often a key fires is bounded by its panes."""
        closed = self._windows.close(watermark_ns)
        if closed is None:
            return ()
        fired = self.table.rows_of(closed.keys, closed.dues)

        def firing(index: int) -> Firing:
            return Firing(self._timer, fired.key_values()[index], int(closed.dues[index]))

        dead_letters.firing = firing
        starts, ends = self._windows.windows_due(closed.dues)
        columns, violations = self._accumulators.results(closed.keys, starts, ends, closed.kept)
        self._windows.release(closed)
        fit = np.delete(np.arange(fired.length), list(violations))
        left_out = dead_letters.left_out(self.name, fired.length)
        if left_out:
            is_in = ~np.isin(fit, list(left_out))
            columns, fit = columns.take(np.flatnonzero(is_in)), fit[is_in]
        failures: dict[int, str | ExcludedTimer] = {**violations, **left_out}
        dead_letters.add_all(self.name, failures.items())
        if not columns.length:
            return ()
        rows = fired.at(EventTimes.of(np.maximum(ends - 1, 0)))
        return [rows.derived(columns, fit if failures else None)]


def _beyond(at_ns: int) -> str:
    return reason_of(ValueError(f"its event time is {at_ns} ns: its window ends after the year 2262"))
