"""The processor's supervisor: what it waits for, what it starts again after, and what ends it."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pytest
import structlog
from pyspark.errors import AnalysisException, StreamingQueryException

from bettong import metrics
from bettong.errors import (
    ApplicationError,
    BettongError,
    LogError,
    LogTruncatedError,
    LogUnavailableError,
    ReferenceLoadError,
    SettingsError,
    StoreError,
    StoreUnavailableError,
    SupersededError,
)
from bettong.logs import Logger
from bettong_processor.supervision import Supervisor
from tests.waiting import eventually


@dataclass
class Part:
    """Kafka or Redis: away for as many waits as there are `faults`."""

    faults: list[BettongError] = field(default_factory=list)
    asked: int = 0

    def wait(self, _deadline_s: float, _on_wait: Callable[[str], None]) -> None:
        self.asked += 1
        if self.faults:
            raise self.faults.pop(0)


@dataclass
class Reported:
    """What was reported, in order."""

    states: list[tuple[str, str]] = field(default_factory=list)
    metrics: dict[str, str | float] = field(default_factory=dict)
    interval_s: float = 0.01

    def report(
        self, state: str, detail: str = "", metric_values: Mapping[str, str | float] | None = None
    ) -> None:
        self.metrics.update(metric_values or {})
        if not self.states or self.states[-1] != (state, detail):
            self.states.append((state, detail))


@dataclass
class Run:
    """A schedule that runs until it is stopped, or ends at once with a fault."""

    fault: str | None = None
    stopped: bool = False
    name: str = "1"
    reason: str = ""
    left: bool = False

    def waits_for(self) -> str:
        return self.reason

    def metrics(self) -> Mapping[str, str | float]:
        return {}

    def ended(self, wait_s: float) -> bool:
        if self.fault is not None:
            raise StreamingQueryException(self.fault)
        threading.Event().wait(min(0.001, wait_s))
        return False

    def leave(self) -> None:
        self.left = True

    def stop(self, wait_s: float) -> None:
        assert wait_s > 0
        self.stopped = True


@dataclass
class Lead:
    """Who leads, as the test wants it."""

    leads: bool = True
    leader: str = "here"

    def wait(self, seconds: float) -> bool:
        threading.Event().wait(min(0.001, seconds))
        return self.leads


@pytest.fixture
def log() -> Logger:
    logger: Logger = structlog.get_logger()
    return logger


class Running:
    """A supervisor in a thread, over attempts to start: each a run, or what the attempt raises."""

    def __init__(
        self,
        log: Logger,
        attempts: list[Run | Exception],
        kafka: Part | None = None,
        redis: Part | None = None,
        lead: Lead | None = None,
    ) -> None:
        self.reported, self.kafka, self.redis = Reported(), kafka or Part(), redis or Part()
        self.attempts = attempts
        self.lead = lead or Lead()
        self.error: BaseException | None = None
        self.java_ended = False
        self.supervisor = Supervisor(
            start=self._start,
            admin=self.kafka,
            store=self.redis,
            lead=self.lead,
            live=self.reported,
            log=log,
            java_ended=lambda _wait_s: self.java_ended,
            wait_s_min=0.01,
        )
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def end(self) -> BaseException | None:
        """Asks for a stop; what the supervisor raised."""
        self.supervisor.stop()
        return self.ended()

    def ended(self) -> BaseException | None:
        """Waits for the end; what the supervisor raised."""
        self._thread.join(10)
        assert not self._thread.is_alive()
        return self.error

    def runs(self) -> bool:
        return bool(self.reported.states) and self.reported.states[-1][0] == "running"

    def _start(self) -> Run:
        attempt = self.attempts.pop(0)
        if isinstance(attempt, Exception):
            raise attempt
        return attempt

    def _run(self) -> None:
        try:
            self.supervisor.run()
        except BettongError as error:
            self.error = error


def test_it_waits_for_kafka_and_redis_says_so_and_runs_when_they_are_there(log: Logger) -> None:
    run = Run()
    running = Running(
        log,
        [run],
        kafka=Part([LogUnavailableError("no Kafka")]),
        redis=Part([StoreUnavailableError("no Redis")] * 2),
    )
    eventually(running.runs)
    assert running.end() is None
    assert run.stopped
    assert running.reported.states == [
        ("waiting", "no Kafka"),
        ("waiting", "no Redis"),
        ("running", ""),
        ("stopping", ""),
    ]


@pytest.mark.parametrize("error", [LogError("no port"), StoreError("wrong password")])
def test_what_waiting_does_not_mend_ends_it_at_once(log: Logger, error: BettongError) -> None:
    part = Part([error])
    kafka, redis = (part, Part()) if isinstance(error, LogError) else (Part(), part)
    assert Running(log, [], kafka=kafka, redis=redis).ended() is error
    assert part.asked == 1


def test_it_pauses_between_two_waits(log: Logger) -> None:
    """An address that is refused at once is not asked thousands of times a second."""
    kafka = Part([LogUnavailableError("refused")] * 1_000_000)
    running = Running(log, [], kafka=kafka)
    eventually(lambda: kafka.asked >= 3)
    before, began = kafka.asked, time.monotonic()
    eventually(lambda: kafka.asked >= before + 5)
    assert time.monotonic() - began > 4 * 0.01
    assert running.end() is None


@pytest.mark.parametrize("error", [LogUnavailableError("no Kafka"), StoreUnavailableError("no Redis")])
def test_a_part_that_goes_away_while_the_query_starts_is_waited_for(log: Logger, error: Exception) -> None:
    running = Running(log, [error, error, Run()])
    eventually(running.runs)
    assert ("waiting", str(error)) in running.reported.states
    assert running.end() is None


def test_while_a_table_cannot_be_loaded_nothing_runs_and_it_is_said(log: Logger) -> None:
    why = "reference table 'prices': load() failed: OSError: no such file"
    running = Running(log, [ReferenceLoadError(why), ReferenceLoadError(why), Run()])
    eventually(running.runs, what="it runs")
    assert running.end() is None
    (said, *_) = [detail for state, detail in running.reported.states if state == "waiting"]
    assert said == f"{why}; starts again in 0 s"
    assert running.reported.metrics == {metrics.REFERENCES.name: why}


def test_topics_of_another_shape_end_it(log: Logger) -> None:
    error = LogError("topic a.stage.b has 4 partitions, expected 2; set BETTONG_PARTITIONS to 4")
    assert Running(log, [error]).ended() is error


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("LogTruncatedError", LogTruncatedError),
        ("ApplicationError", ApplicationError),
        ("SettingsError", SettingsError),
    ],
)
def test_a_fault_that_no_start_mends_is_raised_as_what_it_is(
    log: Logger, name: str, kind: type[BettongError]
) -> None:
    run = Run(f"Traceback\nbettong.errors.{name}: this is wrong\n")
    running = Running(log, [run])
    error = running.ended()
    assert running.reported.states[-1] == ("stopping", f"{name}: this is wrong")
    assert run.left
    assert type(error) is kind
    assert "this is wrong" in str(error)


def test_after_a_passing_fault_it_starts_again(log: Logger) -> None:
    running = Running(log, [Run("java.io.IOException: connection reset"), Run("x"), Run()])
    eventually(running.runs)
    eventually(lambda: not running.attempts and running.runs())
    assert running.end() is None
    assert any(
        state == "waiting" and "connection reset; starts again" in detail
        for state, detail in running.reported.states
    )


def test_what_spark_refuses_at_the_first_start_is_a_matter_of_settings(log: Logger) -> None:
    error = Running(log, [AnalysisException("checkpoint: Permission denied")]).ended()
    assert isinstance(error, SettingsError)
    assert "Permission denied" in str(error)
    assert "BETTONG_CHECKPOINT" in str(error)


def test_what_spark_refuses_later_is_tried_again(log: Logger) -> None:
    running = Running(log, [Run("x"), AnalysisException("for now"), Run()])
    eventually(lambda: not running.attempts and running.runs())
    assert running.end() is None


def test_a_stop_ends_a_wait(log: Logger) -> None:
    running = Running(log, [], redis=Part([StoreUnavailableError("no Redis")] * 1_000_000))
    eventually(lambda: running.redis.asked > 1)
    assert running.end() is None
    assert running.attempts == []


def test_what_a_run_waits_for_is_reported_until_it_goes_on(log: Logger) -> None:
    run = Run(reason="no executor")
    running = Running(log, [run])
    eventually(lambda: running.reported.states[-1:] == [("waiting", "no executor")])
    run.reason = ""
    eventually(running.runs)
    assert running.end() is None


def test_a_java_that_ends_is_noticed_though_the_run_says_nothing(log: Logger) -> None:
    running = Running(log, [Run()])
    eventually(running.runs)
    running.java_ended = True
    assert "Java process ended" in str(running.ended())


def test_one_of_two_stands_by_until_it_leads_and_stands_by_again_when_another_does(log: Logger) -> None:
    first, second = Run(), Run()
    running = Running(log, [first, second], lead=Lead(leads=False, leader="other"))
    eventually(lambda: running.reported.states[-1:] == [("standby", "other is at work")])
    assert len(running.attempts) == 2
    running.lead.leads = True
    eventually(running.runs)
    running.lead.leads = False
    eventually(lambda: running.reported.states[-1:] == [("standby", "other is at work")])
    assert first.stopped
    running.lead.leads = True
    eventually(lambda: not running.attempts)
    assert running.end() is None


def test_a_run_that_was_superseded_waits_for_the_lead(log: Logger) -> None:
    running = Running(log, [SupersededError("another has begun"), Run()])
    eventually(running.runs)
    assert running.end() is None


def test_who_stands_by_notices_that_its_java_ended(log: Logger) -> None:
    running = Running(log, [], lead=Lead(leads=False))
    running.java_ended = True
    assert "Java process ended" in str(running.ended())
