"""How many sessions each client may have. Pure; used from one thread."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from bettong.ingest.refusal import exhausted


class ClientShares:
    """The sessions of each client; see `bettong.edges.grpc_server.caller` for what a client is."""

    def __init__(self, sessions_max: int) -> None:
        self._sessions_max = sessions_max
        # Only clients that have sessions are here.
        self._sessions: Counter[str] = Counter()

    @contextmanager
    def share(self, client: str) -> Iterator[None]:
        """One session of a client. Raises Refusal (RESOURCE_EXHAUSTED) when it has as many as it may."""
        if self._sessions[client] >= self._sessions_max:
            raise exhausted(
                f"{client} has {self._sessions_max} sessions here, as many as one client may have"
                " (BETTONG_SENDER_SESSIONS_PER_CLIENT_MAX); end some, use fewer streams, or give clients that share an"
                " address tokens of their own"
            )
        self._sessions[client] += 1
        try:
            yield
        finally:
            self._sessions[client] -= 1
            if not self._sessions[client]:
                del self._sessions[client]
