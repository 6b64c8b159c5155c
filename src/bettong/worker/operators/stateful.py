"""`Stream.stateful`: folds each key's messages into a state of its own."""

from typing import Any

from bettong.worker.batch import Batch
from bettong.worker.calling.results import Calling
from bettong.worker.operators.operator import WithoutTime, derived
from bettong.worker.output.dead_letters import DeadLetters
from bettong.worker.state.table import StateTable


class StatefulOperator(WithoutTime):
    """See Operator. `table` holds the states of its partition's keys."""

    def __init__(self, name: str, table: StateTable, calling: Calling[Any]) -> None:
        self.name = name
        self.table = table
        self._calling = calling

    def on_batch(self, batch: Batch, dead_letters: DeadLetters) -> Batch:
        """See Operator. Folds the rows in order, each into the state of its key."""
        results = self._calling.call(batch, self.table.open(batch))
        return derived(self.name, batch, results, dead_letters)
