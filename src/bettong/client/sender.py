"""Sends frames of rows, messages or columns to a source; each counts once, even when connections are lost."""

import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa

from bettong.client.column_bodies import ColumnBodies
from bettong.client.courier import Courier
from bettong.client.credentials import Credentials
from bettong.client.tracing import StreamTracing
from bettong.errors import RefusedError, SchemaError
from bettong.frames.columns import Columns
from bettong.identifiers import Origin
from bettong.schema.schema import schema_of
from bettong.schema.tables import Table
from bettong.v1.ingest_pb2 import Hello, IngestRequest, Welcome

_NUMBER_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """The schema and the limits of a source, as the sender reports them. `fingerprint`: of `schema`.

    `takes_json`: rows may be JSON objects.
    `frame_messages_max`, `frame_bytes_max`: limits of one frame; the first is 0 when the sender reports none.
    """

    name: str
    schema: pa.Schema
    fingerprint: int
    takes_rows: bool
    takes_json: bool
    frame_bytes_max: int
    frame_messages_max: int
    credits: int


class Sender:
    """Sends a stream of frames to a source. Use it from one thread; a context manager.

        with Sender("127.0.0.1:7100", "orders") as orders:
            orders.send_messages([Order(...), Order(...)])

    A send queues its messages and returns without waiting for a receipt; it blocks while the sender grants no credit.
    Each send is a frame; throughput is best with a few thousand messages in each. Without a name for the stream, small
    frames sent within 4 ms of each other are joined into one, with the number of the last (decision 60).
    Frames without a receipt are kept, and sent again with their numbers after a lost connection, so each counts once.
    Leaving the context waits for all receipts.

    To resume after a crash of this process, name the stream, and number each frame by its position in an input that
    can be read again (`sequence`: an offset in a file, the id of a message):

        with Sender("127.0.0.1:7100", "orders", stream="feed-3") as orders:
            for offset, order in read(path, after=orders.acknowledged):
                orders.send_messages([order], sequence=offset)

    Reading from the beginning works too: frames up to `acknowledged` are not sent again. Never reuse a number for other
    messages: of two frames with one number, only one counts. So without such an input, do not name the stream.

    One client feeds a stream at a time. A second one is refused, once the lease of a dead client would have expired
    (`BETTONG_SENDER_LEASE_MS`). A program that names itself (`client`) does not wait when it is restarted: it takes the
    stream over from its previous run at once, even if that hangs.

    Every call raises RefusedError when the sender refused something for good (nothing more can be sent then), and
    ClientError when the sender cannot be reached, or grants no credit, for too long.
    """

    def __init__(
        self,
        target: str,
        source: str,
        stream: str | None = None,
        *,
        client: str | None = None,
        acknowledged: int | None = None,
        finite: bool = False,
        credit_wait_s: float = 60.0,
        reconnect_s: float = 30.0,
        credentials: Credentials | None = None,
        time_ns: Callable[[], int] = time.time_ns,
        new_name: Callable[[], str] = lambda: uuid.uuid4().hex,
    ) -> None:
        """Connects, and blocks until the sender has answered, at most `reconnect_s` and as long again (10 s at least).

        `target` is host:port. `stream`: its name, unique among all clients of the source; by default a new one.
        `client`: name of the program that feeds it, the same for all its runs, at most 128 characters; by default each
        object counts as another client. Of two objects with one `client` and stream, the newer one gets the stream, and
        calls of the older one raise RefusedError.
        `acknowledged`: frames up to this number are known to be durable; frames without a `sequence` are numbered from
        there. Needed only for a stream that was fed before and whose frames get no `sequence`.
        `finite`: after `close` the stream gets no new messages, as from a file, so watermarks no longer wait for it.
        The same messages may be sent again, with the same numbers. A stream without a name is finite.
        `credentials`: by default those of the environment, BETTONG_CLIENT_*; SettingsError when these are wrong.

        Exports spans of sampled frames if BETTONG_CLIENT_TRACE_ENDPOINT is set.
        """
        self.stream = stream if stream is not None else new_name()
        self.sequence = acknowledged or 0
        self._numbers_known = acknowledged is not None
        self._credit_wait_s = credit_wait_s
        self._time_ns = time_ns
        hello = _hello(
            source=source,
            stream=self.stream,
            client=client if client is not None else new_name(),
            acknowledged=self.sequence,
            ephemeral=stream is None,
            finite=bool(finite) and stream is not None,
        )
        credentials = credentials if credentials is not None else Credentials.from_environment()
        self._tracing = StreamTracing.from_environment(Origin(f"{source}/{self.stream}"), hello.client)
        self._courier = Courier(
            target,
            hello,
            reconnect_s=reconnect_s,
            credentials=credentials,
            yields_to_same_client=client is not None,
            tracing=self._tracing,
        )
        try:
            self.source = _info(self._courier.welcome())
            self._bodies = ColumnBodies(self.source.schema)
            self._durable = self._courier.acknowledged
        except BaseException:
            self.abandon()
            raise

    @property
    def acknowledged(self) -> int:
        """The highest sequence known to be durable, with all below it, also those that earlier processes sent."""
        return self._courier.acknowledged

    @property
    def hindrance(self) -> str:
        """What the frames sent so far, or the next one, wait for now, in words; empty when nothing holds them up."""
        return self._courier.hindrance

    @property
    def dead_letters(self) -> int:
        """How many messages of the acknowledged frames the sender could not read; they are dead letters.

        A lower bound: the count in a receipt that was lost with its connection is not reported again.
        """
        return self._courier.dead_letters

    def send_rows(
        self, rows: Sequence[bytes], *, sequence: int | None = None, sent_ns: int | None = None
    ) -> int:
        """Sends messages as bytes, for the source's decoder. Returns the frame's sequence.

        `sequence` must be above those of all earlier frames; by default it is the next one. A frame that was durable
        when the stream was opened is not sent. `sent_ns`: when the oldest message was due, Unix ns; by default now.
        """
        if not self.source.takes_rows:
            raise RefusedError(
                f"source {self.source.name!r} has no decoder, so it takes no rows; send columns"
            )
        _check_list(rows, "rows")
        request = IngestRequest()
        try:
            request.frame.rows.messages.extend(rows)
        except TypeError:
            row, kind = next((row, type(each)) for row, each in enumerate(rows) if type(each) is not bytes)
            raise SchemaError(f"row {row} is {kind.__name__}; expected bytes") from None
        return self._send(request, len(rows), request.frame.rows.ByteSize(), sequence, sent_ns)

    def send_messages(
        self, messages: Sequence[Any], *, sequence: int | None = None, sent_ns: int | None = None
    ) -> int:
        """Sends objects of the source's message class, or of one with the same fields, or dicts. See `send_rows`.

        Raises SchemaError for messages that do not fit the source's schema.
        """
        _check_list(messages, "messages")
        kind = type(messages[0])
        if issubclass(kind, dict):
            payload, _ = self._bodies.of_dicts(messages)
            return self._send_columns(payload, len(messages), sequence, sent_ns)
        schema = schema_of(kind)
        if schema.fingerprint != self.source.fingerprint:
            raise SchemaError(
                f"{schema.name} does not follow the schema of source {self.source.name!r}: it has"
                f" {_fields(schema.arrow)}; expected {_fields(self.source.schema)}"
            )
        try:
            payload = Columns.of_messages(schema, messages).payload()
        except schema.unreadable as error:
            other = next((row for row, each in enumerate(messages) if type(each) is not kind), 0)
            raise SchemaError(
                f"message {other} is no {schema.name} as the first one is: {error}; send messages of one class"
            ) from None
        return self._send_columns(payload, len(messages), sequence, sent_ns)

    def send_columns(self, table: Table, *, sequence: int | None = None, sent_ns: int | None = None) -> int:
        """Sends columns: numpy arrays by name of their field, an Arrow batch or table, or a frame of pandas or polars.

        Small ones are sent fastest as numpy arrays of exactly the fields' types, in a dict. See `send_rows`.
        Raises SchemaError for columns that do not fit the source's schema.
        """
        payload, count = self._bodies.of_table(table)
        return self._send_columns(payload, count, sequence, sent_ns)

    def flush(self, timeout_s: float = 60.0) -> None:
        """Blocks until every frame sent so far has its receipt."""
        self._courier.flush(timeout_s)

    def close(self, timeout_s: float = 60.0) -> None:
        """Flushes and ends the session. Nothing can be sent afterwards."""
        try:
            self._courier.finish(timeout_s)
        finally:
            if self._tracing is not None:
                self._tracing.close()

    def abandon(self) -> None:
        """Closes at once, without waiting for receipts. Does nothing when closed already."""
        self._courier.abandon()
        if self._tracing is not None:
            self._tracing.abandon()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()

    def _send_columns(self, payload: bytes, count: int, sequence: int | None, sent_ns: int | None) -> int:
        request = IngestRequest()
        request.frame.columns = payload
        request.frame.schema = self.source.fingerprint
        return self._send(request, count, len(payload), sequence, sent_ns)

    def _send(
        self, request: IngestRequest, count: int, size: int, sequence: int | None, sent_ns: int | None
    ) -> int:
        number = self.sequence + 1 if sequence is None else sequence
        if not (_is_number(number) and (sent_ns is None or _is_number(sent_ns))):
            raise RefusedError(
                f"a frame of {self.stream!r} with sequence {sequence!r} and sent_ns {sent_ns!r}: both are whole numbers"
                " from 0 below 2^63; sent_ns is Unix nanoseconds"
            )
        if number <= self.sequence:
            raise RefusedError(
                f"frame {number} of {self.stream!r}: the last one was {self.sequence}; send a higher sequence"
            )
        if sequence is None and number <= self._durable and not self._numbers_known:
            raise RefusedError(
                f"stream {self.stream!r} was fed before, up to frame {self._durable}, so it is not known which frame"
                " this is: number frames by their position in your input (sequence=), say from where to count"
                f" (acknowledged=0 to send all again, acknowledged={self._durable} to go on), or leave out the name"
            )
        if count == 0:
            raise SchemaError("a frame of no messages: send at least one")
        if count > self.source.frame_messages_max > 0:
            raise RefusedError(
                f"frame {number} of {self.stream!r} has {count} messages, the sender takes"
                f" {self.source.frame_messages_max}; send fewer messages a frame"
            )
        if size > self.source.frame_bytes_max:
            raise RefusedError(
                f"frame {number} of {self.stream!r} has {size} bytes, the sender takes"
                f" {self.source.frame_bytes_max}; send fewer messages a frame"
            )
        if number <= self._durable:
            self.sequence = number
            return number
        request.frame.sequence = number
        request.frame.sent_ns = self._time_ns() if sent_ns is None else sent_ns
        self._put(request, count)
        self.sequence = number
        return number

    def _put(self, request: IngestRequest, count: int) -> None:
        if self._tracing is None:
            self._courier.put(request, count, self._credit_wait_s)
            return
        # Before the frame is sent: its receipt may arrive at once.
        self._tracing.begin(request.frame.sequence, request.frame.sent_ns, count)
        try:
            self._courier.put(request, count, self._credit_wait_s)
        except BaseException:
            self._tracing.withdraw(request.frame.sequence)
            raise


def _hello(**fields: Any) -> Hello:
    try:
        return Hello(**fields)
    except (TypeError, ValueError):
        given = ", ".join(
            f"{name} {value!r}" for name, value in fields.items() if not isinstance(value, bool)
        )
        raise RefusedError(f"{given}: expected text, and a whole number from 0") from None


def _info(welcome: Welcome) -> SourceInfo:
    source = welcome.source
    return SourceInfo(
        name=source.name,
        schema=pa.ipc.read_schema(pa.py_buffer(source.arrow_schema)),
        fingerprint=source.schema,
        takes_rows=source.takes_rows,
        takes_json=source.takes_json,
        frame_bytes_max=welcome.frame_bytes_max,
        frame_messages_max=welcome.frame_messages_max,
        credits=welcome.credits,
    )


def _check_list(given: object, what: str) -> None:
    """Raises SchemaError unless these are one or more messages, or rows."""
    if not isinstance(given, Sequence | np.ndarray) or isinstance(given, str | bytes | bytearray):
        raise SchemaError(f"{type(given).__name__} is no list of {what}; send a list, of a single one too")
    if not len(given):
        raise SchemaError("a frame of no messages: send at least one")


def _is_number(given: object) -> bool:
    return isinstance(given, int | np.integer) and 0 <= int(given) <= _NUMBER_MAX


def _fields(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)
