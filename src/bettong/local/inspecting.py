"""Inspects a suite on this machine: its processes, and their live records."""

from __future__ import annotations

from pathlib import Path

from bettong.closing import Closing
from bettong.errors import LocalError
from bettong.inspection.deployment import Inspection, inspection
from bettong.inspection.live.deployment import ask
from bettong.inspection.live.watch import LiveWatch
from bettong.inspection.reason_counts import ReasonCounts
from bettong.inspection.services import ProcessFacts, local_rows
from bettong.local.record import SuiteRecord, find


def inspect_suite(record: SuiteRecord) -> Inspection:
    """The state of a suite on this machine. Does not raise when Kafka or Redis is unreachable."""
    answers = ask(record.name, record.redis_connection, record.kafka_connection, redis_may_be_away=True)
    return inspection(record.name, local_rows(answers.live, processes_of(record), answers.silent), answers)


def processes_of(record: SuiteRecord) -> dict[str, ProcessFacts]:
    """The current state of a suite's processes."""
    return {
        name: ProcessFacts(
            each.pid,
            each.started_s,
            each.restarts,
            each.runs(),
            str(each.log),
            fault=each.fault,
            final_status=each.final_status,
        )
        for name, each in record.services.items()
    }


class SuiteWatch(Closing):
    """A `DeploymentWatch` of whichever suite runs in a folder: one may end, and another one start."""

    def __init__(self, directory: Path, *, frame_bytes_max: int) -> None:
        """Does not connect yet."""
        self._directory = directory
        self._frame_bytes_max = frame_bytes_max
        self._suite: tuple[SuiteRecord, LiveWatch] | None = None

    def inspect(self) -> Inspection:
        """See DeploymentWatch. Raises LocalError while nothing runs there."""
        record, live = self._current()
        answers = live.answers()
        rows = local_rows(answers.live, processes_of(record), answers.silent)
        return inspection(record.name, rows, answers)

    def reasons(self, seconds: float) -> ReasonCounts | None:
        """See DeploymentWatch. Raises LocalError while nothing runs there."""
        return self._current()[1].reasons(seconds)

    def close(self) -> None:
        """See DeploymentWatch."""
        if self._suite is not None:
            self._suite[1].close()
            self._suite = None

    def _current(self) -> tuple[SuiteRecord, LiveWatch]:
        record = find(self._directory)
        if record is None:
            self.close()
            raise LocalError(f"nothing runs in {self._directory} (bettong up APP.py)")
        if self._suite is not None and _is_elsewhere(self._suite[0], record):
            self.close()
        live = (
            self._suite[1]
            if self._suite is not None
            else LiveWatch(
                record.name,
                record.redis_connection,
                record.kafka_connection,
                frame_bytes_max=self._frame_bytes_max,
            )
        )
        self._suite = record, live
        return self._suite


def _is_elsewhere(before: SuiteRecord, now: SuiteRecord) -> bool:
    """Whether another suite runs there now, with another Kafka and Redis."""
    return before.owner != now.owner or before.name != now.name
