"""What ends no worker: a terminal's control-C, and a message that takes long, which the status names."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from bettong.chaos.spec import OtherProcess
from bettong.chaos.victims import processes
from bettong.cli.ending import end_well
from bettong.cli.exit_codes import NOT_RUNNING
from bettong.cli.main import app as command_line
from bettong.local.record import SuiteRecord
from tests.waiting import eventually

_REPORTED_S_MAX = 10.0


def interrupt_workers(record: SuiteRecord) -> None:
    """A terminal's control-C comes to workers, too, and is no message's failure."""
    workers = processes(OtherProcess.WORKER, record.services)
    assert workers
    for each in workers:
        each.send_signal(signal.SIGINT)


def await_named(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    """Soon the status of the suite in that folder names the message, sent just now, that holds up a partition."""
    monkeypatch.setenv("COLUMNS", "1000")

    def reported() -> bool:
        capsys.readouterr()
        code = end_well(command_line, ["status", "--dir", str(folder)], name="bettong")
        said = re.search(r"processor +waiting +.* \w+/\d is held up: (.*)", capsys.readouterr().out)
        return code == NOT_RUNNING and said is not None and f"{named}: folded for" in said[1]

    eventually(reported, seconds=_REPORTED_S_MAX, what="status names it")
