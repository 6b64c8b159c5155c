"""The partitions that a consumer was given and has no answer of, and when a new connection is worth it. Pure.

librdkafka has one fetch at a time with a broker, so an added partition waits until that ends. If nothing arrives for
`WAIT_MS`, a new connection fetches at once: one in each interval, for all partitions that were added by then. A new
connection's first fetch may be without some of them, so others follow, for so long. Each has twice as long for its
answer as the one before: where connecting takes longer than an interval, none would ever get one.
"""

from collections.abc import Callable, Iterable

from bettong.identifiers import TopicPartition

WAIT_MS = 20
_INTERVAL_S_MIN = 0.1
_S_MAX = 1.0


class AddedPartitions:
    """Added partitions until the broker has answered for them, at most a second. Times are monotonic seconds."""

    def __init__(self) -> None:
        # Each with its lag as it was known then: the broker's answer changes it.
        self._lags: dict[TopicPartition, int | None] = {}
        self._added_s = self._due_s = 0.0
        self._interval_s = _INTERVAL_S_MIN

    def __bool__(self) -> bool:
        return bool(self._lags)

    def add(self, partition: TopicPartition, lag: int | None, now_s: float) -> None:
        """Notes a partition that was just added. `lag`: as it is known now."""
        if not self._lags:
            self._interval_s = _INTERVAL_S_MIN
        self._lags[partition] = lag
        self._added_s = now_s
        self._wait(now_s)

    def discard(self, partition: TopicPartition) -> None:
        """Forgets a partition that was removed."""
        self._lags.pop(partition, None)

    def clear(self) -> None:
        """Forgets all: they wait for the fetch."""
        self._lags.clear()

    def note_poll(
        self, polled: Iterable[TopicPartition], lag: Callable[[TopicPartition], int | None], now_s: float
    ) -> None:
        """Notes a poll that returned records of these partitions, or none. `lag`: as it is known now."""
        found = set(polled)
        if now_s - self._added_s > _S_MAX:
            self.clear()
        self._lags = {
            each: known for each, known in self._lags.items() if each not in found and lag(each) == known
        }
        if found:
            self._wait(now_s)

    def needs_connection(self, now_s: float) -> bool:
        """Whether some partition has waited so long that a new connection is worth it."""
        return bool(self._lags) and now_s >= self._due_s

    def note_connection(self, now_s: float) -> None:
        """Notes a new connection, of which no lag is known yet."""
        self._lags = dict.fromkeys(self._lags)
        self._due_s = now_s + self._interval_s
        self._interval_s *= 2

    def _wait(self, now_s: float) -> None:
        self._due_s = max(self._due_s, now_s + WAIT_MS / 1000)
