"""The live figures of partitions, written by tasks: best effort, for results never wait for figures."""

from collections.abc import Callable
from dataclasses import dataclass

from bettong.edges.redis_store import LiveFigures
from bettong.edges.redis_store.live import Figures
from bettong.errors import StoreError
from bettong.logs import Logger

# While Redis is away each attempt costs a task up to a few seconds, so that attempts are this far apart.
_PAUSE_S = 10.0


@dataclass(slots=True)
class PartitionFigures:
    """Writes figures, and after a write that failed leaves them out for a while. `clock` is monotonic, in seconds."""

    figures: LiveFigures
    clock: Callable[[], float]
    log: Logger
    _resume_s: float = float("-inf")

    def write(self, stage: str, partition: int, figures: Figures) -> None:
        """Replaces the record of a partition. Never raises; what is left out is made good by the next batch."""
        if self.clock() < self._resume_s:
            return
        try:
            self.figures.write_partition(stage, partition, figures)
        except StoreError as error:
            self.log.warning("live figures not written", fault=str(error), pause_s=_PAUSE_S)
            self._resume_s = self.clock() + _PAUSE_S
