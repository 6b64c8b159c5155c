"""Bounds the bytes of messages that the buffer does not count yet: partly received ones, and those waiting for room.

gRPC delivers a message when it is complete. Until then its bytes are outside every other bound, and a client may never
send the rest. So they are estimated, for each connection:

    received by the system  -  delivered to a session, plus protocol overhead  =  partly received

The overhead is estimated generously; the result is never below zero.

The request of a call with a single request counts, too, until it is complete: see `reading`.

While a sender's buffer is full, or Redis is unavailable, each session may hold one complete message: a gigabyte for 256
sessions. These count for the same bound.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

# Overhead of a message: headers of HTTP/2 and TLS, acknowledgements, pings.
_MESSAGE_BYTES = 128
_SHARE_IN_TRANSIT = 256
_POLL_BYTES = 256


@dataclass(frozen=True, slots=True)
class Bound:
    """A limit. `name`: the setting, if it is one, for error messages."""

    bytes_max: int
    name: str


@dataclass(frozen=True, slots=True)
class Excess:
    """Why a connection is closed: the bytes held for it, and the name of the bound that they exceed."""

    held: int
    bound: str


@dataclass(slots=True)
class _Connection:
    sessions: int = 0
    delivered: int = 0
    received: int = 0
    part: int = 0
    waiting: int = 0

    @property
    def held(self) -> int:
        """Bytes held. `part` may still include bytes delivered since the last poll began."""
        return max(0, self.part - self.delivered) + self.waiting


class Receiving:
    """The connections that have or had sessions, while they are open. Thread-safe."""

    def __init__(self, *, of_all: Bound, of_connection: Bound, message_bytes_max: int) -> None:
        """`message_bytes_max`: the most that one session can have sent of an incomplete message.

        `of_connection`: at least two such messages, so that every permitted message passes: one that has just
        become complete may count both as partly received and as waiting.
        """
        self._names = (of_all.name, of_connection.name)
        self._bytes_max = of_all.bytes_max
        self._connection_bytes_max = max(of_connection.bytes_max, 2 * message_bytes_max)
        self._message_bytes_max = message_bytes_max
        self._connections: dict[str, _Connection] = {}
        self._sessions = 0
        self._wide = 0  # connections whose sessions together could hold too much
        self._lock = threading.Lock()
        # Set while all sessions together, or those of one connection, could exceed a bound: polling is needed.
        self.may_exceed_bounds = threading.Event()

    def opened(self, peer: str) -> None:
        """A session has begun on this connection, or a call whose single request is incomplete."""
        with self._lock:
            self._count(self._connections.setdefault(peer, _Connection()), 1)

    def delivered(self, peer: str, size: int) -> None:
        """A message of a session is complete."""
        with self._lock:
            self._connections[peer].delivered += size + size // _SHARE_IN_TRANSIT + _MESSAGE_BYTES

    @contextlib.contextmanager
    def waiting(self, peer: str, size: int) -> Iterator[None]:
        """Counts a complete message that waits for room in the buffer, while the block lasts."""
        with self._lock:
            connection = self._connections[peer]
            connection.waiting += size
        try:
            yield
        finally:
            with self._lock:
                connection.waiting -= size

    def closed(self, peer: str) -> None:
        """A session has ended, with its incomplete message, or a single request is complete."""
        with self._lock:
            connection = self._connections[peer]
            self._count(connection, -1)
            connection.part = min(connection.part, self._part_max(connection))

    def connections_to_close(self, received: Callable[[], Mapping[str, int]]) -> dict[str, Excess]:
        """The connections to close, largest first; none while all is within the bounds.

        `received()`: bytes of each connection since it began. It may take long: what is delivered meanwhile is
        subtracted in the next poll, because it may have arrived after the system was asked.
        """
        with self._lock:
            delivered = {peer: each.delivered for peer, each in self._connections.items()}
        came = received()
        with self._lock:
            return self._largest_first(came, delivered)

    def _count(self, connection: _Connection, more: int) -> None:
        self._wide -= self._is_wide(connection)
        connection.sessions += more
        self._sessions += more
        self._wide += self._is_wide(connection)
        if self._wide or self._sessions * self._message_bytes_max > self._bytes_max:
            self.may_exceed_bounds.set()
        else:
            self.may_exceed_bounds.clear()

    def _part_max(self, connection: _Connection) -> int:
        return connection.sessions * self._message_bytes_max + connection.delivered

    def _is_wide(self, connection: _Connection) -> bool:
        return connection.sessions * self._message_bytes_max > self._connection_bytes_max

    def _largest_first(self, received: Mapping[str, int], delivered: Mapping[str, int]) -> dict[str, Excess]:
        self._connections = {
            peer: each for peer, each in self._connections.items() if peer in received or each.sessions
        }
        for peer, each in self._connections.items():
            came = received.get(peer, each.received) - each.received
            whole = delivered.get(peer, 0)
            part = each.part + came - whole - _POLL_BYTES
            each.received += came
            each.delivered -= whole
            each.part = max(0, min(part, self._part_max(each)))
        total = sum(each.held for each in self._connections.values())
        found: dict[str, Excess] = {}
        of_all, of_connection = self._names
        for peer, each in sorted(self._connections.items(), key=lambda item: -item[1].held):
            if each.held > self._connection_bytes_max:
                found[peer] = Excess(each.held, of_connection)
            elif total > self._bytes_max:
                found[peer] = Excess(each.held, of_all)
            else:
                break
            total -= each.held
        return found
