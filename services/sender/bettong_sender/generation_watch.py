"""Whether the application still is what this sender was told at its start: no receipt is given while that is open.

A sender that was cut off from Kafka and Redis, while the number of partitions was changed, may come back and have its
records appended behind the marks, where they count for nothing. So each answer of the log counts only while it was
asked shortly before whether a change was recorded. Nothing is changed while Redis knows of a sender that runs, which it
does for 10 s after it was told last; and one that reaches Kafka, but not Redis, takes no frames.
"""

from collections.abc import Callable

from bettong.config.connection_settings import KafkaConnection
from bettong.edges.kafka_log import LogAdmin
from bettong.edges.partitioning_log import PreparedTopics, kept_partitioning, record_count
from bettong.errors import LogError
from bettong.threads import BlockThread

_ASK_S = 1.0
# Less than Redis knows of a sender that is gone: `LiveMetrics`.
_CURRENT_S_MAX = 8.0
# An ask that waits for Kafka is left to itself.
_CLOSE_S_MAX = 0.0


class GenerationWatch(BlockThread):
    """Asks again and again, from entering to leaving."""

    def __init__(
        self,
        admin: LogAdmin,
        where: KafkaConnection,
        application: str,
        known: PreparedTopics,
        asked_s: float,
        clock_s: Callable[[], float],
    ) -> None:
        """`admin` is closed at the end. `known`: what this sender was told at `asked_s`."""
        super().__init__("generation", close_s_max=_CLOSE_S_MAX)
        self.has_changed = False
        self._admin = admin
        self._where = where
        self._application = application
        self._generation, self._records = known.generation, known.records
        self._asked_s = asked_s
        self._clock_s = clock_s

    def is_current(self) -> bool:
        """Whether what the log has taken until now was taken by the application that this sender knows. Any thread."""
        return not self.has_changed and self._clock_s() - self._asked_s < _CURRENT_S_MAX

    def check(self) -> None:
        """Asks once. Without an answer nothing is known."""
        asked_s = self._clock_s()
        try:
            records = record_count(self._admin, self._application)
            is_open = records != self._records and self._is_open(records)
        except LogError:
            return
        if not is_open and not self.has_changed:
            self._records, self._asked_s = records, asked_s

    def _is_open(self, records: int) -> bool:
        """Whether a change has begun, or is done: there are other records than before, which may say nothing new."""
        if records < self._records:
            return True  # a broker that has not heard of the topic yet
        kept = kept_partitioning(self._admin, self._where, self._application)
        self.has_changed = kept is not None and kept.generation != self._generation
        return self.has_changed or kept is None or kept.change is not None

    def _run(self) -> None:
        with self._admin:
            while not self.has_changed and not self._stopping.wait(_ASK_S):
                self.check()
