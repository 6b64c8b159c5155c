"""Appends to a user's topic, with the position in the same transaction.

    topic       the records of a delivery  ─┐
    positions   key -> position            ─┴─ one transaction of one transactional id

The topic of positions is compacted, and has one partition and no other writer: so it can be read to its end as soon as
this writer has fenced off its predecessor, which aborts the predecessor's open transaction (KIP-98, InitProducerId).
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, Producer, TopicPartition
from kafka import KafkaAdminClient, OffsetSpec
from kafka import TopicPartition as PythonTopicPartition
from kafka.errors import KafkaError as PythonKafkaError
from kafka.errors import NoError, TopicAlreadyExistsError, UnknownTopicOrPartitionError, for_code

from bettong.closing import Closing
from bettong.edges.external_kafka.client_options import ClientOptions
from bettong.edges.external_kafka.record_sizes import KeyValue, RecordSizes, batch_limit
from bettong.edges.external_kafka.topic_reader import AT_END, committed_consumer
from bettong.edges.external_kafka.topic_settings import deleting, topic_settings
from bettong.edges.kafka_log.connecting import map_kafka_python_error
from bettong.edges.kafka_log.in_sync import in_sync_settings
from bettong.edges.kafka_log.librdkafka import connect, is_transient, map_librdkafka_error, polled
from bettong.errors import LogError, LogUnavailableError

# The broker aborts the transaction of a receiver that is dead for longer, so that readers need not wait for it.
_TRANSACTION_MS_MAX = 30_000
_ANSWER_WAIT_MS_MAX = 20_000
_ANSWER_WAIT_S_MAX = _ANSWER_WAIT_MS_MAX / 1000
# Shorter than the wait for answers, so that each record is answered by then.
_RECORD_MS_MAX = 15_000
_POLL_MS = 200
_POSITIONS_MAX = 10_000  # per poll
_BY_KEY = -1  # RD_KAFKA_PARTITION_UA
# The codes after another writer has opened.
_FENCED = {
    KafkaError._FENCED,  # noqa: SLF001 - librdkafka's own codes have such names
    KafkaError.PRODUCER_FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
}
# A transaction that has failed meanwhile: committing it returns the cause.
_FAILED = {KafkaError._STATE, KafkaError._FATAL}  # noqa: SLF001 - see above
_PURGED = {KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT}  # noqa: SLF001 - see above
# Positions are a few hundred bytes, and rewritten up to some thousand times a second: compact early, so that a start
# reads little. Only segments before the newest one are compacted.
_POSITIONS_CONFIGS = {
    "cleanup.policy": "compact",
    "segment.ms": "3600000",
    "segment.bytes": str(16 * 1024 * 1024),
    "min.cleanable.dirty.ratio": "0.1",
}

_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class Outgoing:
    """Records in order. Those without a key go to partition `slot` modulo the partition count, others by their key."""

    slot: int
    records: Sequence[KeyValue]


class TransactionalTopic(Closing):
    """The writer of one transactional id. Use it from one thread; after an error close it and create another."""

    def __init__(
        self,
        options: ClientOptions,
        *,
        topic: str | None,
        positions: str,
        transactional_id: str,
        replication: int = -1,
    ) -> None:
        """Does not connect yet. Without a `topic` it stores positions only.

        `replication`: the replication factor for creating the topic of positions; -1: the cluster's default.
        """
        self._options = options
        self._topic = topic if topic is not None else positions
        self._has_topic = topic is not None
        self._positions = positions
        self._replication = replication
        self._transactional_id = transactional_id
        self._partitions = 0
        self._sizes = RecordSizes(options.for_librdkafka(), None)
        self._producer: Any = None

    def open(self) -> dict[bytes, bytes]:
        """Connects, fences off the previous writer with this id, and returns the newest position of each key.

        Creates the topic of positions if it is missing. Raises LogError if the topic of records does not exist, or if
        Kafka would delete positions.
        """
        self._check_topics()
        self._producer, _ = connect(Producer, self._options.connection, self._producer_options())
        self._call_librdkafka(
            "fencing off older writers", lambda: self._producer.init_transactions(_ANSWER_WAIT_S_MAX)
        )
        end = self._end_of_positions()
        found: dict[bytes, bytes] = {}
        self._call_librdkafka("reading positions", lambda: found.update(self._read_positions(end)))
        return found

    def too_large(self, records: Sequence[KeyValue]) -> list[int]:
        """The indexes of the records that are too large for the topic, if its limit is known. Call it after `open`."""
        return self._sizes.too_large(records)

    def append(self, outgoing: Sequence[Outgoing], positions: Mapping[bytes, bytes]) -> None:
        """Appends everything or nothing; blocks until it is durable, for less than a minute.

        Raises LogUnavailableError when another writer has opened since: then nothing is appended.
        """
        self._call_librdkafka("appending", lambda: self._append(outgoing, positions))

    def close(self) -> None:
        """Drops the producer. The next one aborts its open transaction, or the broker does after 30 s. Never raises."""
        # The producer's own `close` would abort it, too, but waits without limit while the broker is unavailable.
        self._producer = None

    def _producer_options(self) -> dict[str, object]:
        options = self._options.for_librdkafka()
        return {
            "client.id": "bettong",
            **options,
            "acks": "all",
            "allow.auto.create.topics": False,
            # Same partition for a key as kafka-python and Java choose.
            "partitioner": "murmur2",
            # A call into Python for each record would take as long as sending it.
            "delivery.report.only.error": True,
            # All records of a transaction are there at once: waiting for more is useless.
            "linger.ms": 0,
            "enable.idempotence": True,
            "transactional.id": self._transactional_id,
            "transaction.timeout.ms": _TRANSACTION_MS_MAX,
            "message.timeout.ms": _RECORD_MS_MAX,
            "socket.timeout.ms": min(
                int(str(options.get("socket.timeout.ms", _ANSWER_WAIT_MS_MAX))), _ANSWER_WAIT_MS_MAX
            ),
            # See LogWriter: with more, a broker that is new to a topic may lose records.
            "max.in.flight.requests.per.connection": 1,
            "message.max.bytes": self._sizes.record_bytes_max,
            "batch.size": self._sizes.batch_bytes_max,
            # The caller bounds the queue: it is empty when `append` returns.
            "queue.buffering.max.messages": 0,
            "queue.buffering.max.kbytes": 2**31 - 1,
        }

    def _append(self, outgoing: Sequence[Outgoing], positions: Mapping[bytes, bytes]) -> None:
        refused: list[KafkaError] = []

        def failed(error: KafkaError, _: object) -> None:
            refused.append(error)

        produce, topic = self._producer.produce, self._topic
        self._producer.begin_transaction()
        try:
            for each in outgoing:
                partition = each.slot % self._partitions
                for key, value in each.records:
                    produce(topic, value, key, partition if key is None else _BY_KEY, failed)
            for key, position in positions.items():
                produce(self._positions, position, key, 0, failed)
            # Not `flush`: once it has found this producer fenced, it goes on to call `failed`, and breaks.
            # Every answered record wakes `poll`; for successful ones only the callback is omitted.
            deadline_s = time.monotonic() + _ANSWER_WAIT_S_MAX
            while len(self._producer) and (left_s := deadline_s - time.monotonic()) > 0:
                self._producer.poll(left_s)
        except KafkaException as error:
            if error.args[0].code() not in _FAILED:
                raise
        else:
            if len(self._producer):
                raise LogUnavailableError(f"{self._name}: no answer to records for {_ANSWER_WAIT_MS_MAX} ms")
        for reason in refused:
            if reason.code() not in _PURGED:
                raise KafkaException(reason)  # nothing is committed
        self._producer.commit_transaction(_ANSWER_WAIT_S_MAX)

    def _check_topics(self) -> None:
        """Checks the topics, and creates that of positions if it is missing."""
        admin = self._options.connect(KafkaAdminClient)
        try:
            self._partitions = self._call_kafka_python(
                "describing topics", lambda: self._count(admin, self._topic)
            )
            if self._has_topic and not self._partitions:
                raise LogError(
                    f"{self._name}: there is no such topic; create it, with as many partitions as its readers need"
                )
            if self._has_topic:
                limit = batch_limit(topic_settings(admin, self._topic))
                self._sizes = RecordSizes(self._options.for_librdkafka(), limit)
            if not self._call_kafka_python("describing topics", lambda: self._count(admin, self._positions)):
                self._call_kafka_python("creating the topic of positions", lambda: self._create(admin))
            elif by := deleting(topic_settings(admin, self._positions)):
                raise LogError(
                    f"{self._name}: Kafka deletes records of its topic of positions, {self._positions} ({by}): what is"
                    " appended already would be appended again; set its cleanup.policy to compact"
                )
        finally:
            admin.close()

    def _end_of_positions(self) -> int:
        partition = PythonTopicPartition(self._positions, 0)
        admin = self._options.connect(KafkaAdminClient)
        try:
            ends = self._call_kafka_python(
                "asking for the end of positions",
                lambda: admin.list_partition_offsets({partition: OffsetSpec.LATEST}),
            )
            return int(ends[partition].offset)
        finally:
            admin.close()

    def _count(self, admin: Any, topic: str) -> int:
        (found,) = admin.describe_topics([topic])
        error = for_code(found["error_code"])
        if error is UnknownTopicOrPartitionError:
            return 0
        if error is not NoError:
            raise error(topic)
        return len(found["partitions"])

    def _create(self, admin: Any) -> None:
        wanted = {
            self._positions: {
                "num_partitions": 1,
                "replication_factor": self._replication,
                "configs": {**_POSITIONS_CONFIGS, **in_sync_settings(self._replication)},
            }
        }
        answer = admin.create_topics(wanted, raise_errors=False)
        error = for_code(answer["topics"][0]["error_code"])
        if error not in (NoError, TopicAlreadyExistsError):
            raise error(f"topic {self._positions}: {answer['topics'][0]['error_message']}")
        admin.wait_for_topics([self._positions], timeout_ms=_ANSWER_WAIT_MS_MAX)

    def _read_positions(self, end: int) -> dict[bytes, bytes]:
        consumer = committed_consumer(self._options)
        found: dict[bytes, bytes] = {}
        position, deadline_s = 0, time.monotonic() + _ANSWER_WAIT_S_MAX
        try:
            consumer.assign([TopicPartition(self._positions, 0, OFFSET_BEGINNING)])
            while position < end:
                for each in polled(consumer, _POLL_MS, _POSITIONS_MAX):
                    if each.error() is None:
                        found[each.key()] = each.value()
                        position = each.offset() + 1
                    elif each.error().code() == AT_END:
                        position = each.offset()
                    elif not is_transient(each.error()):
                        raise KafkaException(each.error())
                if time.monotonic() > deadline_s:
                    raise LogUnavailableError(
                        f"{self._name}: the topic of positions {self._positions} cannot be read to its end {end}"
                        f" within {_ANSWER_WAIT_MS_MAX} ms; does another writer use it?"
                    )
        finally:
            consumer.close()
        return found

    @property
    def _name(self) -> str:
        return f"topic {self._topic} of Kafka at {self._options.servers}"

    def _call_kafka_python(self, doing: str, call: Callable[[], _Found]) -> _Found:
        """Calls kafka-python and maps its errors."""
        try:
            return call()
        except PythonKafkaError as error:
            raise map_kafka_python_error(error, f"{self._name}: {doing}", self._options.servers) from None

    def _call_librdkafka(self, doing: str, call: Callable[[], object]) -> None:
        """Calls librdkafka, maps its errors. These do not reference the client: a retry loop may keep them for long."""
        try:
            call()
            return
        except KafkaException as raised:
            error: KafkaError = raised.args[0]
        if error.code() in _FENCED:
            raise LogUnavailableError(
                f"{self._name}: another process has taken over; only one may do this work, stop the other"
            )
        raise map_librdkafka_error(error, f"{self._name}: {doing}", self._options.servers)
