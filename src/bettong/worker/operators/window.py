"""`Stream.window`: aggregates each key's messages in windows, and handles those that are late."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from bettong.application.windows.aggregated import Aggregated, AggregatedValues
from bettong.application.windows.partials import ACCUMULATOR, MESSAGES
from bettong.application.windows.windowed import LateMessages, Windowed
from bettong.application.windows.windowing import Windowing
from bettong.frames.columns import Array
from bettong.worker.batch import Batch
from bettong.worker.calling.results import Results
from bettong.worker.calling.windows import WindowClosing, WindowMessages
from bettong.worker.exclusions import ExcludedTimer
from bettong.worker.fired import DueTimers, fired_at
from bettong.worker.operators.column_groups import CountOperator
from bettong.worker.operators.column_window import ColumnWindowOperator
from bettong.worker.operators.operator import Operator, OperatorParts, WithoutTime, derived
from bettong.worker.operators.stateful import StatefulOperator
from bettong.worker.output.dead_letters import DeadLetters
from bettong.worker.progress import FoldProgress
from bettong.worker.state.group_tables import CountTable
from bettong.worker.state.pane_table import PaneTable
from bettong.worker.state.table import StateTable
from bettong.worker.windows.key_windows import key_windows
from bettong.worker.windows.late_rows import LateRows
from bettong.worker.windows.partials import MergedPartials


def window_operator(node: Windowed, parts: OperatorParts) -> Operator:
    """The operator of `window`."""
    table = parts.tables[node.name]
    if isinstance(table, PaneTable):
        return (CountOperator if isinstance(table, CountTable) else ColumnWindowOperator)(node, table)
    windowing, added = node.windowing, None
    if node.merges_partials:
        windowing = _of_partials(node)
    elif isinstance(aggregation := windowing.aggregation, Aggregated) and (added := aggregation.added()):
        windowing = replace(windowing, aggregation=AggregatedValues(aggregation))
    windows = key_windows(windowing)
    closing = {timer.field: WindowClosing(node, windows, timer.field) for timer in node.timers}
    adding = WindowMessages(node, windows, parts.progress, added)
    return WindowOperator(node, table, adding, closing, parts.progress)


def _of_partials(node: Windowed) -> Windowing:
    """The same windows, over partials instead of messages."""
    (takes,) = node.handlers
    return replace(node.windowing, aggregation=MergedPartials(node, takes.fields[ACCUMULATOR].name))


def late_operator(node: LateMessages, parts: OperatorParts) -> Operator:
    """The operator of a window's late messages."""
    window = parts.made[node.windowed.name]
    assert isinstance(window, WindowOperator | ColumnWindowOperator)  # noqa: S101 - it is of a window
    return LateOperator(node.name, window.late_rows)


class WindowOperator(StatefulOperator):
    """See Operator. A window that is over fires as a timer; its result has an event time of its own."""

    def __init__(
        self,
        node: Windowed,
        table: StateTable,
        calling: WindowMessages,
        closing: Mapping[str, WindowClosing],
        progress: FoldProgress,
    ) -> None:
        super().__init__(node, table, calling, closing, progress)
        self.late_rows = LateRows(are_kept=node.windowing.late == "side")
        self._merges_partials = node.merges_partials
        self._adding = calling
        self._closing = closing
        self._times: Array = np.empty(0, np.int64)

    def on_batch(self, batch: Batch, dead_letters: DeadLetters) -> Batch:
        """See Operator."""
        results = self._adding.call(batch, self.table.open(batch))
        rows = self._adding.rows
        if rows.late or rows.partly_late:
            of = self._messages_of(batch)
            self.late_rows.count(of(rows.late), of(rows.partly_late))
            self.late_rows.keep(batch, rows.late)
            self.late_rows.rows += len(rows.late)
            self.late_rows.partly_late_rows += len(rows.partly_late)
        return derived(self.name, batch, results, dead_letters, rows.late)

    def _messages_of(self, batch: Batch) -> Callable[[Sequence[int]], int]:
        """A function that counts the messages in some rows."""
        if not self._merges_partials:
            return len
        messages = np.asarray(batch.columns.columns[MESSAGES])
        return lambda rows: int(messages[list(rows)].sum())

    def soonest_due(self, times: Array) -> Array | None:
        """See Operator."""
        return self._adding.windows.soonest_due(times)

    def _take_due(self, log_ns: int, watermark_ns: int) -> Sequence[DueTimers]:
        """See StateTable.take_due. Leaves out sessions that have grown."""
        while due := super()._take_due(log_ns, watermark_ns):
            found = [DueTimers(each.field, self._still_due(each)) for each in due]
            if over := [each for each in found if each.rows.length]:
                return over
        return ()

    def _still_due(self, due: DueTimers) -> Batch:
        return self._closing[due.field].over(due.rows, self.table.open(due.rows, renews=False))

    def _fire(self, due: DueTimers, refused: Mapping[int, str | ExcludedTimer]) -> Results:
        closing, rows = self._closing[due.field], due.rows
        results = super()._fire(due, refused)
        called = [row for row in range(rows.length) if row not in refused]
        self._times = rows.event_times().copy()
        if called:
            self._times[called] = np.maximum(np.array(closing.times, np.int64), 0)
        for row, why in refused.items():
            # A text refuses too many windows at one record: skip those without messages at once.
            closing.skip(
                rows.slice(row, row + 1), self.table.open(rows, renews=False), empty=isinstance(why, str)
            )
        return results

    def _fired(self, due: DueTimers) -> DueTimers:
        return DueTimers(due.field, fired_at(due.rows, self._times))


class LateOperator(WithoutTime):
    """See Operator. It reads the rows that its window reads, and runs after it."""

    def __init__(self, name: str, late_rows: LateRows) -> None:
        self.name = name
        self._late_rows = late_rows

    def on_batch(self, batch: Batch, dead_letters: DeadLetters) -> Batch:  # noqa: ARG002
        """See Operator."""
        late = self._late_rows.take()
        return Batch.concatenated(late) if late else batch.slice(0, 0)
