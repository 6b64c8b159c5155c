"""Versions of reference tables in Redis."""

from bettong.edges.redis_store.connection import RedisStore, check_size


class RedisVersions:
    """`snapshots.references.NamedBytes` in Redis: one hash per series. Raises StoreError."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store

    def put(self, folder: str, name: str, data: bytes) -> None:
        """See NamedBytes."""
        doing = f"saving {name} of reference table {folder}"
        remedy = "keep fewer rows in it, or snapshots and reference tables elsewhere (BETTONG_SNAPSHOTS)"
        check_size(doing, data, remedy)
        self._store.ask(
            doing,
            lambda client: client.hset(self._key(folder), name, data),
        )

    def get(self, folder: str, name: str) -> bytes | None:
        """See NamedBytes."""
        found: bytes | None = self._store.ask(
            f"reading {name} of reference table {folder}",
            lambda client: client.hget(self._key(folder), name),
        )
        return found

    def names(self, folder: str) -> list[str]:
        """See NamedBytes."""
        names = self._store.ask(
            f"listing versions of reference table {folder}",
            lambda client: client.hkeys(self._key(folder)),
        )
        return [name.decode() for name in names]

    def remove(self, folder: str, name: str) -> None:
        """See NamedBytes."""
        self._store.ask(
            f"deleting {name} of reference table {folder}",
            lambda client: client.hdel(self._key(folder), name),
        )

    def _key(self, folder: str) -> str:
        return self._store.key("reference", folder)
