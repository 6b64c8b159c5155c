"""Reading the log from given offsets."""

import time
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Self

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError, LogTruncationError, OffsetOutOfRangeError

from bettong.edges.kafka_log.connecting import (
    REQUEST_WAIT_MS_MAX,
    batch_bytes_max,
    connect,
    is_connected,
    translated,
)
from bettong.edges.kafka_log.record import Record
from bettong.errors import LogError, LogHoleError

# One partition may fill a whole fetch when it is alone, and gets no less than this when there are many.
_PARTITION_FETCH_BYTES_MIN = 256 * 1024

_FETCH_WAIT_MS_MAX = 500

# A lost connection is spoken of when it was not there again for this long, and again every so often.
_ABSENCE_S = 1.0
_ABSENCE_AGAIN_S = 5.0

_Place = tuple[str, int]


class LogReader:
    """Reads partitions in order, each from its own offset, and never past a hole. Use it from one thread.

    Takes about 5 x `fetch_bytes_max` of memory (measured: kafka-python copies what it reads), one frame at the least.
    """

    def __init__(
        self,
        bootstrap: str,
        starts: Mapping[tuple[str, int], int],
        *,
        frame_bytes_max: int,
        fetch_bytes_max: int = 16 * 1024 * 1024,
        fetch_wait_ms: int = _FETCH_WAIT_MS_MAX,
        on_wait: Callable[[str], None] | None = None,
    ) -> None:
        """Connects. `starts`: the first offset to read of each (topic, partition); more may be added.

        `fetch_wait_ms`: how long the broker holds a question that it has no records for. A partition that is added
        waits for the end of the question under way.

        `on_wait` is told in a line for people when the broker cannot be reached, and every few seconds
        while that lasts. Raises LogUnavailableError when no broker answers within 10 s, LogError for a topic
        or partition that does not exist.
        """
        self._bootstrap = bootstrap
        self._on_wait = on_wait
        self._next = dict(starts)
        self._reached_s = self._told_s = time.monotonic()
        partition_bytes = max(fetch_bytes_max // max(len(starts), 1), _PARTITION_FETCH_BYTES_MIN)
        self._consumer, self._network = connect(
            KafkaConsumer,
            bootstrap,
            client_id="bettong-reader",
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="none",
            allow_auto_create_topics=False,
            fetch_max_bytes=fetch_bytes_max,
            max_partition_fetch_bytes=partition_bytes,
            receive_message_max_bytes=fetch_bytes_max + partition_bytes + batch_bytes_max(frame_bytes_max),
            fetch_max_wait_ms=fetch_wait_ms,
            request_timeout_ms=REQUEST_WAIT_MS_MAX,
            metrics_enabled=False,
        )
        try:
            self._assign(starts)
        except BaseException:
            self.close()
            raise

    def poll(self, timeout_ms: int, records_max: int) -> list[Record]:
        """The next records, in order for each partition; [] when none came within `timeout_ms`.

        While the broker cannot be reached it returns [] and goes on by itself when the broker is back.
        Raises LogHoleError when a partition's next record is not in the log any more, or when
        the log ends before it (a log that was lost); LogError for damaged records.
        """
        try:
            answer = self._consumer.poll(timeout_ms=timeout_ms, max_records=records_max)
        except (OffsetOutOfRangeError, LogTruncationError) as error:
            raise self._hole(error) from None
        except KafkaError as error:
            raise translated(error, f"reading {self._names()}", self._bootstrap) from None
        self._notice_absence(came=bool(answer))
        records = []
        for place, found in answer.items():
            topic, partition = place
            expected = self._next[topic, partition]
            for each in found:
                if each.offset != expected:
                    raise LogHoleError(
                        f"{topic}/{partition}: offset {expected} is missing, the log goes on with {each.offset};"
                        " records were deleted or compacted away, or their producer used transactions"
                    )
                records.append(Record(topic, partition, expected, each.value))
                expected += 1
            self._next[topic, partition] = expected
        return records

    def seek(self, topic: str, partition: int, offset: int) -> None:
        """Goes on with `offset` in that partition. LogError when the partition is not one of this reader."""
        if (topic, partition) not in self._next:
            raise LogError(f"{topic}/{partition}: this reader reads only {self._names()}")
        self._consumer.seek(TopicPartition(topic, partition), offset)
        self._next[topic, partition] = offset

    def look_up(self, topics: Iterable[str]) -> None:
        """Asks for topics whose partitions will be added, so that `add` need not. Never complains of missing ones."""
        for topic in topics:
            self._partitions_of(topic)

    def add(self, topic: str, partition: int, offset: int) -> None:
        """Reads one more partition, from `offset`. Others go on. LogError when it does not exist."""
        self._check_exist({(topic, partition)})
        self._next[topic, partition] = offset
        self._consumer.assign([TopicPartition(*place) for place in self._next])
        self._consumer.seek(TopicPartition(topic, partition), offset)

    def remove(self, topic: str, partition: int) -> None:
        """Reads a partition no more; what was read ahead of it is forgotten. Others go on."""
        del self._next[topic, partition]
        self._consumer.assign([TopicPartition(*place) for place in self._next])

    def lag(self, topic: str, partition: int) -> int | None:
        """Records that the log holds beyond the next one, by the broker's last answer; None before the first one."""
        end: int | None = self._consumer.highwater(TopicPartition(topic, partition))
        return max(0, end - self._next[topic, partition]) if end is not None else None

    def positions(self) -> dict[tuple[str, int], int]:
        """For each (topic, partition) the offset of the next record that `poll` returns. Does not block."""
        return dict(self._next)

    def close(self) -> None:
        """Lets go of the connection. Never raises."""
        self._consumer.close(timeout_ms=0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _assign(self, starts: Mapping[_Place, int]) -> None:
        self._check_exist(set(starts))
        self._consumer.assign([TopicPartition(*place) for place in starts])
        for (topic, partition), offset in starts.items():
            self.seek(topic, partition, offset)

    def _check_exist(self, places: set[_Place]) -> None:
        for topic in sorted({topic for topic, _ in places}):
            found = self._partitions_of(topic)
            missing = sorted({number for name, number in places if name == topic} - found)
            if missing:
                raise LogError(
                    f"topic {topic} at {self._bootstrap} has {len(found)} partitions, expected"
                    f" {', '.join(map(str, missing))} too; create the topics first"
                )

    def _partitions_of(self, topic: str) -> set[int]:
        try:
            return self._consumer.partitions_for_topic(topic) or set()
        except KafkaError as error:
            raise translated(error, f"asking for topic {topic}", self._bootstrap) from None

    def _hole(self, error: KafkaError) -> LogHoleError:
        """Names every partition whose next offset lies outside its log."""
        places = {TopicPartition(*place): offset for place, offset in self._next.items()}
        try:
            firsts = self._consumer.beginning_offsets(list(places), timeout_ms=REQUEST_WAIT_MS_MAX)
            ends = self._consumer.end_offsets(list(places), timeout_ms=REQUEST_WAIT_MS_MAX)
        except KafkaError:
            return LogHoleError(f"{self._names()}: an offset lies outside the log ({error})")
        faults = [
            f"{place.topic}/{place.partition}: offset {offset} is needed,"
            f" the log holds {firsts[place]} up to {ends[place]}"
            for place, offset in places.items()
            if not firsts[place] <= offset <= ends[place]
        ]
        return LogHoleError(
            ("; ".join(faults) or f"{self._names()}: an offset lay outside the log ({error})")
            + "; restore the topic or start under another application name, and keep its retention unlimited"
        )

    def _notice_absence(self, *, came: bool) -> None:
        now_s = time.monotonic()
        if came or is_connected(self._network):
            self._reached_s = now_s
        elif (
            self._on_wait
            and now_s - self._reached_s > _ABSENCE_S
            and (self._told_s < self._reached_s or now_s - self._told_s > _ABSENCE_AGAIN_S)
        ):
            self._told_s = now_s
            self._on_wait(f"waiting for Kafka at {self._bootstrap} to go on reading {self._names()}")

    def _names(self) -> str:
        return ", ".join(sorted({topic for topic, _ in self._next}))
