"""Snapshots in Redis."""

from bettong.edges.redis_store.connection import Client, RedisStore, check_size
from bettong.identifiers import PartitionId
from bettong.snapshots.chain import Increment, increments_of, superfluous


class RedisSnapshots:
    """A `SnapshotStore` in Redis. An increment holds at most 512 MiB, Redis's limit. Raises StoreError."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store
        self._index = store.key("snapshots")

    def save(self, partition: PartitionId, increment: Increment, data: bytes) -> None:
        """See SnapshotStore."""
        doing = f"saving the snapshot of {partition} at {increment.offset}"
        check_size(
            doing,
            data,
            "keep snapshots elsewhere (BETTONG_SNAPSHOTS): the log is folded once more from its beginning, and saved"
            " there. Then more partitions are possible (`bettong repartition`), of which Redis takes the snapshots"
            " again",
        )
        key = self._key(partition)

        def command(client: Client) -> None:
            with client.pipeline(transaction=True) as together:
                together.hset(key, increment.name, data)
                together.hkeys(key)
                together.sadd(self._index, key)
                _, names, _ = together.execute()
            # Deciding outside the transaction is safe: a superfluous increment stays superfluous.
            if old := superfluous(_increments(names)):
                client.hdel(key, *(each.name for each in old))

        self._store.ask(doing, command)

    def load(self, partition: PartitionId, increment: Increment) -> bytes | None:
        """See SnapshotStore."""
        found: bytes | None = self._store.ask(
            f"reading the snapshot of {partition} at {increment.offset}",
            lambda client: client.hget(self._key(partition), increment.name),
        )
        return found

    def increments(self, partition: PartitionId) -> list[Increment]:
        """See SnapshotStore."""
        names = self._store.ask(
            f"listing snapshots of {partition}",
            lambda client: client.hkeys(self._key(partition)),
        )
        return _increments(names)

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

    def _key(self, partition: PartitionId) -> str:
        return self._store.key("snapshot", str(partition))


def _increments(names: list[bytes]) -> list[Increment]:
    return increments_of(name.decode() for name in names)
