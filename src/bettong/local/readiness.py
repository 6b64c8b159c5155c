"""Waits until all services of a started suite run, and explains which do not: for `bettong up` and `run`."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from bettong.errors import LocalError
from bettong.inspection.services import RUNNING, ServiceRow
from bettong.local.log_files import last_words
from bettong.local.record import SuiteRecord, find
from bettong.local.services import LATER
from bettong.metrics import STANDBY

# Every process answers already. Topics, partition assignment and destinations take another second or two; anything
# longer has a reason, which is reported rather than awaited.
_WAIT_S_MAX = 10.0
_POLL_S = 0.2


def await_running(read_record: Callable[[], SuiteRecord]) -> list[ServiceRow]:
    """The services that do not run, each with its reason, after at most 10 s; empty as soon as all run.

    `read_record` reads the suite's current record. The second processor and the console are not awaited: they start
    after all others answer.
    """
    from bettong.local.inspecting import inspect_suite

    deadline_s = time.monotonic() + _WAIT_S_MAX
    while True:
        rows = inspect_suite(read_record()).services
        waiting = [row for row in rows if row.state not in {RUNNING, STANDBY} and row.name not in LATER]
        ended = any(row.process is not None and row.process.final_status is not None for row in waiting)
        if not waiting or ended or time.monotonic() > deadline_s:
            return waiting
        time.sleep(_POLL_S)


def started_record(directory: Path) -> SuiteRecord:
    """The current record of the suite that `bettong up` has started in a folder.

    Raises LocalError, with the last line of its log, when it has ended.
    """
    record = find(directory)
    if record is None:
        log = directory / "logs" / "suite.log"
        raise LocalError(f"the suite has ended: {last_words(log)} (its log: {log})")
    return record


def lines(rows: list[ServiceRow]) -> list[str]:
    """A line to print for each service that does not run."""
    return [f"{row.name}: {row.state}: {row.detail or 'no reason reported'}" for row in rows]


def exit_code(rows: list[ServiceRow], otherwise: int) -> int:
    """The exit code of a service that ended for good, else `otherwise`."""
    codes = [row.process.final_status for row in rows if row.process is not None]
    return next((code for code in codes if code is not None), otherwise)
