"""Reading a topic of the user's from given offsets, committed records only, over holes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeVar

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError, LogTruncationError, OffsetOutOfRangeError

from bettong.edges.foreign_kafka.client_options import ClientOptions
from bettong.edges.kafka_log.connecting import translated
from bettong.errors import LogError, LogHoleError

_ANSWER_WAIT_MS_MAX = 10_000
_FETCH_BYTES_MAX = 4 * 1024 * 1024

_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class ForeignRecord:
    """A record of a foreign topic. `timestamp_ms` is 0 when it has none; `value` None: a tombstone."""

    offset: int
    timestamp_ms: int
    value: bytes | None


class TopicReader:
    """A consumer of one topic, without a group. Use it from one thread.

    Offsets that are missing (compacted away, aborted, markers of transactions) are passed over: `position` says how far
    the reading is, whatever came last.
    """

    def __init__(self, options: ClientOptions, topic: str) -> None:
        """Connects. Raises LogUnavailableError, LogError."""
        self._topic = topic
        self._servers = options.servers
        self._consumer: Any = options.connect(
            KafkaConsumer,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="none",
            isolation_level="read_committed",
            allow_auto_create_topics=False,
            fetch_max_bytes=_FETCH_BYTES_MAX,
        )

    def partitions(self) -> list[int]:
        """All partitions of the topic now. LogError when there is no such topic."""
        found = self._told("asking for partitions", lambda: self._consumer.partitions_for_topic(self._topic))
        if not found:
            raise LogError(f"{self._name}: there is no such topic; create it, or correct the application")
        return sorted(found)

    def bounds(self, partitions: list[int]) -> dict[int, tuple[int, int]]:
        """For each partition the offset of its oldest record, and the one behind its newest."""
        places = [TopicPartition(self._topic, each) for each in partitions]
        wait_ms = _ANSWER_WAIT_MS_MAX
        firsts = self._told(
            "asking for offsets", lambda: self._consumer.beginning_offsets(places, timeout_ms=wait_ms)
        )
        ends = self._told(
            "asking for offsets", lambda: self._consumer.end_offsets(places, timeout_ms=wait_ms)
        )
        return {place.partition: (firsts[place], ends[place]) for place in places}

    def assign(self, starts: Mapping[int, int]) -> None:
        """Reads these partitions, each from its offset."""
        self._consumer.assign([TopicPartition(self._topic, each) for each in starts])
        for partition, offset in starts.items():
            self._consumer.seek(TopicPartition(self._topic, partition), offset)

    def poll(self, timeout_ms: int, records_max: int) -> dict[int, list[ForeignRecord]]:
        """The next records of each partition in order; nothing while the cluster is away.

        Raises LogHoleError when records were deleted before they were read.
        """
        try:
            answer = self._consumer.poll(timeout_ms=timeout_ms, max_records=records_max)
        except (OffsetOutOfRangeError, LogTruncationError) as error:
            raise LogHoleError(
                f"{self._name}: an offset that is needed is not there any more: {error}"
            ) from None
        except KafkaError as error:
            raise translated(error, f"{self._name}: reading", self._servers) from None
        return {
            place.partition: [
                ForeignRecord(each.offset, max(each.timestamp or 0, 0), each.value) for each in found
            ]
            for place, found in answer.items()
        }

    def position(self, partition: int) -> int:
        """The next offset of a partition that `poll` may return: all records below it were returned."""
        place = TopicPartition(self._topic, partition)
        found: int | None = self._told(
            "asking for a position", lambda: self._consumer.position(place, timeout_ms=_ANSWER_WAIT_MS_MAX)
        )
        if found is None:
            raise LogError(f"{self._name}: partition {partition} has no position")
        return found

    def lag(self) -> int:
        """Records that are there and were not returned yet, as far as the last fetch told."""
        total = 0
        for place in self._consumer.assignment():
            newest = self._consumer.highwater(place)
            if newest is not None:
                total += max(0, newest - self.position(place.partition))
        return total

    def close(self) -> None:
        """Lets go of the connection. Never raises."""
        self._consumer.close(autocommit=False, timeout_ms=0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def _name(self) -> str:
        return f"topic {self._topic} of Kafka at {self._servers}"

    def _told(self, doing: str, call: Callable[[], _Found]) -> _Found:
        try:
            return call()
        except KafkaError as error:
            raise translated(error, f"{self._name}: {doing}", self._servers) from None
