"""Incomplete requests of unary calls, from the start of the call until the request has arrived. Pure; for one thread.

A request normally arrives at once, so few are incomplete at a time, however many calls there are. A client that sends
only a part occupies one of the server's calls. So at the limit the connection with most of them is closed.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

# Half of the calls that a server accepts in addition to those that it counts itself: see `OTHER_CALLS_MAX`.
REQUESTS_MAX = 128
# The subscribers of one process share a connection, and may all reconnect at the same time.
REQUESTS_PER_CONNECTION_MAX = 64

# Calls that a server accepts in addition to its sessions or subscribers: health checks, incomplete requests, clients
# that are about to be refused.
OTHER_CALLS_MAX = 2 * REQUESTS_MAX


class PendingRequests:
    """The incomplete requests of one server, by connection."""

    def __init__(self) -> None:
        # Oldest first.
        self._peers: dict[object, str] = {}

    def is_full_for(self, peer: str) -> bool:
        """Whether to refuse another request of this connection. The first one is never refused."""
        own = sum(each == peer for each in self._peers.values())
        return own >= REQUESTS_PER_CONNECTION_MAX or (own > 0 and len(self._peers) >= REQUESTS_MAX)

    @contextmanager
    def pending(self, peer: str) -> Iterator[None]:
        """Counts a request of this connection as incomplete while the block lasts."""
        request = object()
        self._peers[request] = peer
        try:
            yield
        finally:
            self._peers.pop(request, None)

    def peer_to_close(self) -> str | None:
        """The connection to close when there are too many: that with most requests, of several the oldest; else None.

        Its requests no longer count.
        """
        if len(self._peers) <= REQUESTS_MAX:
            return None
        # A Counter keeps the order in which it was filled.
        (peer, _), *_ = Counter(self._peers.values()).most_common(1)
        self._peers = {request: each for request, each in self._peers.items() if each != peer}
        return peer
