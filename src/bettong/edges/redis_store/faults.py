"""Faults of a Redis server, brought about on purpose. For tests and chaos runs, on a server that is theirs alone."""

from bettong.edges.redis_store.connection import RedisStore

# One attempt: a server that does not answer now is not the one to disturb.
_ATTEMPTS_S = 0.0
# A server that was disturbed may be paused or start again just now.
_MEND_S = 5.0
# Anything that is held is more.
_TOO_LITTLE_BYTES = 1


class RedisFaults:
    """Raises StoreError when the server does not answer, or forbids it."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store

    def wipe(self) -> None:
        """All that it holds is gone, that of other applications too."""
        self._store.ask("wiping Redis", lambda client: client.flushall(), attempts_s=_ATTEMPTS_S)

    def starve(self) -> None:
        """It has no memory left: writes are refused, all else is answered."""
        self._limit(_TOO_LITTLE_BYTES, _ATTEMPTS_S)

    def feed(self) -> None:
        """It may take as much memory as the machine has, as our own servers may. Waits for one that starts."""
        self._limit(0, _MEND_S)

    def _limit(self, limit_bytes: int, attempts_s: float) -> None:
        self._store.ask(
            "setting Redis' maxmemory",
            lambda client: client.config_set("maxmemory", limit_bytes),
            attempts_s=attempts_s,
        )
