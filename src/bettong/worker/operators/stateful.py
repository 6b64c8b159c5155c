"""`Stream.stateful`: folds each key's messages, and its timers, into a state of its own."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bettong.application.streams import Stateful
from bettong.frames.columns import Columns
from bettong.worker.batch import Batch
from bettong.worker.calling.results import Calling, Results
from bettong.worker.due import Due
from bettong.worker.fired import DueTimers
from bettong.worker.operators.firings import Firings
from bettong.worker.operators.operator import derived
from bettong.worker.output.dead_letters import DeadLetters, FiringDeadLetters
from bettong.worker.state.table import StateTable


class StatefulOperator:
    """See Operator. `table`: the states of its partition's keys; `timers`: by field, how its function is called."""

    def __init__(
        self, node: Stateful, table: StateTable, calling: Calling[Any], timers: Mapping[str, Calling[Any]]
    ) -> None:
        self.name = node.name
        self.table = table
        self._node = node
        self._calling = calling
        self._timers = timers

    def on_batch(self, batch: Batch, dead_letters: DeadLetters) -> Batch:
        """See Operator. Folds the rows in order, each into the state of its key."""
        results = self._calling.call(batch, self.table.open(batch))
        return derived(self.name, batch, results, dead_letters)

    @property
    def due(self) -> Due | None:
        """See Operator."""
        return self.table.due if self._timers else None

    def on_time(self, log_ns: int, watermark_ns: int, dead_letters: FiringDeadLetters) -> Sequence[Batch]:
        """See Operator. A timer is NEVER before its function is called."""
        firings = Firings(self._node.schema)
        while due := self.table.take_due(log_ns, watermark_ns):
            for each in due:
                refused = firings.refused(each)
                if dead_letters.excluded:
                    refused = dict.fromkeys(range(each.rows.length), dead_letters.excluded)
                firings.add(each, self._fire(each, refused))
        return firings.tell(self.name, dead_letters)

    def _fire(self, due: DueTimers, refused: Mapping[int, str]) -> Results:
        """Calls their function, but for those that are refused, for a reason: they have failed."""
        if not refused:
            return self._call(due.field, due.rows)
        kept = np.array([row for row in range(due.rows.length) if row not in refused], np.int64)
        if not len(kept):
            return Results(Columns.of_messages(self._node.schema, []), kept, list(refused.items()))
        found = self._call(due.field, due.rows.take(kept))
        failures = [(int(kept[row]), reason) for row, reason in found.failures]
        return Results(
            found.columns, kept if found.rows is None else kept[found.rows], [*failures, *refused.items()]
        )

    def _call(self, field: str, rows: Batch) -> Results:
        return self._timers[field].call(rows, self.table.open(rows, renews=False))
