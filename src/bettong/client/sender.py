"""Feeding a source: frames of rows, messages or columns, delivered once each although connections are lost."""

import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from bettong.application.schema import schema_of
from bettong.client.courier import Courier
from bettong.client.tables import Table, batch_of
from bettong.errors import RefusedError, SchemaError
from bettong.frames.columns import Columns
from bettong.v1.ingest_pb2 import Hello, IngestRequest, Welcome


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """What a source takes, as the sender said. `fingerprint` is that of `schema`."""

    name: str
    schema: pa.Schema
    fingerprint: int
    takes_rows: bool
    frame_bytes_max: int
    credits: int


class Sender:
    """A stream of frames into a source. For one producing thread; a context manager.

        with Sender("127.0.0.1:7100", "orders") as orders:
            orders.send_messages([Order(...), Order(...)])

    Each send is one frame; a few thousand messages a frame make good speed. It returns as soon as the frame may be
    under way, and blocks while the sender grants no credit. Frames without a receipt are kept and, after a lost
    connection, sent again under their numbers, so each counts once. Leaving the context waits for all receipts.
    A stream that comes back under its name in another process goes on with `acknowledged`, the
    highest sequence that it holds a receipt for, and resends what lies above.

    Every call raises RefusedError when the sender refused something for good (nothing more can be sent then), and
    ClientError when it cannot be reached, or grants nothing, for too long.
    """

    def __init__(
        self,
        target: str,
        source: str,
        stream: str | None = None,
        *,
        acknowledged: int = 0,
        credit_wait_s: float = 60.0,
        reconnect_s: float = 30.0,
        time_ns: Callable[[], int] = time.time_ns,
        new_name: Callable[[], str] = lambda: uuid.uuid4().hex,
    ) -> None:
        """Connects, and blocks until the sender has answered, at most `reconnect_s`.

        `target` is host:port. `stream` names this stream among all clients of the source; by default a new name.
        """
        self.stream = stream if stream is not None else new_name()
        self.sequence = acknowledged
        self._credit_wait_s = credit_wait_s
        self._time_ns = time_ns
        hello = Hello(source=source, stream=self.stream, acknowledged=acknowledged)
        self._courier = Courier(target, hello, reconnect_s=reconnect_s)
        try:
            self.source = _info(self._courier.welcome())
        except BaseException:
            self._courier.abandon()
            raise

    @property
    def acknowledged(self) -> int:
        """The highest sequence that the sender has made durable, with all below it."""
        return self._courier.acknowledged

    @property
    def dead_letters(self) -> int:
        """How many messages of the acknowledged frames the sender could not read; they are dead letters."""
        return self._courier.dead_letters

    def send_rows(
        self, rows: Sequence[bytes], *, sequence: int | None = None, sent_ns: int | None = None
    ) -> int:
        """Sends messages as bytes, for the source's decoder. Returns the frame's sequence.

        `sequence` must be above that of all frames before; by default the next one. `sent_ns`: when the oldest
        message was due, Unix nanoseconds; by default now.
        """
        if not self.source.takes_rows:
            raise RefusedError(
                f"source {self.source.name!r} has no decoder, so it takes no rows; send columns"
            )
        request = IngestRequest()
        request.frame.rows.messages.extend(rows)
        return self._send(request, len(rows), request.frame.rows.ByteSize(), sequence, sent_ns)

    def send_messages(
        self, messages: Sequence[Any], *, sequence: int | None = None, sent_ns: int | None = None
    ) -> int:
        """Sends objects of the source's message class, or of one with the same fields. See `send_rows`."""
        if not messages:
            raise SchemaError("a frame of no messages: send at least one")
        schema = schema_of(type(messages[0]))
        if schema.fingerprint != self.source.fingerprint:
            raise SchemaError(
                f"{schema.name} does not follow the schema of source {self.source.name!r}: it has"
                f" {_fields(schema.arrow)}; expected {_fields(self.source.schema)}"
            )
        payload = Columns.of_messages(schema, messages).payload()
        return self._send_columns(payload, len(messages), sequence, sent_ns)

    def send_columns(self, table: Table, *, sequence: int | None = None, sent_ns: int | None = None) -> int:
        """Sends columns: an Arrow record batch, or numpy arrays by the name of their field. See `send_rows`.

        Raises SchemaError for columns that do not fit the source's schema.
        """
        batch = batch_of(self.source.schema, table)
        return self._send_columns(batch.serialize().to_pybytes(), batch.num_rows, sequence, sent_ns)

    def flush(self, timeout_s: float = 60.0) -> None:
        """Blocks until every frame sent so far has its receipt."""
        self._courier.flush(timeout_s)

    def close(self, timeout_s: float = 60.0) -> None:
        """Flushes and ends the session. Nothing can be sent afterwards."""
        self._courier.finish(timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self._courier.abandon()

    def _send_columns(self, payload: bytes, count: int, sequence: int | None, sent_ns: int | None) -> int:
        request = IngestRequest()
        request.frame.columns = payload
        request.frame.schema = self.source.fingerprint
        return self._send(request, count, len(payload), sequence, sent_ns)

    def _send(
        self, request: IngestRequest, count: int, size: int, sequence: int | None, sent_ns: int | None
    ) -> int:
        number = self.sequence + 1 if sequence is None else sequence
        if number <= self.sequence:
            raise RefusedError(
                f"frame {number} of {self.stream!r}: the last one was {self.sequence}; number upwards"
            )
        if count == 0:
            raise SchemaError("a frame of no messages: send at least one")
        if size > self.source.frame_bytes_max:
            raise RefusedError(
                f"frame {number} of {self.stream!r} has {size} bytes, the sender takes"
                f" {self.source.frame_bytes_max}; send fewer messages a frame"
            )
        request.frame.sequence = number
        request.frame.sent_ns = self._time_ns() if sent_ns is None else sent_ns
        self._courier.put(request, self._credit_wait_s)
        self.sequence = number
        return number


def _info(welcome: Welcome) -> SourceInfo:
    source = welcome.source
    return SourceInfo(
        name=source.name,
        schema=pa.ipc.read_schema(pa.py_buffer(source.arrow_schema)),
        fingerprint=source.schema,
        takes_rows=source.takes_rows,
        frame_bytes_max=welcome.frame_bytes_max,
        credits=welcome.credits,
    )


def _fields(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)
