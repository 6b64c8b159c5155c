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

# How often a key's timers may fire in one call: a function that sets its timer again, to a time that has come, would
# never end. What rings each second rings for a quarter of an hour after a pause; what lies beyond is a dead letter.
ROUNDS_MAX = 1000

_AGAIN = (
    f"{ROUNDS_MAX} times at one record it was set again to a time that had come. It does not fire once more, and is"
    " bettong.NEVER now: set it to a time that is to come"
)


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
                firings.add(each, self._fire(each, firings.rounds, is_excluded=bool(dead_letters.excluded)))
            firings.rounds += 1
        return firings.tell(self.name, dead_letters)

    def _fire(self, due: DueTimers, rounds: int, *, is_excluded: bool) -> Results:
        rows = due.rows
        if rounds < ROUNDS_MAX and not is_excluded:
            return self._timers[due.field].call(rows, self.table.open(rows, renews=False))
        nothing = Columns.of_messages(self._node.schema, [])
        return Results(nothing, np.empty(0, np.int64), [(row, _AGAIN) for row in range(rows.length)])
