"""Live metrics, written to Redis by a thread of their own: a slow or absent Redis never holds up a client."""

import math
import time
from collections.abc import Callable

from structlog.stdlib import BoundLogger

from bettong.edges.redis_store import LiveMetrics, ttl_of
from bettong.errors import StoreError
from bettong.threads import BlockThread

# The last record says that the sender stops; while Redis is away it is waited for no longer.
_CLOSE_S_MAX = 1.0
# In TTLs of the record: for so long after a write it has not expired, with a margin for clocks.
_LISTED_TTLS = 0.8

_ReadMetrics = Callable[[], dict[str, str | int | float]]


class LiveReport(BlockThread):
    """Writes `metrics()` under `instance` at entering, every `interval_s`, and once more at leaving."""

    def __init__(
        self,
        live: LiveMetrics,
        instance: str,
        metrics: _ReadMetrics,
        interval_s: float,
        logger: BoundLogger,
    ) -> None:
        """`metrics` is called in the report's thread."""
        super().__init__("live", close_s_max=_CLOSE_S_MAX)
        self._live = live
        self._instance = instance
        self._metrics = metrics
        self._interval_s = interval_s
        self._logger = logger
        self._absent = False
        self._listed_s = _LISTED_TTLS * ttl_of(interval_s)
        self._since_s = math.inf

    def listed_since_s(self) -> float | None:
        """Since when Redis has listed this sender without a gap, so that no repartition starts; by the monotonic clock.

        None while that is not certain. From any thread.
        """
        age_s = self._live.age_s()
        return self._since_s if age_s is not None and age_s < self._listed_s else None

    def _run(self) -> None:
        # At once: `bettong repartition` changes nothing while a sender is listed in Redis.
        self._write()
        while not self._stopping.wait(self._interval_s):
            self._write()
        self._write()

    def _write(self) -> None:
        age_s, begun_s, since_s = self._live.age_s(), time.monotonic(), self._since_s
        if age_s is None or 2 * age_s >= self._listed_s:
            self._since_s = math.inf  # until it is known whether the record had a gap
        try:
            self._live.write_live(self._instance, self._metrics(), ttl_of(self._interval_s))
        except StoreError as error:
            if not self._absent:
                self._logger.warning("live metrics cannot be written, ingest goes on", reason=str(error))
            self._absent = True
            self._since_s = since_s
        else:
            now_s = time.monotonic()
            had_gap = age_s is None or age_s + now_s - begun_s >= self._listed_s
            self._since_s = now_s if had_gap else since_s
            if self._absent:
                self._logger.info("live metrics are written again")
            self._absent = False
