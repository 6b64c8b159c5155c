"""Keeps a schedule running: waits for Kafka, Redis and the lead, restarts after transient faults, reports its state.

    waiting ──> standby ──it leads──> running ──fault──> waiting ──> standby ...
                                         │
                                         ├── another processor leads ──> standby
                                         ├── stop requested ──> running work completes, then the schedule stops
                                         └── a fault that no restart mends ──> raises

A restart is always safe: offsets, snapshots and the delivery rule make it a replay.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException, StreamingQueryException

from bettong import metrics
from bettong.backoff import Backoff
from bettong.edges.redis_store import LiveMetrics, ttl_of
from bettong.errors import (
    LocalError,
    LogUnavailableError,
    ReferenceLoadError,
    SettingsError,
    StoreError,
    StoreUnavailableError,
    SupersededError,
)
from bettong.logs import Logger
from bettong.services import PROCESSOR
from bettong_processor.faults import Fault, fault_of
from bettong_processor.java import DEATH_S_MAX

# The longest pause before a restart; the first pauses are shorter.
_BACKOFF_S_MAX = 5.0
_BACKOFF_S_MIN = 1.0
# A run of this length has recovered: after its next fault the pauses start short again.
_HEALTHY_S = 30.0
_STOP_S_MAX = 20.0
# One wait for the lead; it returns at once when this process leads.
_LEAD_WAIT_S = 0.5
# One wait for Kafka or Redis. Waits are short and repeated without end, so that none of them delays a stop.
_WAIT_S = 2.0
# The reason of a wait is logged, and again after this long: a wait may last for hours.
_REPORT_AGAIN_S = 10.0


class Connection(Protocol):
    """A connection that a schedule needs: to Kafka or Redis."""

    def wait(self, deadline_s: float, on_wait: Callable[[str], None]) -> None:
        """Returns when it answers. Raises LogUnavailableError or StoreUnavailableError after `deadline_s`."""


class Lead(Protocol):
    """Which of several processors of the application leads, and so folds."""

    @property
    def leads(self) -> bool:
        """Whether this one leads. Raises when that can no longer be determined."""

    @property
    def leader(self) -> str:
        """The instance that leads; "" for none."""

    def wait(self, seconds: float) -> bool:
        """Waits until this one leads, at most `seconds`; whether it does."""


class Run(Protocol):
    """A running schedule on Spark, from its start to its end."""

    @property
    def name(self) -> str:
        """Its name in the log."""

    def waits_for(self) -> str:
        """One line for people about what keeps it from folding; "" while it folds. Must not raise."""

    def metrics(self) -> Mapping[str, str | float]:
        """Live metrics of all partitions together, by their names in `metrics`. Must not raise."""

    def ended(self, wait_s: float) -> bool:
        """Waits at most `wait_s` until it ends by itself; whether it has. Raises its error: then call `leave`."""

    def leave(self) -> None:
        """Ends what is left of it after it has ended by itself or raised; blocks for some seconds at most."""

    def stop(self, wait_s: float) -> None:
        """Lets running work complete, for at most `wait_s`, and stops."""


class StateReporter(Protocol):
    """Receives the supervisor's state every `interval_s`."""

    interval_s: float

    def report(
        self, state: str, detail: str = "", metric_values: Mapping[str, str | float] | None = None
    ) -> None:
        """Must not raise."""


@dataclass(slots=True)
class Live:
    """Writes the processor's live record; an unreachable store never stops the processor."""

    live_metrics: LiveMetrics
    instance: str
    log: Logger
    clock: Callable[[], float]
    interval_s: float
    _state: str = ""
    _since: float = 0.0

    def report(
        self, state: str, detail: str = "", metric_values: Mapping[str, str | float] | None = None
    ) -> None:
        """Writes state and metrics as a record that expires."""
        if state != self._state:
            self._state, self._since = state, self.clock()
        record: dict[str, str | int | float] = {
            metrics.SERVICE.name: PROCESSOR.name,
            metrics.STATE.name: state,
            metrics.SINCE.name: self._since,
            metrics.DETAIL.name: detail,
            **(metric_values or {}),
        }
        try:
            self.live_metrics.write_live(self.instance, record, ttl_of(self.interval_s))
        except StoreError as error:
            self.log.debug("live record not written", fault=str(error))


class Supervisor:
    """Runs one schedule until a stop is requested."""

    def __init__(
        self,
        *,
        start: Callable[[], Run],
        admin: Connection,
        store: Connection,
        lead: Lead,
        live: StateReporter,
        log: Logger,
        java_ended: Callable[[float], bool],
        wait_s_min: float = _BACKOFF_S_MIN,
    ) -> None:
        """`start` is called for each restart. `wait_s_min`: the least pause between two attempts of any kind.

        `java_ended` waits for the given seconds and returns whether Java has ended: then this process cannot restart
        the schedule.
        """
        self._start = start
        self._admin = admin
        self._store = store
        self._lead = lead
        self._live = live
        self._log = log
        self._java_ended = java_ended
        self._wait_s_min = wait_s_min
        self._stop = threading.Event()
        self._reported_s = float("-inf")

    def stop(self) -> None:
        """Requests a clean stop; safe in a signal handler. `run` returns soon after."""
        self._stop.set()

    def is_stopping(self) -> bool:
        """Whether a stop was requested."""
        return self._stop.is_set()

    def wait_for_parts(self) -> bool:
        """Waits for Kafka and Redis without a bound, and reports that. False if a stop was requested meanwhile.

        Raises LogError or StoreError where waiting does not help: a wrong address, a refused password.
        """
        for part in (self._admin, self._store):
            while not self._stop.is_set():
                try:
                    part.wait(_WAIT_S, self._report_waiting)
                    break
                except (LogUnavailableError, StoreUnavailableError) as error:
                    self._report_waiting(str(error))
                    self._stop.wait(self._wait_s_min)
        return not self._stop.is_set()

    def run(self) -> None:
        """Runs the schedule until `stop`. Raises errors that no restart mends: LogTruncatedError, PoisonError ..."""
        backoff = Backoff(self._wait_s_min, _BACKOFF_S_MAX)
        started = False
        while self.wait_for_parts() and self._wait_for_the_lead():
            started_s = time.monotonic()
            run: Run | None = None
            reason: list[str] = []
            missing: dict[str, str | float] = {}
            try:
                run = self._start()
                started = True
                self._log.info("schedule runs", run=run.name)
                if self._follow(run):
                    return
            except (LogUnavailableError, StoreUnavailableError) as error:
                self._report_waiting(str(error))
                _leave(run)
                self._stop.wait(self._wait_s_min)
                continue
            except ReferenceLoadError as error:
                self._log.error("nothing is folded: a reference table cannot be loaded", fault=str(error))
                reason, missing = [str(error)], {metrics.REFERENCES.name: str(error)}
            except SupersededError as error:
                self._log.warning("gives up the lead", reason=str(error))
                _leave(run)
                self._stop.wait(self._wait_s_min)  # until the lease shows the other leader
                continue
            except (PySparkException, Py4JError, ConnectionError) as error:
                fault = fault_of(str(error))
                if fault.final is not None:
                    self._live.report("stopping", fault.text)  # first, as the rest takes time
                    _leave(run)
                    raise fault.final(fault.text) from None
                if fault.is_without_spark or self._java_ended(DEATH_S_MAX):
                    raise _without_java() from None
                self._live.report("waiting", fault.text)
                _leave(run)
                if not started and not isinstance(error, StreamingQueryException):
                    raise SettingsError(
                        "Spark cannot start the schedule; are BETTONG_CHECKPOINT and BETTONG_KAFKA right?"
                        f" ({fault.text})"
                    ) from None
                self._log_fault(fault)
                reason = [fault.text]
            if time.monotonic() - started_s > _HEALTHY_S:
                backoff.reset()
            wait_s = backoff.next_s()
            self._live.report("waiting", "; ".join([*reason, f"starts again in {wait_s:.0f} s"]), missing)
            self._stop.wait(wait_s)

    def _wait_for_the_lead(self) -> bool:
        """Stands by until this processor leads. False if a stop was requested meanwhile."""
        said = False
        while not self._stop.is_set():
            if self._lead.wait(_LEAD_WAIT_S):
                return True
            if self._lead.leader:
                self._live.report(metrics.STANDBY, f"{self._lead.leader} is at work")
                if not said:
                    self._log.info("stands by", leader=self._lead.leader)
                    said = True
            if self._java_ended(0.0):
                raise _without_java()
        return False

    def _follow(self, run: Run) -> bool:
        """Reports live metrics until the run ends or another processor leads (False), or a stop is requested (True)."""
        while not self._stop.is_set():
            if not self._lead.leads:
                self._log.warning("another processor leads", leader=self._lead.leader)
                run.stop(_STOP_S_MAX)
                return False
            why = run.waits_for()
            self._live.report("waiting" if why else "running", why, metric_values=run.metrics())
            if run.ended(self._live.interval_s):
                run.leave()
                return False
            # If Java ended while a thread of the run was starting, neither the thread nor the run reports it.
            if self._java_ended(0.0):
                raise _without_java()
        self._live.report("stopping")
        run.stop(_STOP_S_MAX)
        self._log.info("schedule stopped", run=run.name)
        return True

    def _report_waiting(self, why: str) -> None:
        if time.monotonic() - self._reported_s >= _REPORT_AGAIN_S:
            self._reported_s = time.monotonic()
            self._log.warning("waiting", reason=why)
        self._live.report("waiting", why)

    def _log_fault(self, fault: Fault) -> None:
        self._log.error("schedule failed, starts again from where it was", fault=fault.text)


def _leave(run: Run | None) -> None:
    if run is not None:
        run.leave()


def _without_java() -> LocalError:
    return LocalError(
        "Spark's Java process ended, or its context: killed, or out of memory? Start the processor again: it goes on"
        " from its checkpoint, and nothing is lost"
    )
