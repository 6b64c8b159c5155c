"""Leader election among the processors of an application: the leader holds a lease.

| key                                | type   | holds                                                                 |
| ---------------------------------- | ------ | --------------------------------------------------------------------- |
| `bettong:{application}:lead`        | string | `{instance}/{process}` of the leader: a lease (`lease`)               |
| `bettong:{application}:lead:folded` | string | the instance whose schedule began last                                |

It keeps two processors from doing the same work. That results count once is up to the delivery rule, so a Redis that
loses the lease, or a leader that was only paused, only causes repeated work.
"""

from bettong.edges.redis_store.connection import Client, RedisStore
from bettong.edges.redis_store.lease import LEASE

# The next check makes up for a failed one; a check must not block while Redis is unavailable.
_ATTEMPTS_S = 0.3

# KEYS: the lead. ARGV: the process, ms of the lease, "1" if it may take a free lead. Returns the holder.
_HOLD = f"""{LEASE}
hold(KEYS[1], ARGV[1], ARGV[2], ARGV[3] == '1')
return holder_of(KEYS[1]) or ''
"""

# KEYS: the lead. ARGV: the process that releases it.
_RELEASE = f"{LEASE} return release(KEYS[1], ARGV[1])"


class RedisLead:
    """The lead of one application. Raises StoreError."""

    def __init__(self, store: RedisStore, *, ttl_ms: int) -> None:
        self._store = store
        self._ttl_ms = ttl_ms
        self._key = store.key("lead")
        self._folded = store.key("lead", "folded")

    def hold(self, process: str, *, take: bool) -> str:
        """Renews the lead; with `take`, acquires it if it is free. Returns the leader, "" for none."""
        holder = self._store.ask(
            "asking for the leader",
            lambda client: client.eval(_HOLD, 1, self._key, process, self._ttl_ms, int(take)),
            attempts_s=_ATTEMPTS_S,
        )
        return _text(holder)

    def release(self, process: str) -> None:
        """Releases the lead if this process holds it."""
        self._store.ask(
            "releasing the lead",
            lambda client: client.eval(_RELEASE, 1, self._key, process),
            attempts_s=_ATTEMPTS_S,
        )

    def folded_last(self) -> str:
        """The instance whose schedule began last; "" if unknown."""
        return _text(
            self._store.ask("asking for the last schedule", lambda client: client.get(self._folded)) or b""
        )

    def folds(self, instance: str) -> None:
        """Stores that the schedule of this instance has begun."""

        def command(client: Client) -> None:
            client.set(self._folded, instance)

        self._store.ask("saying who folds", command)


def _text(value: bytes) -> str:
    return value.decode()
