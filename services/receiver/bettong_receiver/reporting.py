"""Writes a receiver's live record to Redis while it runs, and measures its lag behind the log."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from bettong import metrics
from bettong.edges.kafka_log import LogAdmin
from bettong.edges.redis_store import LiveMetrics, ttl_of
from bettong.errors import LogError, StoreError
from bettong.logs import Logger
from bettong_receiver.delivery.tasks import SinkTasks
from bettong_receiver.room import Room
from bettong_receiver.status import ReceiverStatus, metrics_of
from bettong_receiver.subscriber_queues import note_lags, subscriber_values

# Each costs a request to the broker; people need the lag no more often.
_LAG_INTERVAL_S = 0.5
# For how long topic metadata is cached between requests for end offsets.
TOPICS_KNOWN_S = 5.0
# A broker that does not answer within this is reported as unavailable: reports must be accurate within 2 s.
LAG_WAIT_S_MAX = 1.5

_Metrics = dict[str, str | int | float]
_Result = TypeVar("_Result")


class Reporter:
    """Writes the live record until it is cancelled. An outage of Redis does not delay Kafka's part, nor vice versa."""

    def __init__(
        self,
        live: LiveMetrics,
        admin: LogAdmin,
        status: ReceiverStatus,
        log: Logger,
        *,
        instance: str,
        interval_s: float,
        tasks: SinkTasks,
        room: Room,
        topics: Mapping[str, str],
        extra: Callable[[], Mapping[str, str | int | float]],
    ) -> None:
        """`room`: the subscribers; `topics`: the topic of each sink; `extra`: further metrics for the same record."""
        self._live = live
        self._admin = admin
        self._status = status
        self._log = log
        self._instance = instance
        self._interval_s = interval_s
        self._tasks = tasks
        self._room = room
        self._topics = topics
        self._extra = extra
        self._lags: dict[str, int] = {}
        self._writes = True
        self._redis = ThreadPoolExecutor(max_workers=1, thread_name_prefix="live")
        self._kafka = ThreadPoolExecutor(max_workers=1, thread_name_prefix="lag")

    async def write(self) -> None:
        """Writes the record every interval."""
        while True:
            await self.write_once()
            await asyncio.sleep(self._interval_s)

    async def write_once(self) -> None:
        """Writes the record now."""
        metric_values: _Metrics = {**self._status.metrics(), **self._extra(), **self._tasks.queues()}
        metric_values |= subscriber_values(self._room, self._topics)
        if self._tasks.is_open:
            metric_values |= metrics_of(self._tasks.counts())
            metric_values |= self._tasks.metrics()
            metric_values[metrics.SKIPPED.name] = self._tasks.skipped()
        metric_values |= self._lags
        await _run_on(self._redis, lambda: self._write(metric_values))

    async def follow_lag(self) -> None:
        """Measures the lag regularly, which also shows whether Kafka is available.

        Start it once the tasks are open.
        """
        tasks = self._tasks
        topics = set(self._topics.values())
        while True:
            try:
                ends = await _run_on(self._kafka, lambda: self._admin.ends(topics))
            except LogError as error:
                self._status.set_waiting("Kafka", str(error))
                self._lags = {}
                note_lags(self._room, self._topics, None)
            else:
                self._status.clear_waiting("Kafka")
                self._lags = {metrics.LAG.name: metrics.lag(ends, tasks.offsets())} | {
                    f"{metrics.LAG.name}/{sink}": metrics.lag(ends, offsets)
                    for sink, offsets in tasks.destination_offsets().items()
                }
                note_lags(self._room, self._topics, ends)
            await asyncio.sleep(_LAG_INTERVAL_S)

    def close(self) -> None:
        """Closes the connection to Kafka and the threads. Does not wait for a running call, which has a time limit."""
        self._kafka.submit(self._admin.close)
        self._kafka.shutdown(wait=False)
        self._redis.shutdown(wait=False)

    def _write(self, metric_values: _Metrics) -> None:
        try:
            self._live.write_live(self._instance, metric_values, ttl_of(self._interval_s))
        except StoreError as error:
            if self._writes:
                self._log.warning(
                    "live record not written; not logged again until a write succeeds", fault=str(error)
                )
            self._writes = False
        else:
            self._writes = True


def _run_on(executor: ThreadPoolExecutor, call: Callable[[], _Result]) -> Awaitable[_Result]:
    return asyncio.get_running_loop().run_in_executor(executor, call)
