"""`Stream.map` and `Stream.flat_map`: new messages of each message."""

from bettong.application.nodes.stateless import Stateless
from bettong.worker.batch import Batch
from bettong.worker.calling.results import Calling
from bettong.worker.operators.operator import Operator, OperatorParts, WithoutTime, derived
from bettong.worker.output.dead_letters import DeadLetters


def map_operator(node: Stateless, parts: OperatorParts) -> Operator:
    """The operator of `map` and `flat_map`; their functions decide how many messages they return."""
    return MapOperator(node.name, parts.calling(node))


class MapOperator(WithoutTime):
    """See Operator."""

    def __init__(self, name: str, calling: Calling[None]) -> None:
        self.name = name
        self._calling = calling

    def on_batch(self, batch: Batch, dead_letters: DeadLetters) -> Batch:
        """See Operator."""
        return derived(self.name, batch, self._calling.call(batch, None), dead_letters)
