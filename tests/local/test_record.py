"""The record of a suite: whose it is, and whether that process still runs."""

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from bettong.local.processes import Command, Process
from bettong.local.record import ProcessRecord, SuiteRecord, find, forget

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the mark is Linux's")


def record(owner: ProcessRecord) -> SuiteRecord:
    return SuiteRecord(
        application="app.py",
        name="app",
        schedule="resident",
        partitions=1,
        compiled=True,
        directory=Path(),
        results=None,
        kafka="",
        redis="",
        snapshots="redis",
        addresses={},
        ready=True,
        owner=owner,
        services={},
    )


@linux
def test_a_process_runs_also_after_the_clock_was_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    record(ProcessRecord.own()).write(tmp_path)
    original = psutil.Process.create_time
    monkeypatch.setattr(psutil.Process, "create_time", lambda process: original(process) + 3600.0)
    assert find(tmp_path) is not None


@linux
def test_a_process_with_the_id_of_one_that_has_ended_is_another_one(tmp_path: Path) -> None:
    own = ProcessRecord.own()
    boot, ticks = own.start_mark.split()
    assert own.runs()
    for mark in (f"{boot} {int(ticks) + 1}", f"another-boot {ticks}"):
        assert not own.model_copy(update={"start_mark": mark}).runs()
    process = Process(
        Command("a (b) c", (sys.executable, "-c", "import time; time.sleep(60)"), tmp_path / "log")
    )
    try:
        assert process.start_mark.startswith(boot)
        assert process.start_mark != own.start_mark
    finally:
        process.kill()


def test_a_suite_that_ends_leaves_the_record_of_another_one(tmp_path: Path) -> None:
    """Two that start at once in one folder: the second has written over the first one's."""
    folder = tmp_path / ".bettong"
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        owner = ProcessRecord(pid=other.pid, started_s=psutil.Process(other.pid).create_time())
        record(owner).write(folder)
        forget(folder)
        assert find(folder) is not None
        other.communicate(b"\n")
    record(ProcessRecord.own()).write(folder)
    forget(folder)
    assert not folder.exists()
    forget(folder)
