"""Records in a topic of the user's, each exactly once: records and position in one transaction.

A record that exceeds the topic's limit is refused, and the position names it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from bettong.application.external.kafka_topic import KafkaTopic
from bettong.edges.external_kafka import ClientOptions, KeyValue, Outgoing, TransactionalTopic
from bettong.errors import LogError, LogUnavailableError
from bettong.frames.frame import Frame
from bettong.schema.fields import Kind
from bettong.schema.schema import Schema
from bettong_receiver.delivery.connector import ConnectorUnavailableError, Refused, SinkBatch, SinkConnector
from bettong_receiver.delivery.route import Route
from bettong_receiver.errors import SinkError
from bettong_receiver.formats import columns_of
from bettong_receiver.json_lines import JsonLines
from bettong_receiver.progress import SinkPartition
from bettong_receiver.sink_context import SinkContext


def route(context: SinkContext, to: KafkaTopic) -> Route[KeyValue]:
    """See `bettong_receiver.connectors`."""
    application, name = context.plan.application, context.name
    options = ClientOptions(context.connection(to), context.options(to, needs="bootstrap_servers"))

    def make() -> KafkaConnector:
        topic = TransactionalTopic(
            options,
            topic=to.topic,
            positions=to.positions or f"bettong-positions.{application}.{name}",
            transactional_id=f"bettong.{application}.{name}",
        )
        return KafkaConnector(topic, application=application, sink=name)

    if to.key is not None:
        return context.route(read_with_key(context.schema, to.key), make)
    return context.route(read_without_key(context.messages), make)


def read_without_key(messages: Callable[[Frame], Sequence[bytes]]) -> Callable[[Frame], list[KeyValue]]:
    """Returns a function that reads a frame as records without a key, with `messages` as values."""
    return lambda frame: [(None, message) for message in messages(frame)]


def read_with_key(schema: Schema, key: str) -> Callable[[Frame], list[KeyValue]]:
    """Returns a function that reads a frame as JSON records keyed by a field: text as UTF-8, integers as digits."""
    index = schema.position(key)
    kind = schema.fields[index].kind

    def read(frame: Frame) -> list[KeyValue]:
        columns = columns_of(frame, schema)
        values = columns.values(index)
        keys: list[bytes] = values if kind is Kind.BYTES else [str(value).encode() for value in values]
        return list(zip(keys, JsonLines(columns), strict=True))

    return read


class KafkaConnector(SinkConnector[KeyValue]):
    """See SinkConnector. Positions are stored under the key `{application}/{sink}/{partition}`."""

    def __init__(self, topic: TransactionalTopic, *, application: str, sink: str) -> None:
        self._topic = topic
        self._name = f"sink {sink}"
        self._application = application

    def open(self, beginnings: Mapping[SinkPartition, int]) -> dict[SinkPartition, bytes | None]:
        """See SinkConnector."""
        with self._mapping_errors():
            found = self._topic.open()
        return {key: found.get(self._position_key(key)) for key in beginnings}

    def deliver(self, batches: Sequence[SinkBatch[KeyValue]]) -> Refused:
        """See SinkConnector."""
        outgoing: list[Outgoing] = []
        positions: dict[bytes, bytes] = {}
        refused: dict[SinkPartition, dict[int, str]] = {}
        for batch in batches:
            records = batch.messages
            position = batch.position()
            oversized = self._topic.too_large(records)
            if oversized and batch.refusing is not None:
                reasons = refused[batch.key] = {index: _reason(records[index]) for index in oversized}
                position = batch.refusing(reasons)
                records = [record for index, record in enumerate(records) if index not in reasons]
            elif oversized:
                raise SinkError(f"{self._name}: {_reason(records[oversized[0]])}")
            outgoing.append(Outgoing(batch.partition, records))
            positions[self._position_key(batch.key)] = position
        with self._mapping_errors():
            self._topic.append(outgoing, positions)
        return refused

    def close(self) -> None:
        """See SinkConnector."""
        self._topic.close()

    def _position_key(self, key: SinkPartition) -> bytes:
        return f"{self._application}/{key}".encode()

    @contextmanager
    def _mapping_errors(self) -> Iterator[None]:
        try:
            yield
        except LogUnavailableError as error:
            raise ConnectorUnavailableError(f"{self._name}: {error}") from None
        except LogError as error:
            raise SinkError(f"{self._name}: {error}") from None


def _reason(record: KeyValue) -> str:
    key, value = record
    size = len(key or b"") + len(value)
    return f"a record of {size} bytes, larger than the topic takes (its max.message.bytes)"
