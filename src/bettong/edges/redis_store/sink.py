"""Results in Redis, and the position up to which each partition's results are delivered."""

from collections.abc import Sequence

from bettong.edges.redis_store.connection import RedisStore

# KEYS: results, positions. ARGV: partition, position, the position before, "" for none, results_max, message...
# A script is atomic, as a transaction is, and can check first: repeating a delivery (its answer was lost) changes
# nothing. The position is written last, so that a failed command does not move it.
# Lua's stack holds about 8000 values, so messages are pushed in portions.
_DELIVER = """
local stored = redis.call('HGET', KEYS[2], ARGV[1])
if stored == ARGV[2] then return 1 end
if stored and stored ~= ARGV[3] then return 0 end
for first = 5, #ARGV, 1000 do
  redis.call('RPUSH', KEYS[1], unpack(ARGV, first, math.min(first + 999, #ARGV)))
end
redis.call('LTRIM', KEYS[1], -tonumber(ARGV[4]), -1)
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
return 1
"""


class RedisSink:
    """Receiver positions, and the newest results of each sink. Raises StoreError."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store

    def deliver(
        self,
        sink: str,
        partition: int,
        *,
        messages: Sequence[bytes],
        position: bytes,
        before: bytes | None = None,
        results_max: int,
    ) -> bool:
        """Appends `messages` to the sink's results, keeps the newest `results_max`, stores the position.

        Atomic. Does nothing when the stored position is `position` already, so that a delivery may be retried after a
        StoreError. `before`: the position that these messages follow, None for none. Returns False, and does nothing,
        when another one is stored: another receiver delivers, too, or Redis came back as it was earlier. When none is
        stored, Redis may have lost its data: the results are appended. `results_max` is for the whole sink, all
        partitions.
        """
        positions, results = self._keys(sink)
        arguments = (str(partition), position, before or b"", str(results_max), *messages[-results_max:])
        done = self._store.ask(
            f"delivering {len(messages)} result(s) of {sink}/{partition}",
            lambda client: client.eval(_DELIVER, 2, results, positions, *arguments),
        )
        return bool(done)

    def store_position(self, sink: str, partition: int, position: bytes) -> None:
        """Stores the position alone, whatever is stored."""
        positions, _ = self._keys(sink)
        self._store.ask(
            f"storing the position of {sink}/{partition}",
            lambda client: client.hset(positions, str(partition), position),
        )

    def position(self, sink: str, partition: int) -> bytes | None:
        """The last stored position; None when nothing was delivered yet."""
        positions, _ = self._keys(sink)
        position: bytes | None = self._store.ask(
            f"reading the position of {sink}/{partition}",
            lambda client: client.hget(positions, str(partition)),
        )
        return position

    def results(self, sink: str, *, newest: int) -> list[bytes]:
        """The newest stored results, at most `newest` (1 or more), oldest first."""
        _, results = self._keys(sink)
        return self._store.ask(
            f"reading results of {sink}", lambda client: client.lrange(results, -newest, -1)
        )

    def _keys(self, sink: str) -> tuple[str, str]:
        return self._store.key("positions", sink), self._store.key("results", sink)
