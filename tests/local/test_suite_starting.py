"""A suite while it starts: other commands find it, and its owner can end it."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from bettong.errors import LocalError
from bettong.local import background, redis_server
from bettong.local.broker import KafkaBroker
from bettong.local.options import SuiteOptions
from bettong.local.record import SuiteRecord, find
from bettong.local.suite import Suite
from tests.waiting import eventually

APPLICATION = """
from dataclasses import dataclass

import bettong

@dataclass
class Number:
    number: int = 0

app = bettong.Application("starting")
app.source("numbers", schema=Number, key="number").sink("out")
"""


def written(folder: Path, text: str = APPLICATION) -> str:
    file = folder / "app.py"
    file.write_text(text)
    return str(file)


# It is loaded for half a minute, as one that waits for a server of the user's.
HANGS = """
import os, signal, time
os.kill(os.getpid(), signal.SIGINT)
time.sleep(30)
"""
SOON_S = 15.0  # much less than each of these would wait


@contextmanager
def interrupted() -> Iterator[None]:
    """What is inside is ended by Ctrl-C, soon."""
    began_s = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        yield
    assert time.monotonic() - began_s < SOON_S


def test_an_interrupt_ends_a_suite_whose_application_hangs_while_it_is_loaded(tmp_path: Path) -> None:
    with interrupted(), Suite(SuiteOptions(application=written(tmp_path, HANGS))):
        pass


def test_an_interrupt_ends_a_suite_that_waits_for_redis(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = threading.Event()

    def never_answers(*_: object) -> bool:
        asked.set()
        return False

    def interrupt() -> None:
        if asked.wait(SOON_S):
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(redis_server, "redis_answers", never_answers)
    presses = threading.Thread(target=interrupt)
    presses.start()
    try:
        with interrupted(), Suite(SuiteOptions(application=written(tmp_path), keep=tmp_path / "kept")):
            pass
    finally:
        presses.join()


class SlowFormat(KafkaBroker):
    """Its storage tool hangs, as on a machine that has no memory left."""

    def format_arguments(self) -> tuple[str, ...]:
        return ("unused",)


def test_a_broker_that_is_not_wanted_any_more_no_longer_waits_for_its_storage_tool(tmp_path: Path) -> None:
    (tmp_path / "kafka-server-1.jar").touch()
    java = tmp_path / "java"
    java.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/tool\nexec sleep 60\n")
    java.chmod(0o755)
    broker = SlowFormat(tmp_path / "kafka", jars=tmp_path)
    broker._java = str(java)

    def give_up() -> None:
        eventually((tmp_path / "tool").exists, what="the tool runs")
        broker.stopping.set()

    giver = threading.Thread(target=give_up)
    giver.start()
    began_s = time.monotonic()
    with pytest.raises(LocalError, match="kafka was ended while it started"):
        broker.launch()
    giver.join()
    assert time.monotonic() - began_s < SOON_S
    assert not broker.runs()


def test_one_in_the_background_that_does_not_end_in_time_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\ntrap '' TERM\necho $$ > {tmp_path}/pid\nexec sleep 60\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setattr(background, "_START_S_MAX", 3.0)
    monkeypatch.setattr(background, "_STOP_S_MAX", 1.0)
    with pytest.raises(LocalError, match="not everything answers after 3 s"):
        background.up(SuiteOptions(application="app.py"), tmp_path / "kept")
    assert not psutil.pid_exists(int((tmp_path / "pid").read_text()))


def test_one_whose_folder_is_removed_while_it_starts_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By `bettong down --remove` in another terminal."""
    kept = tmp_path / "kept"
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\nexec rm -r {kept}\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(LocalError, match=r"it was ended, and its folder removed \(the suite's log: "):
        background.up(SuiteOptions(application="app.py"), kept)


def test_a_suite_is_found_before_its_first_process_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, announced = tmp_path / "kept", tmp_path / "announced"
    found: list[SuiteRecord | None] = []
    monkeypatch.setattr(Suite, "_launch_all", lambda _: found.extend(map(find, (kept, announced))))
    with Suite(SuiteOptions(application=written(tmp_path), keep=kept, announce=announced)):
        pass
    for record in found:
        assert record is not None
        assert record.name == "starting"
        assert not record.ready
        assert not record.services
    assert find(kept) is None
