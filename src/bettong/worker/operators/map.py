"""`Stream.map` and `Stream.flat_map`: new messages of each message."""

from bettong.worker.batch import Batch
from bettong.worker.calling.results import Calling
from bettong.worker.letters import Letters
from bettong.worker.operators.operator import derived


class MapOperator:
    """See Operator."""

    def __init__(self, name: str, calling: Calling[None]) -> None:
        self.name = name
        self._calling = calling

    def on_batch(self, batch: Batch, letters: Letters) -> Batch:
        """See Operator."""
        return derived(self.name, batch, self._calling.call(batch, None, letters.progress), letters)
