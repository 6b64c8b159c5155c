"""A whole suite through its command: it comes up, is kept up, and leaves nothing behind, whatever ends it."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from bettong.cli.ending import end_well
from bettong.cli.main import app as command_line
from bettong.errors import LocalError
from bettong.local.log_files import LOG_BYTES_MAX, numbered
from bettong.local.options import SuiteOptions
from bettong.local.record import SuiteRecord, find
from bettong.local.suite import Suite
from tests.looked_at import has_ended, words_of
from tests.waiting import eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # whole suites, also on a busy machine

APPLICATION = Path(__file__).parents[2] / "examples" / "word_count.py"
CHANGING = """
from dataclasses import dataclass
import bettong

@dataclass
class Number:
    number: bettong.i64

@dataclass
class Sum:
    total: int = 0

@bettong.compiled
def add(number: Number, kept: Sum) -> Number:
    {body}
    return number

app = bettong.Application("changing")
app.source("numbers", schema=Number, key="number").stateful(add, state=Sum).sink("out")
"""
START_S = 240.0
STOP_S = 60.0


@dataclass
class Running:
    """`bettong run` in a folder of its own, with a temporary folder of its own."""

    process: subprocess.Popen[str]
    folder: Path

    @property
    def record(self) -> SuiteRecord | None:
        return find(self.folder / ".bettong")

    def launched(self) -> SuiteRecord:
        """The record, as soon as all processes are started; most do not answer yet."""

        def look() -> SuiteRecord | None:
            assert self.process.poll() is None, self.output()
            record = self.record
            return record if record is not None and len(record.services) == 5 else None

        return eventually(look, seconds=START_S, what="all processes started")

    def ready(self) -> SuiteRecord:
        def look() -> SuiteRecord | None:
            assert self.process.poll() is None, self.output()
            record = self.record
            return record if record is not None and record.ready else None

        return eventually(look, seconds=START_S, what="everything answers")

    def family(self) -> list[psutil.Process]:
        """All processes below the command; each is told from a later one with the same number."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def folders(self) -> list[Path]:
        """Folders that must be gone at the end: the run's own, and its part of shared memory.

        A process that was just started has no environment yet: exec closes the pipe that `Popen` waits for before the
        kernel says where the environment stands.
        """
        record = self.record
        assert record is not None
        processor = psutil.Process(record.services["processor"].pid)
        state = eventually(
            lambda: processor.environ().get("BETTONG_STATE_DIR"), what="the processor's environment"
        )
        return [record.directory, Path(state).parent]

    def output(self) -> str:
        return (self.folder / "output").read_text()

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.process.wait(STOP_S)


def start(folder: Path, *arguments: str, application: Path = APPLICATION) -> Running:
    temporary = folder / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    with (folder / "output").open("w") as output:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "bettong", "run", str(application)),
                *("--partitions", "2", "--no-console", *arguments),
            ],
            cwd=folder,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "TMPDIR": str(temporary), "COLUMNS": "500"},
        )
    return Running(process, folder)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    suite = start(tmp_path)
    yield suite
    suite.process.kill()
    suite.process.wait()


def gone(processes: list[psutil.Process]) -> bool:
    return all(map(has_ended, processes))


def program(process: psutil.Process) -> str:
    return Path(next(iter(words_of(process)), "")).name


def leftovers(folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in folder.rglob("*") if path.name not in ("output", "tmp")]


# SIGHUP is handled as SIGTERM is: tests/local/test_interrupts.py. SIGINT ends one that starts at the end of this file.
def test_nothing_is_left_when_it_is_ended_while_it_starts(running: Running) -> None:
    running.launched()
    family, folders = running.family(), running.folders()
    assert len(family) >= 5
    assert running.end(signal.SIGTERM) == 143
    assert gone(family)
    assert not [place for place in folders if place.exists()]
    assert not leftovers(running.folder)
    assert "Traceback" not in running.output()


def test_nothing_is_left_when_a_service_cannot_start(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        running = start(tmp_path, "--sender", f"127.0.0.1:{taken.getsockname()[1]}")
        assert running.process.wait(START_S) == 4
    (error,) = [line for line in running.output().splitlines() if line.startswith("bettong: error: ")]
    assert "sender cannot go on (exit code 4), everything is stopped: BETTONG_SENDER_LISTEN" in error
    assert not leftovers(tmp_path)


def test_nothing_is_started_for_an_application_with_a_mistake(tmp_path: Path) -> None:
    bad = tmp_path / "app.py"
    bad.write_text("import bettong\napp = bettong.Application('empty')\n")
    done = subprocess.run(
        [sys.executable, "-m", "bettong", "run", str(bad)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    assert done.stderr == "bettong: error: application 'empty' has no source: add one with .source(...)\n"


def test_a_folder_that_cannot_be_written_ends_it_with_one_error() -> None:
    """And with no traceback of its thread: pytest would tell."""
    suite = Suite(SuiteOptions(application=str(APPLICATION), partitions=1, announce=Path("/proc/foo")))
    with pytest.raises(LocalError, match=r"the suite failed: .*/proc/foo"):
        suite.start()


def test_a_processor_that_no_start_mends_is_not_started_again_and_an_interrupt_of_the_stop_reaches_the_user(
    tmp_path: Path,
) -> None:
    """Its topics are there, but the application has changed into one that cannot be compiled.

    The demo went on with its second run when Ctrl-C came while the first one was being stopped.
    """
    application = tmp_path / "app.py"
    application.write_text(CHANGING.format(body="pass"))
    said: list[str] = []
    suite = Suite(SuiteOptions(application=str(application), partitions=1), say=said.append)

    def given_up() -> None:
        application.write_text(CHANGING.format(body="open('x')"))
        os.kill(suite.record.services["processor"].pid, signal.SIGKILL)
        line = eventually(
            lambda: next((line for line in said if "stopped for good" in line), None),
            seconds=START_S,
            what="it is given up",
        )
        assert "exit code 3" in line
        assert "cannot be compiled" in line
        assert suite.record.services["processor"].restarts == 1
        suite.check()  # the others run on
        assert "its last line:" in next(line for line in said if "is started again" in line)
        interrupting.start()

    def interrupt() -> None:
        suite._stopping.wait()
        os.kill(os.getpid(), signal.SIGINT)

    interrupting = threading.Thread(target=interrupt)
    with pytest.raises(KeyboardInterrupt), suite:
        given_up()
    interrupting.join()


def test_a_service_that_dies_is_started_again_until_it_dies_too_often_and_the_others_run_on(
    running: Running, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    record = running.ready()
    assert record.name == "word-count"
    monkeypatch.setenv("COLUMNS", "2000")  # no detail in two lines

    def status() -> tuple[int, str]:
        """In this process, for it is asked again and again: each start of Python takes a second of CPU."""
        capsys.readouterr()
        code = end_well(command_line, ["status", "--dir", str(running.folder / ".bettong")], name="bettong")
        captured = capsys.readouterr()
        return code, captured.out + captured.err

    assert status()[0] == 0, status()

    os.kill(running.process.pid, signal.SIGSTOP)  # else the next receiver may be there before one has looked
    try:
        os.kill(record.services["receiver"].pid, signal.SIGKILL)
        eventually(lambda: status()[0] == 7, what="status shows that the receiver is dead")
    finally:
        os.kill(running.process.pid, signal.SIGCONT)
    eventually(
        lambda: re.search(
            r"receiver died \(signal SIGKILL; its last line: .*\) and is started again", running.output()
        )
    )
    eventually(lambda: status()[0] == 0, seconds=START_S)
    again_all = running.ready().services
    again = again_all["receiver"]
    assert again.restarts == 1
    assert again.pid != record.services["receiver"].pid

    with again.log.open("ab") as log:
        log.truncate(LOG_BYTES_MAX)
    eventually(
        lambda: again.log.stat().st_size < LOG_BYTES_MAX, what="the log of a service that runs is rotated"
    )
    assert numbered(again.log, 1).stat().st_size == LOG_BYTES_MAX

    def kill_the_sender() -> bool:
        now = running.ready().services["sender"]
        if now.runs():
            os.kill(now.pid, signal.SIGKILL)
        return now.final_status == 6

    eventually(kill_the_sender, seconds=STOP_S)
    assert "sender stopped for good, everything else runs on" in running.output()
    last = running.ready()
    others = {name: each.pid for name, each in last.services.items() if name != "sender"}
    assert others == {name: each.pid for name, each in again_all.items() if name != "sender"}
    assert all(last.services[name].runs() for name in others)
    status_code, text = status()
    assert status_code == 7
    assert re.search(r"sender +given up .*stopped for good: signal SIGKILL", text), text
    assert running.end(signal.SIGTERM) == 6
    assert (
        "stopped, but sender had stopped for good before: sender: it died (signal SIGKILL" in running.output()
    )
    assert not leftovers(running.folder)


def test_all_processes_die_with_an_owner_that_is_killed_and_the_next_run_clears_up(running: Running) -> None:
    processor = psutil.Process(running.launched().services["processor"].pid)
    eventually(lambda: "java" in map(program, processor.children()), seconds=START_S, what="Spark's Java")
    family, folders = running.family(), running.folders()
    running.end(signal.SIGKILL)
    eventually(lambda: gone(family), seconds=20, what="all processes gone with their owner")
    assert running.record is None
    other = start(running.folder)
    eventually(lambda: not [place for place in folders if place.exists()], seconds=START_S)
    other.launched()
    family = other.family()
    assert other.end(signal.SIGINT) == 130
    assert gone(family)
    assert not leftovers(running.folder)
