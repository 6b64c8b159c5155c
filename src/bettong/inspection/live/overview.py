"""Polls the overview of a deployment."""

from __future__ import annotations

from bettong.closing import Closing
from bettong.config.connection_settings import RedisConnection
from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.errors import StoreError
from bettong.inspection.overview import Overview, overview


class LiveOverview(Closing):
    """The overview of one deployment, over one connection to its Redis."""

    def __init__(self, application: str, redis: RedisConnection) -> None:
        self._store = RedisStore(redis, application)
        self._metrics = LiveMetrics(self._store)

    def now(self) -> Overview | None:
        """The newest overview; None while Redis is away."""
        try:
            return overview(self._metrics.live(), self._metrics.partitions())
        except StoreError:
            return None

    def close(self) -> None:
        """Closes the connections to Redis."""
        self._store.close()
