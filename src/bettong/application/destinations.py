"""Destinations: where a sink's results go beside files, Redis and subscribers. Pure data: no connection, no secret.

| destination          | promise       | how                                                                       |
| -------------------- | ------------- | ------------------------------------------------------------------------- |
| `Postgres`           | exactly once  | rows and position in one transaction                                      |
| `KafkaTopic`         | exactly once  | records and position in one transaction; read the topic with read_committed |
| `TwoPhase`           | exactly once  | a sink of your own: see `TwoPhaseSink`                                    |
| `AtLeastOnceWebhook` | at least once | a crash between a request and its position sends the request again        |
| `AtLeastOnceTcp`     | at least once | a crash between an answer and its position sends the batch again          |

`connection` names an entry of the file BETTONG_CONNECTIONS, where addresses and passwords are; by default it has the
name of the sink.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from bettong.errors import ApplicationError
from bettong.schema.fields import Kind
from bettong.schema.schema import Schema

# Postgres cuts longer names without an error.
_IDENTIFIER_BYTES_MAX = 63
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


@dataclass(frozen=True, slots=True)
class Postgres:
    """Appends a row a message to a table: `to=Postgres("totals")`, or `Postgres("reports.totals")` with its schema.

    Each field of the message is a column of the same name; columns beyond those need a default or must be nullable.
    The receiver makes the table `bettong_positions` in the same schema when it is not there.
    """

    table: str
    connection: str | None = None

    def check(self, sink: str, schema: Schema | None, *, encoded: bool) -> None:
        """Raises ApplicationError when the sink's messages cannot go there."""
        parts = self.table.split(".")
        if len(parts) > 2 or not all(0 < len(part.encode()) <= _IDENTIFIER_BYTES_MAX for part in parts):
            raise ApplicationError(
                f"sink {sink!r}: {self.table!r} is no table: expected 'table' or 'schema.table',"
                f" names of at most {_IDENTIFIER_BYTES_MAX} bytes"
            )
        if encoded:
            raise ApplicationError(f"sink {sink!r}: Postgres takes fields, not bytes: leave the encoder out")
        if schema is None:
            raise ApplicationError(
                f"sink {sink!r}: its stream mixes schemas, a table has one; give each stream a sink of its own"
            )


@dataclass(frozen=True, slots=True)
class KafkaTopic:
    """Appends a record a message to a topic of yours: the encoder's bytes, else a JSON object.

    With `key`, a field's name, records carry it as text and Kafka's own hash of it chooses the partition. Without, a
    partition of the sink goes to one partition of the topic. Either way messages of one key stay in order. The
    receiver keeps its position in the topic `positions`, by default `bettong-positions.{application}.{sink}`.
    """

    topic: str
    key: str | None = None
    connection: str | None = None
    positions: str | None = None

    def check(self, sink: str, schema: Schema | None, *, encoded: bool) -> None:
        """Raises ApplicationError when the sink's messages cannot go there."""
        for topic in (self.topic, self.positions):
            if topic is not None and not is_topic(topic):
                raise ApplicationError(
                    f"sink {sink!r}: {topic!r} is no topic: expected 1 to 249 letters, digits, '.', '_' or '-'"
                )
        if self.key is None:
            return
        if encoded or schema is None:
            raise ApplicationError(
                f"sink {sink!r}: key={self.key!r} needs fields of one schema, and this sink has"
                f" {'an encoder' if encoded else 'several'}; leave the key out"
            )
        kinds = {field.name: field.kind for field in schema.fields}
        if kinds.get(self.key) not in (Kind.TEXT, Kind.BYTES, Kind.INT):
            raise ApplicationError(
                f"sink {sink!r}: key={self.key!r}: expected a field of {schema.name} that holds text, bytes or"
                f" integers; it has {', '.join(kinds)}"
            )


class TwoPhaseSink(Protocol):
    """A sink of your own that gets each message exactly once. See docs/sinks.md, and the contract tests
    `bettong.testing.TwoPhaseSinkContract`, which tell whether yours keeps this contract.

        recover(p) ─> begin(p) ─> write(p, ...)* ─> prepare(p, position) ─> commit(p, position) ─> begin(p) ...

    Every partition is a sequence of batches of its own; batches of several partitions may be open at a time. A
    position is a few hundred bytes that say how far the partition is delivered: keep them as they are. Calls come
    from one thread. A method may block for some seconds. Whatever it raises is told in `bettong status`; the object is
    closed then, and a new one is opened after a while, which recovers.
    """

    def recover(self, partition: int) -> bytes | None:
        """The first call for a partition: brings what another object left, at whatever point, to an end.

        A batch that was prepared is committed or undone, as you like; one that was not is undone. Returns the position
        of the newest batch that is committed, None when there is none: the log is read again from there. From here on
        an older object that still lives (a receiver that was thought dead) must fail in `prepare` or `commit`.
        """

    def begin(self, partition: int) -> None:
        """Starts a batch."""

    def write(self, partition: int, messages: Sequence[bytes]) -> None:
        """Adds messages to the batch, in order: the encoder's bytes, else JSON objects. Nobody may see them yet."""

    def prepare(self, partition: int, position: bytes) -> None:
        """Makes batch and position durable together, unseen, so that nothing but a loss of the disk hinders commit."""

    def commit(self, partition: int, position: bytes) -> None:
        """Makes the batch visible, all of it at once, and `position` what `recover` returns."""

    def close(self) -> None:
        """Lets go of everything. Undoes what is open; must not commit. Not called when the process is killed."""


@dataclass(frozen=True, slots=True)
class TwoPhase:
    """A sink of your own: `to=TwoPhase(open_ledger)`.

    The receiver calls `open_sink(options)` to get a `TwoPhaseSink`; `options` is the connection's entry in
    BETTONG_CONNECTIONS, empty when there is none.
    """

    open_sink: Callable[[Mapping[str, Any]], TwoPhaseSink]
    connection: str | None = None

    def check(self, sink: str, schema: Schema | None, *, encoded: bool) -> None:
        """Raises ApplicationError when it cannot be opened."""
        del schema, encoded
        if not callable(self.open_sink):
            raise ApplicationError(
                f"sink {sink!r}: TwoPhase({self.open_sink!r}): expected a function that opens the sink"
            )


@dataclass(frozen=True, slots=True)
class AtLeastOnceWebhook:
    """Posts messages to a URL: AT LEAST ONCE, a crash may post a batch again. `url` is in the connection.

    Each POST holds messages of one partition, in order: JSON objects, one a line. A sink with an encoder gets a POST a
    message, its body the encoder's bytes. Headers `Bettong-Sink` and `Bettong-Partition` tell where they come from.
    """

    connection: str | None = None

    def check(self, sink: str, schema: Schema | None, *, encoded: bool) -> None:
        """Everything can go there."""


@dataclass(frozen=True, slots=True)
class AtLeastOnceTcp:
    """Sends messages over TCP: AT LEAST ONCE, a crash may send a batch again. The connection has `address`, HOST:PORT.

    JSON objects go as lines, an empty line behind each batch; the messages of a sink with an encoder each behind
    their length, four bytes, big-endian, and 2**32-1 behind each batch. The peer answers a batch that it has kept with
    `ok` and a line end: TCP alone cannot tell what a peer has read before it died. A batch is of one partition.
    """

    connection: str | None = None

    def check(self, sink: str, schema: Schema | None, *, encoded: bool) -> None:
        """Everything can go there."""


Destination = Postgres | KafkaTopic | TwoPhase | AtLeastOnceWebhook | AtLeastOnceTcp


def check_destination(sink: str, destination: object, schema: Schema | None, *, encoded: bool) -> None:
    """Raises ApplicationError for what is no destination, or none for this sink."""
    if not isinstance(destination, Destination):
        raise ApplicationError(
            f"sink {sink!r}: to={destination!r} is no destination; expected bettong.Postgres, KafkaTopic, TwoPhase,"
            " AtLeastOnceWebhook or AtLeastOnceTcp"
        )
    destination.check(sink, schema, encoded=encoded)


def is_topic(name: str) -> bool:
    """Whether Kafka takes it as the name of a topic."""
    return bool(_TOPIC.fullmatch(name)) and name not in (".", "..")
