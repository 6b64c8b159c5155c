"""How many records a consumer has fetched that nobody has polled: by librdkafka's statistics (its STATISTICS.md)."""

import json

from bettong.identifiers import TopicPartition

_INTERVAL_MS = 1000


class FetchedAhead:
    """The newest statistics of one consumer, which come while it is polled. Used from the thread that polls."""

    def __init__(self) -> None:
        self._statistics = ""
        self._ahead: dict[TopicPartition, int] = {}

    @property
    def options(self) -> dict[str, object]:
        """Of the consumer. Without them nothing is known."""
        return {"statistics.interval.ms": _INTERVAL_MS, "stats_cb": self._keep}

    def of(self, partition: TopicPartition) -> int | None:
        """Of a partition; None while not known."""
        if self._statistics:
            self._ahead, self._statistics = _ahead_in(self._statistics), ""
        return self._ahead.get(partition)

    def _keep(self, statistics: str) -> None:
        """Read when somebody asks."""
        self._statistics = statistics


def _ahead_in(statistics: str) -> dict[TopicPartition, int]:
    """Of each partition: what is fetched next, less what is polled next. An offset below 0 is not known yet."""
    return {
        TopicPartition(topic, int(number)): found["next_offset"] - found["app_offset"]
        for topic, each in json.loads(statistics)["topics"].items()
        for number, found in each["partitions"].items()
        if 0 <= found["app_offset"] <= found["next_offset"]
    }
