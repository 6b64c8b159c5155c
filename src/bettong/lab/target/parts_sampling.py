"""Samples each second what a suite's receivers have counted of the parts of latencies."""

from __future__ import annotations

import time
from collections.abc import Callable

from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.errors import StoreError
from bettong.lab.latency_parts import PartsSample, totals
from bettong.local.record import SuiteRecord
from bettong.threads import BlockThread

# Receivers report twice a second.
_SAMPLE_S = 1.0
_REDIS_S_MAX = 1.0
_CLOSE_S_MAX = 20.0


class PartsSampling(BlockThread):
    """A context manager; inside, a thread samples. `samples`: by Unix time, none while Redis is away."""

    def __init__(self, record: Callable[[], SuiteRecord]) -> None:
        super().__init__("lab-latency-parts", close_s_max=_CLOSE_S_MAX)
        self.samples: list[PartsSample] = []
        self._record = record

    def _run(self) -> None:
        self._sample()
        while not self._stopping.wait(_SAMPLE_S):
            self._sample()
        self._sample()

    def _sample(self) -> None:
        record = self._record()
        # A new connection each time: Redis may be killed and paused meanwhile.
        with RedisStore(record.redis_connection, record.name) as store:
            try:
                found = totals(LiveMetrics(store).live(attempts_s=_REDIS_S_MAX))
            except StoreError:
                return
        self.samples.append(PartsSample(time.time(), found))
