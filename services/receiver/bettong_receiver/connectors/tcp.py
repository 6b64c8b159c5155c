r"""Messages over TCP, AT LEAST ONCE: after a crash, or when an answer is lost, a batch is sent again.

    lines     {"key":"a","number":1}\n{"key":"b","number":2}\n\n            an empty line ends a batch
    frames    00 00 00 03 'a' 'b' 'c'  00 00 00 01 'd'  ff ff ff ff          lengths, big-endian; 2^32-1 ends a batch
    answer    ok\n                                                          when the peer has stored the batch

TCP alone does not tell what a peer has read before it died, so at-least-once needs an answer. One batch is in flight
at a time; it holds messages of one partition, in order. The position is stored in Redis after the answer.
"""

import select
import socket
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from bettong.application.external.tcp import AtLeastOnceTcp
from bettong.config.connections import Options
from bettong.config.endpoints import servers
from bettong.edges.redis_store import RedisSink
from bettong.errors import SettingsError
from bettong_receiver.connectors.redis_positions import RedisPositions
from bettong_receiver.delivery.connector import ConnectorUnavailableError, Refused, SinkBatch, SinkConnector
from bettong_receiver.delivery.route import Route
from bettong_receiver.progress import SinkPartition
from bettong_receiver.sink_context import SinkContext

_ANSWER = b"ok\n"
_ANSWER_WAIT_S_MAX = 10.0
_MESSAGES_MAX = 1000
_BYTES_MAX = 1024 * 1024
_STRAY_BYTES = 100
_END = b"\xff\xff\xff\xff"


def route(context: SinkContext, to: AtLeastOnceTcp) -> Route[bytes]:
    """See `bettong_receiver.connectors`."""
    address = address_of(context.options(to, needs="address"), sink=context.name)

    def make() -> AtLeastOnceTcpConnector:
        return AtLeastOnceTcpConnector(address, context.redis, sink=context.name, lines=context.lines)

    return context.route(context.messages, make)


def address_of(options: Options, *, sink: str) -> tuple[str, int]:
    """Host and port of a connection with `address`. Raises SettingsError."""
    try:
        (only,) = servers(str(options["address"])).split(",")
        host, _, port = only.rpartition(":")
        return host.removeprefix("[").removesuffix("]"), int(port)
    except ValueError:
        raise SettingsError(
            f"sink {sink!r}: 'address' of its connection is {options['address']!r}, expected HOST:PORT"
        ) from None


class AtLeastOnceTcpConnector(SinkConnector[bytes]):
    """See SinkConnector, with weaker guarantees: a delivery may repeat, and another receiver is not fenced off."""

    def __init__(self, address: tuple[str, int], redis: RedisSink, *, sink: str, lines: bool) -> None:
        """`lines`: one message per line, for messages without a line end; else each follows its length."""
        self._address = address
        self._lines = lines
        self._name = f"sink {sink}, TCP {address[0]}:{address[1]}"
        self._positions = RedisPositions(redis, f"{sink}/tcp", self._name)
        self._connection: socket.socket | None = None

    def open(self, beginnings: Mapping[SinkPartition, int]) -> dict[SinkPartition, bytes | None]:
        """See SinkConnector. Does not connect yet."""
        return self._positions.load(beginnings)

    def deliver(self, batches: Sequence[SinkBatch[bytes]]) -> Refused:
        """See SinkConnector. Sends one batch after the other, and stores the position after each."""
        for batch in batches:
            for chunk in self._chunks(batch.messages):
                self._send(chunk)
            self._positions.save(batch)
        return {}

    def close(self) -> None:
        """See SinkConnector."""
        if self._connection is not None:
            with suppress(OSError):
                self._connection.close()

    def _chunks(self, messages: list[bytes]) -> Iterator[bytes]:
        end = b"\n" if self._lines else _END
        pieces: list[bytes] = []
        size = 0
        for message in messages:
            if pieces and (len(pieces) == _MESSAGES_MAX or size + len(message) > _BYTES_MAX):
                yield b"".join([*pieces, end])
                pieces, size = [], 0
            pieces.append(message + b"\n" if self._lines else struct.pack(">I", len(message)) + message)
            size += len(message)
        if pieces:
            yield b"".join([*pieces, end])

    def _send(self, chunk: bytes) -> None:
        try:
            connection = self._open_connection()
            connection.sendall(chunk)
            answer = b""
            while not answer.endswith(b"\n") and len(answer) < len(_ANSWER):
                found = connection.recv(len(_ANSWER) - len(answer))
                if not found:
                    raise ConnectorUnavailableError(f"{self._name}: the peer closed before it answered")
                answer += found
        except OSError as error:
            raise ConnectorUnavailableError(
                f"{self._name}: no answer: {str(error) or type(error).__name__}"
            ) from None
        if answer != _ANSWER:
            raise ConnectorUnavailableError(
                f"{self._name}: the peer answered {answer!r}, expected {_ANSWER!r} after each batch"
            )

    def _open_connection(self) -> socket.socket:
        """The open connection; a new one if the peer closed the old one while it was idle."""
        if self._connection is not None and _is_readable(self._connection):
            # Unexpected bytes would be read as the answer to the next batch.
            if stray := self._connection.recv(_STRAY_BYTES):
                raise ConnectorUnavailableError(f"{self._name}: the peer sent {stray!r} without being asked")
            self._connection.close()
            self._connection = None
        if self._connection is None:
            self._connection = socket.create_connection(self._address, _ANSWER_WAIT_S_MAX)
        return self._connection


def _is_readable(connection: socket.socket) -> bool:
    """Whether there is something to read now, or the peer has closed."""
    poll = select.poll()  # unlike `select.select` it takes descriptors above 1,023
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0))
