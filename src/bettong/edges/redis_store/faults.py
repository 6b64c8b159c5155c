"""Injects faults into a Redis server. For tests and chaos runs, on a server of their own."""

from bettong.edges.redis_store.connection import RedisStore

# One attempt: no faults are injected into a server that does not answer.
_ATTEMPTS_S = 0.0
# After a fault the server may be paused or restarting.
_MEND_S = 5.0
# Less than any data set.
_TOO_LITTLE_BYTES = 1


class RedisFaults:
    """The faults. Raises StoreError when the server does not answer, or refuses the command."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store

    def wipe(self) -> None:
        """Deletes all data of the server, including other applications'."""
        self._store.ask("wiping Redis", lambda client: client.flushall(), attempts_s=_ATTEMPTS_S)

    def starve(self) -> None:
        """Leaves the server no memory: it refuses writes, and answers everything else."""
        self._limit(_TOO_LITTLE_BYTES, _ATTEMPTS_S)

    def feed(self) -> None:
        """Removes the memory limit, as for our own servers. Waits for a server that is starting."""
        self._limit(0, _MEND_S)

    def _limit(self, limit_bytes: int, attempts_s: float) -> None:
        self._store.ask(
            "setting Redis' maxmemory",
            lambda client: client.config_set("maxmemory", limit_bytes),
            attempts_s=attempts_s,
        )
