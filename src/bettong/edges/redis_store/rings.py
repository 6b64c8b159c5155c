"""The rings of a console's history, which outlive its process. One of several consoles writes them.

| key                                    | type   | holds                                                             |
| -------------------------------------- | ------ | ----------------------------------------------------------------- |
| `bettong:{application}:history:{span}`  | hash   | fields of one ring, as the console packs them; expires            |
| `bettong:{application}:history`         | string | the console that writes: a lease (`lease`)                        |

Best effort: after Redis has lost data, the history has a hole.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bettong.edges.redis_store.connection import Client, RedisStore
from bettong.edges.redis_store.lease import LEASE

# A console without viewers samples every 10 s; after this time another one takes over.
_LEASE_MS = 30_000
# An hour longer than the day that rings cover: rings that are not written are useless then.
_KEPT_MS = 25 * 3600 * 1000
# The next write makes up for a failed one; a write must not block while Redis is unavailable.
_ATTEMPTS_S = 0.3

# KEYS: the lease, rings. ARGV: the writer, ms of the lease, TTL of rings in ms; for each ring the number of fields and
# values, these, the number of fields to delete, and these. Returns whether it holds the lease.
_WRITE = f"""{LEASE}
if not hold(KEYS[1], ARGV[1], ARGV[2], true, false) then return 0 end
local at = 4
for key = 2, #KEYS do
  local count = tonumber(ARGV[at])
  for index = at + 1, at + count, 2 do redis.call('HSET', KEYS[key], ARGV[index], ARGV[index + 1]) end
  at = at + count + 1
  count = tonumber(ARGV[at])
  for index = at + 1, at + count do redis.call('HDEL', KEYS[key], ARGV[index]) end
  at = at + count + 1
  redis.call('PEXPIRE', KEYS[key], ARGV[3])
end
return 1
"""

# KEYS: the lease. ARGV: the writer, ms of the lease. Returns whether it holds the lease.
_HOLD = f"{LEASE} return hold(KEYS[1], ARGV[1], ARGV[2], true, false)"

# KEYS: the lease. ARGV: the writer that releases it.
_RELEASE = f"{LEASE} return release(KEYS[1], ARGV[1])"


@dataclass(frozen=True, slots=True)
class RingChange:
    """Fields of a ring to write, and fields to delete."""

    fields: Mapping[str, bytes]
    gone: Sequence[str] = field(default=())


class RedisRings:
    """The rings of one application. Raises StoreError."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store
        self._lease = store.key("history")

    def hold(self, writer: str) -> bool:
        """Acquires or renews the lease of this writer; False while another one holds it."""
        held = self._store.ask(
            "asking who writes the history",
            lambda client: client.eval(_HOLD, 1, self._lease, writer, _LEASE_MS),
            attempts_s=_ATTEMPTS_S,
        )
        return bool(held)

    def write(self, writer: str, changes: Mapping[str, RingChange]) -> bool:
        """Changes rings, by span; False, without a change, while another writer holds the lease."""
        keys = [self._store.key("history", span) for span in changes]
        arguments: list[str | int | bytes] = [writer, _LEASE_MS, _KEPT_MS]
        for change in changes.values():
            arguments.append(2 * len(change.fields))
            for name, value in change.fields.items():
                arguments += [name, value]
            arguments += [len(change.gone), *change.gone]
        done = self._store.ask(
            "writing the history",
            lambda client: client.eval(_WRITE, 1 + len(keys), self._lease, *keys, *arguments),
            attempts_s=_ATTEMPTS_S,
        )
        return bool(done)

    def release(self, writer: str) -> None:
        """Releases the lease, so that another one may write."""
        self._store.ask(
            "releasing the history",
            lambda client: client.eval(_RELEASE, 1, self._lease, writer),
            attempts_s=_ATTEMPTS_S,
        )

    def read(self, span: str) -> dict[bytes, bytes]:
        """All fields of a ring, of any writer."""

        def command(client: Client) -> dict[bytes, bytes]:
            found: dict[bytes, bytes] = client.hgetall(self._store.key("history", span))
            return found

        return self._store.ask("reading the history", command, attempts_s=_ATTEMPTS_S)
