"""Checks that the application was not repartitioned since this sender started: no receipt is sent until that is sure.

A sender that was cut off from Kafka and Redis during a repartition may come back and append records behind the marks of
the change, where they do not count. So an acknowledgement of the log counts only if the sender checked for a recorded
change shortly before, and no repartition can have started since: none starts while Redis lists a running sender, which
it does for 10 s after the sender's last report. So while a sender reaches Kafka but not Redis, nothing is acknowledged;
nor, once it is listed again, before it has checked for a change that began meanwhile.
"""

from collections.abc import Callable

from bettong.config.connection_settings import KafkaConnection
from bettong.edges.kafka_log import LogAdmin
from bettong.edges.partitioning_log import PreparedTopics, kept_partitioning, record_count
from bettong.errors import LogError
from bettong.threads import BlockThread

_ASK_S = 1.0
# Shorter than Redis lists a sender after its last report: see `LiveMetrics`.
_CURRENT_S_MAX = 8.0
# A check that waits for Kafka is not waited for.
_CLOSE_S_MAX = 0.0


class GenerationWatch(BlockThread):
    """Polls Kafka in a thread, from entering to leaving."""

    def __init__(
        self,
        admin: LogAdmin,
        where: KafkaConnection,
        application: str,
        known: PreparedTopics,
        asked_s: float,
        clock_s: Callable[[], float],
        listed_since_s: Callable[[], float | None],
    ) -> None:
        """`admin` is closed at the end. `known`: the partitioning that this sender read at `asked_s`.

        `listed_since_s`: see `LiveReport`; by the same clock.
        """
        super().__init__("generation", close_s_max=_CLOSE_S_MAX)
        self.has_changed = False
        self._admin = admin
        self._where = where
        self._application = application
        self._generation, self._records = known.generation, known.records
        self._asked_s = asked_s
        self._clock_s = clock_s
        self._listed_since_s = listed_since_s

    def is_current(self) -> bool:
        """Whether records acknowledged until now belong to the generation that this sender knows. Any thread."""
        since_s, asked_s = self._listed_since_s(), self._asked_s
        is_recent = self._clock_s() - asked_s < _CURRENT_S_MAX
        return is_recent and since_s is not None and since_s <= asked_s and not self.has_changed

    def check(self) -> None:
        """Polls once. Without an answer `is_current` soon turns false."""
        asked_s = self._clock_s()
        try:
            records = record_count(self._admin, self._application)
            is_open = records != self._records and self._is_open(records)
        except LogError:
            return
        if not is_open and not self.has_changed:
            self._records, self._asked_s = records, asked_s

    def _is_open(self, records: int) -> bool:
        """Whether a change has begun or is done. The number of records differs, which alone need not mean a change."""
        if records < self._records:
            return True  # a broker that has not heard of the topic yet
        kept = kept_partitioning(self._admin, self._where, self._application)
        self.has_changed = kept is not None and kept.generation != self._generation
        return self.has_changed or kept is None or kept.change is not None

    def _run(self) -> None:
        with self._admin:
            # At once, because Redis may list this sender only now.
            self.check()
            while not self.has_changed and not self._stopping.wait(_ASK_S):
                self.check()
