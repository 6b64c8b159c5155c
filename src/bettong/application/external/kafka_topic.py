"""A topic of any Kafka cluster: a source reads it, a sink appends to it."""

import re
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from bettong.application.external.destination import Destination
from bettong.application.external.transport import OnLost, Start, Transport
from bettong.errors import ApplicationError
from bettong.schema.fields import Kind
from bettong.schema.schema import Schema

_TOPIC = re.compile(r"[A-Za-z0-9._-]+")
_TOPIC_CHARACTERS_MAX = 249  # Kafka's own
# At a source the name is also part of stream names, which have at most 128.
_SOURCE_CHARACTERS_MAX = 100


@dataclass(frozen=True, slots=True)
class KafkaTopic(Transport, Destination):
    """`app.source(..., decoder=..., from_=KafkaTopic("orders"))`; `stream.sink("totals", to=KafkaTopic("totals"))`.

    A source's decoder gets the values of records; keys and headers are not read, and records without a value
    (tombstones) are skipped. `start`: where reading begins the first time. `on_lost`: what to do if records were
    deleted before they were read: wait for an operator, or go on with the oldest that is left.

    A sink appends a record a message: the encoder's bytes, else a JSON object. With `key`, a field's name, records
    carry it as text and Kafka's own hash of it chooses the partition. Without, a partition of the sink goes to one
    partition of the topic. Either way messages of one key stay in order. The receiver keeps its position in the topic
    `positions`, by default `bettong-positions.{application}.{sink}`.

    `connection` names an entry of the file BETTONG_CONNECTIONS, by default that of the source's or the sink's name.
    """

    kind: ClassVar[str] = "kafka_topic"

    topic: str
    _: KW_ONLY
    connection: str | None = None
    start: Start = "earliest"
    on_lost: OnLost = "stop"
    key: str | None = None
    positions: str | None = None

    @property
    def title(self) -> str:
        """See Transport."""
        return f"topic {self.topic}"

    @property
    def stream_prefix(self) -> str:
        """See Transport."""
        return f"kafka.{self.topic}."

    def check_source(self, source: str, *, decodes: bool) -> None:
        """See Transport."""
        _check_topic(f"source {source!r}", self.topic, characters_max=_SOURCE_CHARACTERS_MAX)
        if not decodes:
            raise ApplicationError(
                f"source {source!r}: records of Kafka are bytes; give the source format='json', or a decoder, such as"
                " each(function)"
            )
        if self.key is not None or self.positions is not None:
            raise ApplicationError(
                f"source {source!r}: key= and positions= of a topic are for sinks, which append to it; leave them out"
            )

    def check_sink(self, sink: str, schema: Schema | None, *, encoded: bool) -> None:
        """See Destination."""
        for topic in [self.topic] if self.positions is None else [self.topic, self.positions]:
            _check_topic(f"sink {sink!r}", topic, characters_max=_TOPIC_CHARACTERS_MAX)
        if self.start != "earliest" or self.on_lost != "stop":
            raise ApplicationError(
                f"sink {sink!r}: start= and on_lost= of a topic are for sources, which read it; leave them out"
            )
        if self.key is None:
            return
        if encoded or schema is None:
            raise ApplicationError(
                f"sink {sink!r}: key={self.key!r} needs fields of one schema, and this sink has"
                f" {'an encoder' if encoded else 'several'}; leave the key out"
            )
        kinds = {field.name: field.kind for field in schema.fields}
        key: object = self.key
        if not isinstance(key, str) or kinds.get(key) not in (Kind.TEXT, Kind.BYTES, Kind.INT):
            raise ApplicationError(
                f"sink {sink!r}: key={self.key!r}: expected a field of {schema.name} that holds text, bytes or"
                f" integers; it has {', '.join(kinds)}"
            )


def _check_topic(user: str, name: object, *, characters_max: int) -> None:
    if (
        not isinstance(name, str)
        or not _TOPIC.fullmatch(name)
        or len(name) > characters_max
        or name in (".", "..")
    ):
        raise ApplicationError(
            f"{user}: {name!r} is no topic: expected 1 to {characters_max} letters, digits, '.', '_' or '-'"
        )
