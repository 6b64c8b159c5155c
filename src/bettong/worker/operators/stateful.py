"""`Stream.stateful`: folds each key's messages, and its timers, into a state of its own."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bettong.application.nodes.stateful import Stateful
from bettong.frames.columns import Array, Columns
from bettong.worker.batch import Batch
from bettong.worker.calling.results import Calling, Results
from bettong.worker.due import Due
from bettong.worker.exclusions import ExcludedTimer
from bettong.worker.fired import DueTimers, one_by_one
from bettong.worker.operators.firings import Firings
from bettong.worker.operators.operator import Operator, OperatorParts, derived
from bettong.worker.output.dead_letters import DeadLetters, FiringDeadLetters
from bettong.worker.progress import FoldProgress
from bettong.worker.state.table import StateTable


def stateful_operator(node: Stateful, parts: OperatorParts) -> Operator:
    """The operator of `stateful`."""
    timers = {timer.field: parts.timer_calling(node, timer) for timer in node.timers}
    return StatefulOperator(
        node, parts.tables[node.name], parts.stateful_calling(node), timers, parts.progress
    )


class StatefulOperator:
    """See Operator. `table`: the states of its partition's keys; `timers`: by field, how its function is called."""

    def __init__(
        self,
        node: Stateful,
        table: StateTable,
        calling: Calling[Any],
        timers: Mapping[str, Calling[Any]],
        progress: FoldProgress,
    ) -> None:
        self.name = node.name
        self.table = table
        self._node = node
        self._calling = calling
        self._timers = timers
        self._progress = progress

    def on_batch(self, batch: Batch, dead_letters: DeadLetters) -> Batch:
        """See Operator. Folds the rows in order, each into the state of its key."""
        results = self._calling.call(batch, self.table.open(batch))
        return derived(self.name, batch, results, dead_letters)

    @property
    def due(self) -> Due | None:
        """See Operator."""
        return self.table.due if self._timers else None

    def soonest_due(self, times: Array) -> Array | None:  # noqa: ARG002 - the user's function sets any time
        """See Operator."""
        return None

    def on_time(self, log_ns: int, watermark_ns: int, dead_letters: FiringDeadLetters) -> Sequence[Batch]:
        """See Operator. A timer is reset to NEVER before its function is called."""
        exclusion = dead_letters.exclusion
        firings = Firings(self._node.schema, exclusion.of_timers(self.name) if exclusion is not None else {})
        while due := self._take_due(log_ns, watermark_ns):
            for each in due if self._progress.mark is None else one_by_one(due):
                refused = firings.refused(each)
                results = self._fire(each, refused)
                firings.add(self._fired(each), results)
        return firings.results(self.name, dead_letters)

    def _take_due(self, log_ns: int, watermark_ns: int) -> Sequence[DueTimers]:
        """See StateTable.take_due."""
        return self.table.take_due(log_ns, watermark_ns)

    def _fire(self, due: DueTimers, refused: Mapping[int, str | ExcludedTimer]) -> Results:
        """Calls the timers' function, except for the refused rows; see `Firings.refused`."""
        if not refused:
            return self._call(due)
        kept = np.array([row for row in range(due.rows.length) if row not in refused], np.int64)
        if not len(kept):
            return Results(Columns.of_messages(self._node.schema, []), kept)
        found = self._call(DueTimers(due.field, due.rows.take(kept)))
        rows = kept if found.rows is None else kept[found.rows]
        return Results(found.columns, rows, [(int(kept[row]), reason) for row, reason in found.failures])

    def _fired(self, due: DueTimers) -> DueTimers:
        """These timers once they have fired, with the event times of their results."""
        return due

    def _call(self, due: DueTimers) -> Results:
        self._progress.fire(self.name, due.rows, due.text)
        results = self._timers[due.field].call(due.rows, self.table.open(due.rows, renews=False))
        self._progress.rest(self.name)
        return results
