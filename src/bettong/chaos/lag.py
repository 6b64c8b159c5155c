"""How far the processor is behind the log, polled again and again."""

from __future__ import annotations

import time
from collections.abc import Callable

from bettong.application.plan import Plan
from bettong.chaos.growth import Sample
from bettong.edges.kafka_log import LogAdmin
from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.errors import LogError, StoreError
from bettong.identifiers import PartitionId, in_use
from bettong.local.record import SuiteRecord
from bettong.metrics import OFFSET
from bettong.threads import BlockThread
from bettong.topics import stage_topic

_POLL_S = 5.0
_REDIS_S_MAX = 1.0
_CLOSE_S_MAX = 20.0


class LagWatch(BlockThread):
    """A context manager; inside, a thread polls every few seconds. `samples`: records not yet folded, by Unix time.

    While Kafka or Redis is away, or a partition has reported no offset, nothing is known, and nothing is noted.
    """

    def __init__(self, plan: Plan, record: Callable[[], SuiteRecord]) -> None:
        super().__init__("lag", close_s_max=_CLOSE_S_MAX)
        self.samples: list[Sample] = []
        self._plan = plan
        self._record = record

    def _run(self) -> None:
        while not self._stopping.wait(_POLL_S):
            record = self._record()
            # Asked anew each time: both are killed and paused now and then.
            with (
                LogAdmin(record.kafka_connection) as admin,
                RedisStore(record.redis_connection, record.name) as store,
            ):
                try:
                    lag = self._lag(admin, LiveMetrics(store), record.partitions)
                except (LogError, StoreError):
                    continue
            if lag is not None:
                self.samples.append(Sample(time.time(), lag))

    def _lag(self, admin: LogAdmin, live_metrics: LiveMetrics, partitions: int) -> float | None:
        name = self._plan.application
        stages = {stage_topic(name, stage.name): stage.name for stage in self._plan.stages}
        folded = live_metrics.partitions(attempts_s=_REDIS_S_MAX)
        lag = 0
        for (topic, partition), end in in_use(admin.ends(stages), partitions).items():
            offset = folded.get(PartitionId(stages[topic], partition), {}).get(OFFSET.name)
            if offset is None and end:
                return None
            lag += max(0, end - int(offset or 0))
        return lag
