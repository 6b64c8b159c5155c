"""Positions in Redis, of destinations that store none. Written after the messages: a crash in between repeats these."""

from collections.abc import Iterable

from bettong.edges.redis_store import RedisSink
from bettong.errors import StoreError
from bettong_receiver.delivery.connector import ConnectorUnavailableError, SinkBatch
from bettong_receiver.progress import SinkPartition


class RedisPositions:
    """The positions of one destination. Raises ConnectorUnavailableError while Redis is unavailable."""

    def __init__(self, redis: RedisSink, field: str, name: str) -> None:
        """`field`: a name that no sink has. `name`: the destination, as error messages name it."""
        self._redis = redis
        self._field = field
        self._name = name

    def load(self, keys: Iterable[SinkPartition]) -> dict[SinkPartition, bytes | None]:
        """The position of each partition of the sink; None where none is stored."""
        try:
            return {key: self._redis.position(self._field, key.partition) for key in keys}
        except StoreError as error:
            raise self._unavailable(error) from None

    def save(self, batch: SinkBatch[bytes]) -> None:
        """Stores the position of a batch whose messages have arrived."""
        try:
            self._redis.store_position(self._field, batch.partition, batch.position())
        except StoreError as error:
            raise self._unavailable(error) from None

    def _unavailable(self, error: StoreError) -> ConnectorUnavailableError:
        return ConnectorUnavailableError(f"{self._name}: its positions: {error}")
