"""The rings of a console's history, kept beyond its process: of several consoles one writes them.

| key                                    | type   | holds                                                             |
| -------------------------------------- | ------ | ----------------------------------------------------------------- |
| `bettong:{application}:history:{span}`  | hash   | fields of one ring, as the console packs them; goes by itself     |
| `bettong:{application}:history`         | string | which console writes: a lease (`lease`)                           |

Best effort: a Redis that lost them has a hole where they were.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bettong.edges.redis_store.connection import Client, RedisStore
from bettong.edges.redis_store.lease import LEASE

# A console looks every 10 s where nobody does; another one goes on after this.
_LEASE_MS = 30_000
# An hour beyond the day that rings hold: what nobody writes is of no use then.
_KEPT_MS = 25 * 3600 * 1000
# A write that is late is made up for by the next one; it must not hang on a Redis that is away.
_ATTEMPTS_S = 0.3

# KEYS: the lease, rings. ARGV: who writes, ms of the lease, ms that rings are kept; of each ring the number of fields
# and values, these, the number of fields that go, and these. Whether it is the one that writes.
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

# KEYS: the lease. ARGV: who asks, ms of the lease. Whether it is the one that writes.
_HOLD = f"{LEASE} return hold(KEYS[1], ARGV[1], ARGV[2], true, false)"

# KEYS: the lease. ARGV: who gives it back.
_RELEASE = f"{LEASE} return release(KEYS[1], ARGV[1])"


@dataclass(frozen=True, slots=True)
class RingChange:
    """Fields of a ring that are written, and those that go."""

    fields: Mapping[str, bytes]
    gone: Sequence[str] = field(default=())


class RedisRings:
    """Of one application. Raises StoreError."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store
        self._lease = store.key("history")

    def hold(self, writer: str) -> bool:
        """Whether this one writes, from now on for the time of the lease: not while another one does."""
        held = self._store.ask(
            "asking who writes the history",
            lambda client: client.eval(_HOLD, 1, self._lease, writer, _LEASE_MS),
            attempts_s=_ATTEMPTS_S,
        )
        return bool(held)

    def write(self, writer: str, changes: Mapping[str, RingChange]) -> bool:
        """Changes rings, by span; False, and nothing is changed, while another one writes."""
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
        """Another one may write from now on."""
        self._store.ask(
            "giving the history back",
            lambda client: client.eval(_RELEASE, 1, self._lease, writer),
            attempts_s=_ATTEMPTS_S,
        )

    def read(self, span: str) -> dict[bytes, bytes]:
        """All fields of a ring, whoever wrote them."""

        def command(client: Client) -> dict[bytes, bytes]:
            found: dict[bytes, bytes] = client.hgetall(self._store.key("history", span))
            return found

        return self._store.ask("reading the history", command, attempts_s=_ATTEMPTS_S)
