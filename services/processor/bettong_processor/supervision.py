"""Keeps a schedule running: waits for what is missing, starts again after passing faults, reports its state.

    waiting ──> standby ──it leads──> running ──fault──> waiting ──> standby ...
                                         │
                                         ├── another processor leads ──> standby
                                         ├── stop asked for ──> what is at work ends, then the schedule stops
                                         └── a fault that no new start mends ──> raises

Starting again is always safe: offsets, snapshots and the delivery rule make it a replay.
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

# Restarts wait this long at most; the first ones come sooner.
_BACKOFF_S_MAX = 5.0
_BACKOFF_S_MIN = 1.0
# A query that ran this long has recovered: the next fault starts with a short wait again.
_HEALTHY_S = 30.0
_STOP_S_MAX = 20.0
# One wait for the lead; it ends at once when there is something to lead.
_LEAD_WAIT_S = 0.5
# One wait for Kafka or Redis. Waits are repeated without end, in pieces, so that a stop is not held up by one.
_WAIT_S = 2.0
# What is waited for is said once, and again after this long: a wait may last for hours.
_SAY_AGAIN_S = 10.0


class Connection(Protocol):
    """What a schedule needs: Kafka or Redis."""

    def wait(self, deadline_s: float, on_wait: Callable[[str], None]) -> None:
        """Returns when it answers. Raises Log- or StoreUnavailableError when it did not for `deadline_s`."""


class Lead(Protocol):
    """Which of several processors of the application is to fold."""

    @property
    def leads(self) -> bool:
        """Whether it is this one. Raises when nobody knows any more."""

    @property
    def leader(self) -> str:
        """The instance that it is; "" for nobody."""

    def wait(self, seconds: float) -> bool:
        """Whether it is this one; waits that long for it."""


class Run(Protocol):
    """A schedule at work on Spark, from its start to its end."""

    @property
    def name(self) -> str:
        """For the log."""

    def waits_for(self) -> str:
        """What keeps it from folding, in a line for people; "" while it folds. Must not raise."""

    def metrics(self) -> Mapping[str, str | float]:
        """Live metrics of the whole, by their names in `metrics`. Must not raise."""

    def ended(self, wait_s: float) -> bool:
        """Whether it has ended by itself; waits for that. Raises what it failed by, at once: then `leave` it."""

    def leave(self) -> None:
        """Releases what is left of it after it has ended by itself; blocks for some seconds at most."""

    def stop(self, wait_s: float) -> None:
        """Lets what is at work end, for at most `wait_s`, and stops."""


class StateReporter(Protocol):
    """Where the supervisor reports how it goes, every `interval_s`."""

    interval_s: float

    def report(
        self, state: str, detail: str = "", metric_values: Mapping[str, str | float] | None = None
    ) -> None:
        """Must not raise."""


@dataclass(slots=True)
class Live:
    """Writes the processor's live record; a store that is away never stops the processor."""

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
        """Writes state and metrics, as a record that goes by itself."""
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
    """Runs one schedule until it is asked to stop."""

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
        """`start` is called again and again. `wait_s_min`: between two attempts of whatever kind.

        `java_ended` waits for so many seconds and says whether Java has ended: without it there is no new start in
        this process.
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
        self._said_s = float("-inf")

    def stop(self) -> None:
        """Asks for a clean stop; safe in a signal handler. `run` returns soon after."""
        self._stop.set()

    def is_stopping(self) -> bool:
        """Whether a stop was asked for."""
        return self._stop.is_set()

    def wait_for_parts(self) -> bool:
        """Waits for Kafka and Redis for as long as it takes, saying so. False: asked to stop meanwhile.

        Raises LogError or StoreError for what waiting does not mend: a wrong address, a refused password.
        """
        for part in (self._admin, self._store):
            while not self._stop.is_set():
                try:
                    part.wait(_WAIT_S, self._waiting)
                    break
                except (LogUnavailableError, StoreUnavailableError) as error:
                    self._waiting(str(error))
                    self._stop.wait(self._wait_s_min)
        return not self._stop.is_set()

    def run(self) -> None:
        """Runs the schedule until `stop`. Raises what no new start would mend: LogTruncatedError, PoisonError ..."""
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
                self._waiting(str(error))
                _leave(run)
                self._stop.wait(self._wait_s_min)
                continue
            except ReferenceLoadError as error:
                self._log.error("nothing is folded: a reference table has no version yet", fault=str(error))
                reason, missing = [str(error)], {metrics.REFERENCES.name: str(error)}
            except SupersededError as error:
                self._log.warning("gives up the lead", reason=str(error))
                _leave(run)
                self._stop.wait(self._wait_s_min)  # until the lead says so too
                continue
            except (PySparkException, Py4JError, ConnectionError) as error:
                fault = fault_of(str(error))
                if fault.final is not None:
                    self._live.report("stopping", fault.text)  # before anything that takes time
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
        """Waits until this processor is the one to fold, ready for it. False: asked to stop meanwhile."""
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
        """Reports live metrics until the run ends (False), another leads (False), or a stop is asked for (True)."""
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
            # A thread that Java left while it began says nothing, and neither does its run.
            if self._java_ended(0.0):
                raise _without_java()
        self._live.report("stopping")
        run.stop(_STOP_S_MAX)
        self._log.info("schedule stopped", run=run.name)
        return True

    def _waiting(self, why: str) -> None:
        if time.monotonic() - self._said_s >= _SAY_AGAIN_S:
            self._said_s = time.monotonic()
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
