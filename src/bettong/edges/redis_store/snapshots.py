"""Snapshots in Redis."""

from bettong.edges.redis_store.connection import Client, RedisStore
from bettong.errors import StoreError
from bettong.snapshots.store import SNAPSHOTS_KEPT

# The longest string that Redis takes (its proto-max-bulk-len); it closes the connection on a longer one.
SNAPSHOT_BYTES_MAX = 512 * 1024 * 1024

# Offsets as text, without leading zeros: Lua's numbers are doubles and would round them.
_BELOW = """
local function below(a, b) return #a < #b or (#a == #b and a < b) end
"""

# KEYS: the snapshots of a partition. ARGV: how many to keep. Apart from the data, which would be copied into Lua.
_TRIM = f"""{_BELOW}
local offsets = redis.call('HKEYS', KEYS[1])
table.sort(offsets, function(a, b) return below(b, a) end)
for place = tonumber(ARGV[1]) + 1, #offsets do redis.call('HDEL', KEYS[1], offsets[place]) end
"""

# KEYS: the snapshots of a partition. ARGV: the highest offset wanted, or nothing. One script, so that nobody
# replaces the snapshot between choosing and reading it.
_NEWEST = f"""{_BELOW}
local newest
for _, offset in ipairs(redis.call('HKEYS', KEYS[1])) do
  local wanted = ARGV[1] == '' or not below(ARGV[1], offset)
  if wanted and (not newest or below(newest, offset)) then newest = offset end
end
return newest and {{newest, redis.call('HGET', KEYS[1], newest)}}
"""


class RedisSnapshots:
    """A `SnapshotStore` in Redis. A snapshot holds at most 512 MiB, Redis' own limit. Raises StoreError."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store
        self._index = store.key("snapshots")

    def save(self, stage: str, partition: int, offset: int, data: bytes) -> None:
        """See SnapshotStore."""
        doing = f"saving the snapshot of {stage}/{partition} at {offset}"
        if len(data) > SNAPSHOT_BYTES_MAX:
            raise StoreError(
                f"{doing}: {len(data)} bytes, Redis takes at most {SNAPSHOT_BYTES_MAX};"
                " use more partitions, so that each has less state"
            )
        key = self._key(stage, partition)

        def command(client: Client) -> None:
            with client.pipeline(transaction=True) as together:
                together.hset(key, str(offset), data)
                together.eval(_TRIM, 1, key, str(SNAPSHOTS_KEPT))
                together.sadd(self._index, key)
                together.execute()

        self._store.ask(doing, command)

    def newest(self, stage: str, partition: int, *, at_most: int | None = None) -> tuple[int, bytes] | None:
        """See SnapshotStore."""
        limit = "" if at_most is None else str(at_most)
        found: list[bytes] | None = self._store.ask(
            f"reading the snapshot of {stage}/{partition}",
            lambda client: client.eval(_NEWEST, 1, self._key(stage, partition), limit),
        )
        return None if found is None else (int(found[0]), found[1])

    def offsets(self, stage: str, partition: int) -> list[int]:
        """See SnapshotStore."""
        found = self._store.ask(
            f"looking for snapshots of {stage}/{partition}",
            lambda client: client.hkeys(self._key(stage, partition)),
        )
        return sorted(int(offset) for offset in found)

    def clear(self) -> None:
        """See SnapshotStore."""

        def command(client: Client) -> None:
            keys = client.smembers(self._index)
            if keys:
                with client.pipeline(transaction=True) as together:
                    together.unlink(*keys)
                    together.srem(self._index, *keys)
                    together.execute()

        self._store.ask("clearing snapshots", command)

    def _key(self, stage: str, partition: int) -> str:
        return self._store.key("snapshot", f"{stage}/{partition}")
