"""What starts a command again when its packages have changed: with real processes."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bettong.local.processes import Command, Process
from deploy.images.live import MARK, lay_out
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]
RUN = (
    "import sys; from pathlib import Path; from deploy.images.live import run_command;"
    "sys.exit(run_command(sys.argv[2:], Path(sys.argv[1])))"
)
REPORT = "import signal, bettong_told as t; print('told', t.VALUE, flush=True); signal.pause()"
LAST = "import signal; signal.signal(signal.SIGPWR, lambda *_: print('last words', flush=True) or exit(3))\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    package = tmp_path / "packages" / "bettong_told"
    (package / "__pycache__").mkdir(parents=True)
    (package / "__init__.py").write_text("VALUE = 1\n")
    (tmp_path / "packages" / "bettong-0.1.0.dist-info").mkdir()
    lay_out(tmp_path / "packages", tmp_path / "live")
    return tmp_path / "live"


@pytest.fixture
def process(folder: Path) -> Iterator[Process]:
    words = (sys.executable, "-c", RUN, str(folder), sys.executable, "-c", LAST + REPORT)
    process = Process(Command("live", words, folder.parent / "log", {"PYTHONPATH": str(ROOT)}))
    yield process
    process.kill()


def test_a_change_starts_the_command_again_and_a_signal_reaches_it(process: Process, folder: Path) -> None:
    log = process.command.log
    eventually(lambda: "told 1" in log.read_text(), seconds=30)
    (folder / "bettong_told" / "__init__.py").write_text("VALUE = 22\n")
    os.utime(folder / MARK)
    eventually(lambda: "told 22" in log.read_text(), seconds=30)
    os.kill(process.pid, signal.SIGPWR)
    ending = process.wait(30)
    assert ending is not None
    assert ending.status == 3
    assert "last words" in log.read_text()


def test_packages_are_laid_out_once_without_byte_code(folder: Path) -> None:
    assert {path.name for path in folder.iterdir()} == {"bettong_told", MARK}
    assert {path.name for path in (folder / "bettong_told").iterdir()} == {"__init__.py"}
    (folder / "bettong_told" / "__init__.py").write_text("VALUE = 2\n")
    lay_out(folder.parent / "packages", folder)
    assert (folder / "bettong_told" / "__init__.py").read_text() == "VALUE = 2\n"
