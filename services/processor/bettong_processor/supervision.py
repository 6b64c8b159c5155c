"""Keeps the query running: waits for what is missing, starts again after passing faults, tells how it goes.

    waiting ──> running ──fault──> waiting ──> running ...
                   │
                   ├── stop asked for ──> the batch at work ends, then the query stops
                   └── a fault that no new start mends ──> raises

Starting again is always safe: the checkpoint and the delivery rule make it a replay.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from bettong import metrics
from bettong.edges.kafka_log import LogAdmin
from bettong.edges.redis_store import LiveFigures, RedisStore
from bettong.errors import LogError, LogHoleError, StoreError
from bettong.logs import Logger
from bettong_processor.faults import Fault, fault_of

# Restarts wait this long at most; the first ones come sooner.
_BACKOFF_S_MAX = 10.0
# A query that ran this long has recovered: the next fault starts with a short wait again.
_HEALTHY_S = 60.0
_STOP_S_MAX = 20.0
# One wait for Kafka or Redis; waits are repeated, and said again, for as long as it takes.
_WAIT_S = 30.0


@dataclass(slots=True)
class Live:
    """Writes the processor's live record; a store that is away never stops the processor."""

    figures: LiveFigures
    instance: str
    log: Logger
    clock: Callable[[], float]
    interval_s: float
    _state: str = ""
    _since: float = 0.0

    def tell(self, state: str, detail: str = "", figures: Mapping[str, str | float] | None = None) -> None:
        """Writes state and figures, with a time to live of a few intervals."""
        if state != self._state:
            self._state, self._since = state, self.clock()
        record: dict[str, str | int | float] = {
            metrics.STATE.name: state,
            metrics.SINCE.name: self._since,
            metrics.DETAIL.name: detail,
            **(figures or {}),
        }
        try:
            self.figures.write_live(self.instance, record, max(10.0, 10 * self.interval_s))
        except StoreError as error:
            self.log.debug("live record not written", fault=str(error))


class Supervisor:
    """Runs one query until it is asked to stop."""

    def __init__(
        self,
        *,
        start: Callable[[], StreamingQuery],
        admin: LogAdmin,
        store: RedisStore,
        live: Live,
        log: Logger,
    ) -> None:
        self._start = start
        self._admin = admin
        self._store = store
        self._live = live
        self._log = log
        self._stop = threading.Event()

    def stop(self) -> None:
        """Asks for a clean stop; safe in a signal handler. `run` returns soon after."""
        self._stop.set()

    def wait_for_parts(self) -> bool:
        """Waits for Kafka and Redis for as long as it takes, saying so. False: asked to stop meanwhile."""
        for part in (self._admin, self._store):
            while not self._stop.is_set():
                try:
                    part.wait(_WAIT_S, self._waiting)
                    break
                except (LogError, StoreError) as error:
                    self._waiting(str(error))
        return not self._stop.is_set()

    def run(self) -> None:
        """Runs the query until `stop`. Raises LogHoleError and what else no new start would mend."""
        backoff_s = 1.0
        while self.wait_for_parts():
            started = time.monotonic()
            try:
                query = self._start()
                self._log.info("query runs", query=str(query.id))
                if self._follow(query):
                    return
            except StreamingQueryException as error:
                fault = fault_of(str(error))
                if fault.final:
                    raise LogHoleError(fault.text) from None
                self._log_fault(fault)
            if time.monotonic() - started > _HEALTHY_S:
                backoff_s = 1.0
            self._live.tell("waiting", f"starts again in {backoff_s:.0f} s")
            self._stop.wait(backoff_s)
            backoff_s = min(_BACKOFF_S_MAX, 2 * backoff_s)

    def _follow(self, query: StreamingQuery) -> bool:
        """Tells live figures until the query ends (False) or a stop is asked for (True)."""
        while not self._stop.is_set():
            self._live.tell("running", figures=figures_of(query.lastProgress))
            self._log.debug("progress", **durations_of(query.lastProgress))
            if query.awaitTermination(timeout=max(1, round(self._live.interval_s))):
                return False
        self._live.tell("stopping")
        deadline = time.monotonic() + _STOP_S_MAX
        while query.status["isTriggerActive"] and time.monotonic() < deadline:
            time.sleep(0.02)
        query.stop()
        self._log.info("query stopped")
        return True

    def _waiting(self, why: str) -> None:
        self._log.warning("waiting", reason=why)
        self._live.tell("waiting", why)

    def _log_fault(self, fault: Fault) -> None:
        self._log.error("query failed, starts again from its checkpoint", fault=fault.text)


def figures_of(progress: Mapping[str, object] | None) -> dict[str, str | float]:
    """Live figures of Spark's last progress report; none before the first."""
    if not progress:
        return {}
    durations = progress.get("durationMs")
    figures: dict[str, str | float] = {metrics.BATCH.name: str(progress["batchId"])}
    if isinstance(durations, Mapping):
        figures[metrics.BATCH_MS.name] = float(durations.get("triggerExecution", 0))
    sources = progress.get("sources")
    if isinstance(sources, list) and sources:
        figures[metrics.LAG.name] = lag_of(sources[0])
    return figures


def durations_of(progress: Mapping[str, object] | None) -> dict[str, object]:
    """Where the time of the last batch went, in ms, as Spark names it."""
    durations = progress.get("durationMs") if progress else None
    return {"batch": progress["batchId"], **durations} if progress and isinstance(durations, Mapping) else {}


def lag_of(source: Mapping[str, object]) -> int:
    """Records in the log beyond the last batch, by a source's progress: {topic: {partition: offset}}."""
    latest, end = source.get("latestOffset"), source.get("endOffset")
    if not isinstance(latest, Mapping) or not isinstance(end, Mapping):
        return 0
    return sum(
        int(offset) - int(end.get(topic, {}).get(partition, 0))
        for topic, offsets in latest.items()
        for partition, offset in offsets.items()
    )
