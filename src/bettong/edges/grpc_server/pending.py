"""Requests of calls that take one, from the beginning of the call until they have come whole. Pure; for one thread.

A request comes whole in a moment, so few are under way at a time, however many calls there are. Whoever sends only a
part holds a call, of which a server has so many. So the connection that has most of them goes before others wait.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

# Half of the calls that a server takes beside those that it counts itself: see `OTHER_CALLS_MAX`.
REQUESTS_MAX = 128
# The subscribers of one process share a connection, and may all come back at a time.
REQUESTS_PER_CONNECTION_MAX = 64

# Calls that a server takes beside its sessions or subscribers: health, requests that are pending, clients that are
# about to be refused.
OTHER_CALLS_MAX = 2 * REQUESTS_MAX


class PendingRequests:
    """Those of one server, by connection."""

    def __init__(self) -> None:
        # The oldest first.
        self._peers: dict[object, str] = {}

    def is_full_for(self, peer: str) -> bool:
        """Whether a request more of this connection is refused. The first one never is."""
        own = sum(each == peer for each in self._peers.values())
        return own >= REQUESTS_PER_CONNECTION_MAX or (own > 0 and len(self._peers) >= REQUESTS_MAX)

    @contextmanager
    def pending(self, peer: str) -> Iterator[None]:
        """A request of this connection is under way."""
        request = object()
        self._peers[request] = peer
        try:
            yield
        finally:
            self._peers.pop(request, None)

    def peer_to_close(self) -> str | None:
        """The connection that must go while there are too many: that with most requests, of several the oldest one.

        Its requests do not count any more.
        """
        if len(self._peers) <= REQUESTS_MAX:
            return None
        # A Counter keeps the order in which it was filled.
        (peer, _), *_ = Counter(self._peers.values()).most_common(1)
        self._peers = {request: each for request, each in self._peers.items() if each != peer}
        return peer
