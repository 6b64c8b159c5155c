"""Appends to a topic of the user's, with the position in the same transaction.

    topic       the records of a delivery  ─┐
    positions   key -> position            ─┴─ one transaction of one transactional id

The topic of positions is compacted, has one partition, and no other writer: so it can be read to its end as soon as
this writer has shut out its predecessor, whose open transaction is aborted by that (KIP-98, InitProducerId).
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
from bettong.edges.kafka_log.connecting import translated
from bettong.edges.kafka_log.librdkafka import connect, fault, may_pass, polled
from bettong.errors import LogError, LogUnavailableError

# A receiver that is dead for longer has its transaction aborted, so that readers of the topic need not wait for it.
_TRANSACTION_MS_MAX = 30_000
_ANSWER_WAIT_MS_MAX = 20_000
_ANSWER_WAIT_S_MAX = _ANSWER_WAIT_MS_MAX / 1000
# Shorter than what is waited for, so that each record is answered by then.
_RECORD_MS_MAX = 15_000
_POLL_MS = 200
_POSITIONS_MAX = 10_000  # of a poll
_BY_KEY = -1  # RD_KAFKA_PARTITION_UA
# After another writer has opened.
_SHUT_OUT = {
    KafkaError._FENCED,  # noqa: SLF001 - its codes of its own are named so
    KafkaError.PRODUCER_FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
}
# A transaction that has failed meanwhile: the end of it says why.
_FAILED = {KafkaError._STATE, KafkaError._FATAL}  # noqa: SLF001 - see above
_PURGED = {KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT}  # noqa: SLF001 - see above
# Positions are a few hundred bytes, rewritten often, up to some thousand a second: compact early, so that a start reads
# little. Only what lies before the newest segment is compacted.
_POSITIONS_CONFIGS = {
    "cleanup.policy": "compact",
    "segment.ms": "3600000",
    "segment.bytes": str(16 * 1024 * 1024),
    "min.cleanable.dirty.ratio": "0.1",
}

_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class Outgoing:
    """Records, in order: without a key in partition `slot` modulo the number of partitions, with one where it says."""

    slot: int
    records: Sequence[KeyValue]


class TransactionalTopic(Closing):
    """One writer of one transactional id. Use it from one thread; after an error close it and make another."""

    def __init__(
        self,
        options: ClientOptions,
        *,
        topic: str | None,
        positions: str,
        transactional_id: str,
        replication: int = -1,
    ) -> None:
        """Does not connect yet. Without a `topic` it keeps positions only.

        `replication`: copies of the topic of positions when it is made; -1: as many as the cluster makes by itself.
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
        """Connects, shuts out whoever wrote with this id before, and returns the newest position of each key.

        Creates the topic of positions when it is not there. Raises LogError when the topic does not exist.
        """
        self._check_topics()
        self._producer, _ = connect(Producer, self._options.connection, self._producer_options())
        self._answered(
            "shutting out older writers", lambda: self._producer.init_transactions(_ANSWER_WAIT_S_MAX)
        )
        end = self._end_of_positions()
        found: dict[bytes, bytes] = {}
        self._answered("reading positions", lambda: found.update(self._read_positions(end)))
        return found

    def too_large(self, records: Sequence[KeyValue]) -> list[int]:
        """The indexes of the records that the topic does not take, as far as it is known; after `open`."""
        return self._sizes.too_large(records)

    def append(self, outgoing: Sequence[Outgoing], positions: Mapping[bytes, bytes]) -> None:
        """Appends all of it, or nothing; blocks until that is durable, for less than a minute.

        Raises LogUnavailableError when another writer has opened since: then nothing is appended.
        """
        self._answered("appending", lambda: self._append(outgoing, positions))

    def close(self) -> None:
        """Drops the producer; the next one aborts what is under way, or the broker does after 30 s. Never raises."""
        # Its own `close` aborts what is under way, and waits without end where the broker is away.
        self._producer = None

    def _producer_options(self) -> dict[str, object]:
        options = self._options.for_librdkafka()
        return {
            "client.id": "bettong",
            **options,
            "acks": "all",
            "allow.auto.create.topics": False,
            # As kafka-python and Java choose a partition by a record's key.
            "partitioner": "murmur2",
            # To call into Python for each record takes as long as to send it.
            "delivery.report.only.error": True,
            # All of a transaction is here at once: there is nothing to wait for.
            "linger.ms": 0,
            "enable.idempotence": True,
            "transactional.id": self._transactional_id,
            "transaction.timeout.ms": _TRANSACTION_MS_MAX,
            "message.timeout.ms": _RECORD_MS_MAX,
            "socket.timeout.ms": min(
                int(str(options.get("socket.timeout.ms", _ANSWER_WAIT_MS_MAX))), _ANSWER_WAIT_MS_MAX
            ),
            # See LogWriter: with more, a broker that is new to a topic loses records.
            "max.in.flight.requests.per.connection": 1,
            "message.max.bytes": self._sizes.record_bytes_max,
            "batch.size": self._sizes.batch_bytes_max,
            # Whoever appends bounds it: nothing is left here when `append` has returned.
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
            # `flush` goes on to call `failed` after it has found that this producer is shut out, and breaks.
            # Every record wakes `poll`, also one that went well: the client alone leaves out its call.
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
        """Checks the topics, and creates that of positions where it is not there."""
        admin = self._options.connect(KafkaAdminClient)
        try:
            self._partitions = self._translated_call(
                "looking at topics", lambda: self._count(admin, self._topic)
            )
            if self._has_topic and not self._partitions:
                raise LogError(
                    f"{self._name}: there is no such topic; create it, with as many partitions as its readers need"
                )
            if self._has_topic:
                self._sizes = RecordSizes(self._options.for_librdkafka(), batch_limit(admin, self._topic))
            if not self._translated_call("looking at topics", lambda: self._count(admin, self._positions)):
                self._translated_call("creating the topic of positions", lambda: self._create(admin))
        finally:
            admin.close()

    def _end_of_positions(self) -> int:
        partition = PythonTopicPartition(self._positions, 0)
        admin = self._options.connect(KafkaAdminClient)
        try:
            ends = self._translated_call(
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
                "configs": _POSITIONS_CONFIGS,
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
                    elif not may_pass(each.error()):
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

    def _translated_call(self, doing: str, call: Callable[[], _Found]) -> _Found:
        """Has kafka-python do it."""
        try:
            return call()
        except PythonKafkaError as error:
            raise translated(error, f"{self._name}: {doing}", self._options.servers) from None

    def _answered(self, doing: str, call: Callable[[], object]) -> None:
        """Has librdkafka do it. What is raised keeps no client alive: whoever retries may hold it for long."""
        try:
            call()
            return
        except KafkaException as raised:
            error: KafkaError = raised.args[0]
        if error.code() in _SHUT_OUT:
            raise LogUnavailableError(
                f"{self._name}: another process has taken over; only one may do this work, stop the other"
            )
        raise fault(error, f"{self._name}: {doing}", self._options.servers)
