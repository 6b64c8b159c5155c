"""A suite whose disk is full goes on: its record is written later, a process is started later.

What goes wrong with one process is its trouble alone.
"""

import errno
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from bettong.errors import LocalError
from bettong.local.options import Restarts, SuiteOptions
from bettong.local.processes import Command
from bettong.local.record import ProcessRecord, SuiteRecord, find
from bettong.local.server import Server
from bettong.local.suite import Suite
from tests.waiting import eventually


class Fragile(Server):
    """Cannot be started as long as the disk is full."""

    full = True
    fault: Exception = OSError(28, "No space left on device")
    got_on = 0

    def prepare(self) -> None:
        if self.full:
            raise self.fault

    def progress(self) -> int:
        return self.got_on


def prepared(
    folder: Path, *, deaths_max: int = 5, say: Callable[[str], None] | None = None
) -> tuple[Suite, Fragile, list[str]]:
    said: list[str] = []
    options = SuiteOptions(application="app.py", restarts=Restarts(deaths_max=deaths_max, wait_s_max=0.0))
    suite = Suite(options, say=say or said.append)
    server = Fragile(Command("sender", ("sleep", "60"), folder / "log"), answers=lambda: True, start_s_max=1)
    suite._servers = {"sender": server}
    suite._record = SuiteRecord(
        application="app.py",
        name="app",
        schedule="micro-batch",
        partitions=1,
        compiled=True,
        directory=folder / "suite",
        results=None,
        kafka="",
        redis="",
        snapshots="redis",
        addresses={},
        ready=False,
        owner=ProcessRecord.own(),
        services={},
    )
    return suite, server, said


def test_a_record_that_cannot_be_written_is_reported_once_and_written_when_there_is_room(
    tmp_path: Path,
) -> None:
    suite, _, said = prepared(tmp_path)
    blocked = tmp_path / "suite"
    blocked.write_text("no folder can be here")
    suite._update_record(ready=True)
    suite._check_processes()
    (line,) = said
    assert "suite.json cannot be written" in line
    blocked.unlink()
    suite._check_processes()
    found = find(blocked)
    assert found is not None
    assert found.ready


def test_a_process_that_cannot_be_started_for_want_of_room_is_started_later(tmp_path: Path) -> None:
    suite, server, said = prepared(tmp_path)
    suite._restart_due_s["sender"] = 0.0
    suite._check_processes()
    assert (
        "sender cannot be started ([Errno 28] No space left on device) and is started again in 0 s" in said[0]
    )
    server.full = False
    suite._check_processes()
    try:
        assert server.process is not None
        assert psutil.pid_exists(server.process.pid)
        assert suite.record.services["sender"].restarts == 1
    finally:
        server.kill()


def test_deaths_before_it_got_on_do_not_count(tmp_path: Path) -> None:
    suite, server, _ = prepared(tmp_path, deaths_max=3)
    suite._restart_due_s["sender"] = 0.0
    for life in range(8):
        server.got_on = life // 2
        suite._check_processes()
    assert not suite.given_up
    for _ in range(4):
        suite._check_processes()
    assert suite.given_up


def test_it_is_not_tried_for_ever(tmp_path: Path) -> None:
    suite, _, said = prepared(tmp_path, deaths_max=3)
    suite._restart_due_s["sender"] = 0.0
    for _ in range(3):
        suite._check_processes()
    assert not suite.given_up
    suite._check_processes()
    suite._check_processes()
    assert "died 4 times with less than 30 s in between" in suite.given_up["sender"]
    assert "sender stopped for good, everything else runs on" in said[-1]


def test_a_process_that_cannot_be_made_ready_is_given_up_alone(tmp_path: Path) -> None:
    """As Kafka's, whose jars are gone."""
    suite, server, said = prepared(tmp_path, deaths_max=2)
    server.fault = LocalError("Kafka's jars are not in /jars: run `make setup`")
    suite._restart_due_s["sender"] = 0.0
    for _ in range(4):
        suite._check_processes()
    assert "sender cannot be started (Kafka's jars are not in /jars: run `make setup`)" in said[0]
    assert "run `make setup`" in suite.given_up["sender"]


def test_a_process_that_the_system_cannot_fork_is_started_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite, server, said = prepared(tmp_path)
    server.full = False
    suite._restart_due_s["sender"] = 0.0

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    with monkeypatch.context() as patched:
        patched.setattr(subprocess, "Popen", refuse)
        suite._check_processes()
    assert "Resource temporarily unavailable) and is started again in 0 s" in said[0]
    suite._check_processes()
    try:
        assert server.runs()
    finally:
        server.kill()


def test_a_process_that_died_and_whose_log_is_gone_is_started_again(tmp_path: Path) -> None:
    suite, server, said = prepared(tmp_path)
    server.full = False
    server.command = Command("sender", (sys.executable, "-c", ""), tmp_path / "log")
    server.launch()
    process = server.process
    assert process is not None
    eventually(lambda: process.ending, what="it has ended")
    (tmp_path / "log").unlink()
    suite._check_processes()
    assert "sender died (exit code 0; its last line: its log cannot be read:" in said[0]
    suite._check_processes()
    try:
        assert server.process is not process
    finally:
        server.kill()


def test_what_cannot_be_said_ends_nothing(tmp_path: Path) -> None:
    """The suite's own log lies on the same disk."""

    def refuse(_: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    suite, server, _ = prepared(tmp_path, say=refuse)
    suite._restart_due_s["sender"] = 0.0
    suite._check_processes()
    server.full = False
    suite._check_processes()
    try:
        assert server.runs()
    finally:
        server.kill()
