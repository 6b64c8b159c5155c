"""Polls how far the processor is behind the log."""

from __future__ import annotations

import time
from collections.abc import Callable

from bettong.application.plan import Plan
from bettong.chaos.growth import Sample
from bettong.chaos.log_position import LogPosition, lags
from bettong.edges.kafka_log import LogAdmin
from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.errors import LogError, StoreError
from bettong.identifiers import PartitionId, in_use
from bettong.local.record import SuiteRecord
from bettong.metrics import MESSAGES, OFFSET
from bettong.threads import BlockThread
from bettong.topics import stage_topic

POLL_S = 5.0
_REDIS_S_MAX = 1.0
_CLOSE_S_MAX = 20.0


class LagWatch(BlockThread):
    """A context manager; inside, a thread polls every few seconds. `positions`: its samples, by Unix time.

    There are no samples while Kafka or Redis is away, or a partition has reported no offset.
    """

    def __init__(self, plan: Plan, record: Callable[[], SuiteRecord], *, every_s: float = POLL_S) -> None:
        super().__init__("lag", close_s_max=_CLOSE_S_MAX)
        self.positions: list[LogPosition] = []
        self._plan = plan
        self._record = record
        self._every_s = every_s

    @property
    def samples(self) -> list[Sample]:
        """Records not yet folded."""
        return lags(self.positions)

    def _run(self) -> None:
        while not self._stopping.wait(self._every_s):
            record = self._record()
            # A new connection each time: both are killed and paused now and then.
            with (
                LogAdmin(record.kafka_connection) as admin,
                RedisStore(record.redis_connection, record.name) as store,
            ):
                try:
                    position = self._position(admin, LiveMetrics(store), record.partitions)
                except (LogError, StoreError):
                    continue
            if position is not None:
                self.positions.append(position)

    def _position(self, admin: LogAdmin, live_metrics: LiveMetrics, partitions: int) -> LogPosition | None:
        name = self._plan.application
        stages = {stage_topic(name, stage.name): stage.name for stage in self._plan.stages}
        reported = live_metrics.partitions(attempts_s=_REDIS_S_MAX)
        lag = written = folded = 0
        for (topic, partition), end in in_use(admin.ends(stages), partitions).items():
            values = reported.get(PartitionId(stages[topic], partition), {})
            offset = values.get(OFFSET.name)
            if offset is None and end:
                return None
            lag += max(0, end - int(offset or 0))
            written += end
            folded += int(values.get(MESSAGES.name, 0))
        return LogPosition(time.time(), lag, written, folded)
