"""The number of records that a consumer has fetched but not polled, by librdkafka's statistics (STATISTICS.md)."""

import json

from bettong.identifiers import TopicPartition

_INTERVAL_MS = 1000


class FetchedAhead:
    """The newest statistics of one consumer, which arrive during polls. Used from the thread that polls."""

    def __init__(self) -> None:
        self._statistics = ""
        self._ahead: dict[TopicPartition, int] = {}

    @property
    def options(self) -> dict[str, object]:
        """Options for the consumer. Without them `of` returns None."""
        return {"statistics.interval.ms": _INTERVAL_MS, "stats_cb": self._keep}

    def of(self, partition: TopicPartition) -> int | None:
        """Records of a partition fetched but not polled; None while unknown."""
        if self._statistics:
            self._ahead, self._statistics = _ahead_in(self._statistics), ""
        return self._ahead.get(partition)

    def _keep(self, statistics: str) -> None:
        """Stores the statistics; they are parsed on demand."""
        self._statistics = statistics


def _ahead_in(statistics: str) -> dict[TopicPartition, int]:
    """For each partition the next offset to fetch minus the next one to poll. Negative offsets are unknown."""
    return {
        TopicPartition(topic, int(number)): found["next_offset"] - found["app_offset"]
        for topic, each in json.loads(statistics)["topics"].items()
        for number, found in each["partitions"].items()
        if 0 <= found["app_offset"] <= found["next_offset"]
    }
