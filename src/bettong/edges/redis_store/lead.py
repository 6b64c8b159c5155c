"""Which processor of an application is at work: the one that holds the lease.

| key                                | type   | holds                                                                 |
| ---------------------------------- | ------ | --------------------------------------------------------------------- |
| `bettong:{application}:lead`        | string | `{instance}/{process}` that leads: a lease (`lease`)                  |
| `bettong:{application}:lead:folded` | string | the instance whose schedule began last                                |

It keeps two processors from doing one work. That results count once is the delivery rule's doing, so a Redis that
forgets the lease, or a leader that was only paused, costs work and nothing else.
"""

from bettong.edges.redis_store.connection import Client, RedisStore
from bettong.edges.redis_store.lease import LEASE

# A check that is late is made up for by the next one; it must not hang on a Redis that is away.
_ATTEMPTS_S = 0.3

# KEYS: the lead. ARGV: who asks, ms that its lead lasts, "1" if it may take a lead that nobody has. The holder then.
_HOLD = f"""{LEASE}
hold(KEYS[1], ARGV[1], ARGV[2], ARGV[3] == '1')
return holder_of(KEYS[1]) or ''
"""

# KEYS: the lead. ARGV: who gives it back.
_RELEASE = f"{LEASE} return release(KEYS[1], ARGV[1])"


class RedisLead:
    """Of one application. Raises StoreError."""

    def __init__(self, store: RedisStore, *, ttl_ms: int) -> None:
        self._store = store
        self._ttl_ms = ttl_ms
        self._key = store.key("lead")
        self._folded = store.key("lead", "folded")

    def hold(self, process: str, *, take: bool) -> str:
        """Keeps the lead, or takes it where nobody has it and `take`. Returns who leads, "" for nobody."""
        holder = self._store.ask(
            "looking who leads",
            lambda client: client.eval(_HOLD, 1, self._key, process, self._ttl_ms, int(take)),
            attempts_s=_ATTEMPTS_S,
        )
        return _text(holder)

    def release(self, process: str) -> None:
        """Gives the lead back, if it is this process's."""
        self._store.ask(
            "giving the lead back",
            lambda client: client.eval(_RELEASE, 1, self._key, process),
            attempts_s=_ATTEMPTS_S,
        )

    def folded_last(self) -> str:
        """The instance whose schedule began last; "" when none is known."""
        return _text(
            self._store.ask("asking who folded last", lambda client: client.get(self._folded)) or b""
        )

    def folds(self, instance: str) -> None:
        """From now on it is this instance."""

        def command(client: Client) -> None:
            client.set(self._folded, instance)

        self._store.ask("saying who folds", command)


def _text(value: bytes) -> str:
    return value.decode()
