"""`Stream.filter`: the messages for which a predicate is true."""

from bettong.application.nodes.stateless import Stateless
from bettong.worker.batch import Batch
from bettong.worker.calling.results import Calling
from bettong.worker.operators.operator import Operator, OperatorParts, WithoutTime, add_failures
from bettong.worker.output.dead_letters import DeadLetters


def filter_operator(node: Stateless, parts: OperatorParts) -> Operator:
    """The operator of `filter`."""
    return FilterOperator(node.name, parts.calling(node))


class FilterOperator(WithoutTime):
    """See Operator."""

    def __init__(self, name: str, calling: Calling[None]) -> None:
        self.name = name
        self._calling = calling

    def on_batch(self, batch: Batch, dead_letters: DeadLetters) -> Batch:
        """See Operator."""
        results = self._calling.call(batch, None)
        if results.failures:
            add_failures(self.name, batch, results, dead_letters)
        assert results.rows is not None  # noqa: S101 - a predicate's results say which rows are kept
        return batch if len(results.rows) == batch.length else batch.take(results.rows)
