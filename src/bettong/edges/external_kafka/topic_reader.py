"""Reads committed records of a user's topic from given offsets, across missing offsets."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import groupby
from typing import Any

from confluent_kafka import OFFSET_INVALID, Consumer, KafkaError, KafkaException, Message, TopicPartition
from kafka import KafkaAdminClient
from kafka.errors import KafkaError as PythonKafkaError

from bettong.closing import Closing
from bettong.edges.external_kafka.client_options import ClientOptions
from bettong.edges.external_kafka.topic_settings import topic_identity
from bettong.edges.external_reader import ExternalReader, ExternalRecords
from bettong.edges.kafka_log.connecting import map_kafka_python_error
from bettong.edges.kafka_log.librdkafka import (
    ALONE,
    connect,
    is_out_of_range,
    is_transient,
    map_librdkafka_error,
    polled,
    topics_at,
)
from bettong.errors import LogError, LogTruncatedError, LogUnavailableError

_ANSWER_WAIT_MS_MAX = 10_000
_FETCH_BYTES_MAX = 4 * 1024 * 1024
# Read-ahead of all partitions together.
_QUEUE_KIB_MAX = 16 * 1024
# Its stubs say that each of its methods may give None; those of a record that came do not.
_RECORD: Any = Message
AT_END = KafkaError._PARTITION_EOF  # noqa: SLF001 - librdkafka's own codes have such names


def committed_consumer(options: ClientOptions) -> Any:
    """A connected consumer of committed records, without a group. Raises LogUnavailableError, LogError.

    It reports the end of a partition as an event (`AT_END`), because transaction markers may follow the last record.
    """
    ours: dict[str, object] = {
        **ALONE,
        "group.id": "bettong",  # required, but not joined
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "fetch.max.bytes": _FETCH_BYTES_MAX,
        "queued.max.messages.kbytes": _QUEUE_KIB_MAX,
    }
    consumer, _ = connect(
        Consumer, options.connection, {"client.id": "bettong", **options.for_librdkafka(), **ours}
    )
    return consumer


class TopicReader(Closing, ExternalReader):
    """A consumer of one topic, without a group. Use it from one thread.

    Missing offsets (compacted, aborted, transaction markers) are skipped: use `position` for the progress, not the
    last record's offset.
    """

    def __init__(self, options: ClientOptions, topic: str) -> None:
        """Connects. Raises LogUnavailableError, LogError."""
        self._topic = topic
        self._options = options
        self._servers = options.servers
        self._positions: dict[int, int] = {}
        self._consumer = committed_consumer(options)

    def partitions(self) -> list[int]:
        """The current partitions of the topic. Raises LogError when there is no such topic."""
        found = topics_at(self._consumer, self._servers, wait_ms=_ANSWER_WAIT_MS_MAX).get(self._topic, 0)
        if not found:
            raise LogError(f"{self._name}: there is no such topic; create it, or correct the application")
        return list(range(found))

    def identity(self) -> str:
        """The topic's id; "" of brokers before Kafka 2.8."""
        admin = self._options.connect(KafkaAdminClient)
        try:
            return topic_identity(admin, self._topic)
        except PythonKafkaError as error:
            raise map_kafka_python_error(error, f"{self._name}: asking for its id", self._servers) from None
        finally:
            admin.close()

    def bounds(self, partitions: list[int]) -> dict[int, tuple[int, int]]:
        """For each partition the offset of its oldest record, and the one after its newest."""
        found: dict[int, tuple[int, int]] = {}
        for partition in partitions:
            with self._mapping_errors("asking for offsets"):
                answer = self._consumer.get_watermark_offsets(
                    self._topic_partition(partition), timeout=_ANSWER_WAIT_MS_MAX / 1000
                )
            if answer is None:
                raise LogUnavailableError(f"{self._name}: no answer when asked for offsets")
            found[partition] = answer
        return found

    def assign(self, starts: Mapping[int, int]) -> None:
        """Starts to read these partitions, each from its offset."""
        self._positions = dict(starts)
        with self._mapping_errors("beginning to read"):
            self._consumer.assign([self._topic_partition(*start) for start in starts.items()])

    def poll(self, timeout_ms: int, records_max: int) -> dict[int, ExternalRecords]:
        """The next records of each partition; nothing while the cluster is unavailable.

        Raises LogTruncatedError when records were deleted before they were read.
        """
        with self._mapping_errors("reading"):
            answer = polled(self._consumer, timeout_ms, records_max)
        found: dict[int, ExternalRecords] = {}
        # Records of a partition come together, and are read a field at a time: a call for each costs half as much.
        for partition, together in groupby(answer, _RECORD.partition):
            run = [*together]
            events = [each for each in run if each.error()] if any(map(_RECORD.error, run)) else []
            if events:
                run = [each for each in run if not each.error()]
            if run:
                if (records := found.get(partition)) is None:
                    records = found[partition] = ExternalRecords()
                records.offsets += map(_RECORD.offset, run)
                records.timestamps_ms += [max(stamp, 0) for _, stamp in map(_RECORD.timestamp, run)]
                records.values += map(_RECORD.value, run)
                self._positions[partition] = max(self._positions[partition], records.offsets[-1] + 1)
            for each in events:
                self._handle_event(partition, each.offset(), each.error())
        return found

    def _handle_event(self, partition: int, offset: int, event: KafkaError) -> None:
        if event.code() == AT_END:
            self._positions[partition] = max(self._positions[partition], offset)
        elif is_out_of_range(event):
            raise LogTruncatedError(
                f"{self._name}: a needed offset is no longer in the log:"
                f" {self._positions.get(partition)} of partition {partition} ({event.str()})"
            )
        elif not is_transient(event):
            raise map_librdkafka_error(event, f"{self._name}: reading", self._servers)

    def position(self, partition: int) -> int:
        """The next offset of a partition that `poll` may return: all records below it were returned."""
        return self._positions[partition]

    def lag(self) -> int:
        """Records that were not returned yet, by the end offsets of the last fetch."""
        total = 0
        for partition, position in self._positions.items():
            with self._mapping_errors("asking for offsets"):
                known = self._consumer.get_watermark_offsets(self._topic_partition(partition), cached=True)
            if known is not None:
                total += max(0, known[1] - position)
        return total

    def close(self) -> None:
        """Closes the connection. Never raises."""
        self._consumer.close()

    @contextmanager
    def _mapping_errors(self, doing: str) -> Iterator[None]:
        """Maps librdkafka's errors to ours."""
        try:
            yield
        except KafkaException as error:
            raise map_librdkafka_error(error.args[0], f"{self._name}: {doing}", self._servers) from None

    def _topic_partition(self, partition: int, offset: int = OFFSET_INVALID) -> TopicPartition:
        return TopicPartition(self._topic, partition, offset)

    @property
    def _name(self) -> str:
        return f"topic {self._topic} of Kafka at {self._servers}"
