"""A suite without a terminal: started by one command, ended by another.

`python -m bettong.local.background OPTIONS` is the process that runs it; its output goes to `logs/suite.log`.
The logs of earlier runs are kept as `suite.log.1`, the newest, to `suite.log.5`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from bettong.errors import BettongError, LocalError
from bettong.local.directories import claim
from bettong.local.interrupts import Terminated, terminable
from bettong.local.log_files import last_words
from bettong.local.options import SuiteOptions
from bettong.local.record import SuiteRecord, find
from bettong.local.suite import Suite
from bettong.local.supervision import final_error

_START_S_MAX = 240.0  # longer than a suite's own bound, so that its error message arrives first
_STOP_S_MAX = 120.0  # likewise
_POLL_S = 0.1
_WAIT_S = 3600.0

# A log says why its run ended, and users restart a suite a few times before they read it.
_LOGS_KEPT = 5


def up(options: SuiteOptions, directory: Path) -> SuiteRecord:
    """Starts a suite in `directory` that outlives this process; returns when all its processes answer.

    Raises LocalError when a suite runs there already, when the folder is not a suite's, or, with the last line of its
    log, when it cannot start; where a service ended for good, the error of that service's kind. An interrupt meanwhile
    stops the suite.
    """
    running = find(directory)
    if running is not None:
        raise LocalError(f"{running.name} runs in {directory} already: end it with `bettong down`")
    claim(directory)
    log = directory / "logs" / "suite.log"
    log.parent.mkdir(exist_ok=True)
    keep_log(log)
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "bettong.local.background", options.model_dump_json()],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        return _ready(process, directory, log)
    except BaseException:
        process.terminate()
        try:
            process.wait(_STOP_S_MAX)
        except subprocess.TimeoutExpired:
            process.kill()  # its own processes end with it
            process.wait()
        raise


def down(record: SuiteRecord) -> None:
    """Ends a suite and all its processes; returns when it has ended. Raises LocalError if it survives SIGKILL."""
    for number, wait_s in ((signal.SIGTERM, _STOP_S_MAX), (signal.SIGKILL, 10.0)):
        if record.owner.runs():
            os.kill(record.owner.pid, number)
        deadline = time.monotonic() + wait_s
        while record.owner.runs() and time.monotonic() < deadline:
            time.sleep(_POLL_S)
    if record.owner.runs():
        raise LocalError(f"process {record.owner.pid} of {record.name} survived SIGKILL: end it by hand")


def keep_log(log: Path) -> None:
    """Rotates the logs before a new run: the last run's becomes `.1`, `.1` becomes `.2`; the oldest is removed."""
    for number in range(_LOGS_KEPT, 0, -1):
        newer = log.with_name(f"{log.name}.{number - 1}") if number > 1 else log
        if newer.exists():
            newer.replace(log.with_name(f"{log.name}.{number}"))


def _ready(process: subprocess.Popen[bytes], directory: Path, log: Path) -> SuiteRecord:
    deadline = time.monotonic() + _START_S_MAX
    while time.monotonic() < deadline:
        record = find(directory)
        if record is not None and record.ready:
            return record
        if process.poll() is not None:
            raise final_error(process.returncode)(f"{last_words(log)} (the suite's log: {log})")
        time.sleep(_POLL_S)
    raise LocalError(f"not everything answers after {_START_S_MAX:g} s; see {log}")


def _say(line: str) -> None:
    print(datetime.now(UTC).isoformat(timespec="seconds"), line, flush=True)  # noqa: T201


def main(arguments: list[str]) -> int:
    """Runs a suite until SIGTERM, or until it fails."""
    try:
        with terminable(), Suite(SuiteOptions.model_validate_json(arguments[0]), say=_say) as suite:
            _say(f"{suite.record.name} runs")
            while True:
                suite.wait(_WAIT_S)
    except Terminated:
        _say("stopped")
        return 0
    except BettongError as error:
        print(error, flush=True)  # noqa: T201 - the last line: `up` repeats it
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
