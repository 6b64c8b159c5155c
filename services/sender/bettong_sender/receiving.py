"""Bytes of messages that have come in part: what the sender holds before gRPC shows it anything.

gRPC hands over a message when all of it is there. Until then its bytes are held outside every other bound, and a client
may leave it at that. So they are counted by difference, for each connection:

    received by the system  -  delivered to a session, and what that took on the way  =  come in part

It is an estimate: what a message takes on the way is allowed for generously, and never leaves less than nothing.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass

# Beside its bytes a message takes headers of HTTP/2 and TLS, acknowledgements and pings.
_MESSAGE_BYTES = 128
_SHARE_ON_THE_WAY = 256
_LOOK_BYTES = 256


@dataclass(slots=True)
class _Connection:
    sessions: int = 0
    delivered: int = 0
    received: int = 0
    part: int = 0


class Receiving:
    """The connections that have sessions; those that had some, as long as they last. Used from several threads."""

    def __init__(self, *, bytes_max: int, message_bytes_max: int) -> None:
        """`message_bytes_max`: of what one session can have sent in part."""
        self._bytes_max = bytes_max
        self._message_bytes_max = message_bytes_max
        self._connections: dict[str, _Connection] = {}
        self._sessions = 0
        self._lock = threading.Lock()
        # Set while all sessions together could hold too much: time to look.
        self.crowded = threading.Event()

    def opened(self, peer: str) -> None:
        """A session has begun on this connection."""
        with self._lock:
            self._connections.setdefault(peer, _Connection()).sessions += 1
            self._sessions += 1
            self._count()

    def delivered(self, peer: str, size: int) -> None:
        """A message of a session has come whole."""
        with self._lock:
            self._connections[peer].delivered += size + size // _SHARE_ON_THE_WAY + _MESSAGE_BYTES

    def closed(self, peer: str) -> None:
        """A session has ended, with what it had sent in part."""
        with self._lock:
            self._sessions -= 1
            self._count()
            connection = self._connections[peer]
            connection.sessions -= 1
            connection.part = min(connection.part, connection.sessions * self._message_bytes_max)

    def connections_to_close(self, received: Mapping[str, int]) -> dict[str, int]:
        """The connections to be closed, and what each has sent in part; none while all is within the bound.

        `received`: bytes of each connection since it began. Those that have sent most go first.
        """
        with self._lock:
            return self._largest_first(received)

    def _count(self) -> None:
        if self._sessions * self._message_bytes_max > self._bytes_max:
            self.crowded.set()
        else:
            self.crowded.clear()

    def _largest_first(self, received: Mapping[str, int]) -> dict[str, int]:
        self._connections = {
            peer: each for peer, each in self._connections.items() if peer in received or each.sessions
        }
        for peer, each in self._connections.items():
            came = received.get(peer, each.received) - each.received
            part = each.part + came - each.delivered - _LOOK_BYTES
            each.part = max(0, min(part, each.sessions * self._message_bytes_max))
            each.received += came
            each.delivered = 0
        total = sum(each.part for each in self._connections.values())
        found: dict[str, int] = {}
        for peer, each in sorted(self._connections.items(), key=lambda item: -item[1].part):
            if total <= self._bytes_max:
                break
            found[peer] = each.part
            total -= each.part
        return found
