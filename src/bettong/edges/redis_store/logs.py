"""The ids of stages' topics at the last start of a processor: a topic that is deleted and made again gets another id.

| key                          | type | holds                       |
| ---------------------------- | ---- | --------------------------- |
| `bettong:{application}:logs`  | hash | topic of a stage -> its id  |

After Redis has lost its data no id is known until the next start.
"""

from collections.abc import Mapping

from bettong.edges.redis_store.connection import Client, RedisStore


class RedisLogs:
    """The topics of one application's stages. Raises StoreError."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store
        self._key = store.key("logs")

    def replaced(self, ids: Mapping[str, str]) -> set[str]:
        """The topics that were deleted and made again since `store_ids`. `ids`: their ids now."""
        known: dict[bytes, bytes] = self._store.ask(
            "reading the ids of topics", lambda client: client.hgetall(self._key)
        )
        return {topic for topic, id_ in ids.items() if known.get(topic.encode()) not in (None, id_.encode())}

    def store_ids(self, ids: Mapping[str, str]) -> None:
        """Stores the ids of topics; those of others stay."""

        def command(client: Client) -> None:
            client.hset(self._key, mapping=dict(ids))

        self._store.ask("storing the ids of topics", command)
