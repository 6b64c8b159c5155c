"""Logs of processes that know nothing of rotation."""

import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bettong.local.log_files import numbered, rotate
from bettong.local.processes import Command, Process
from tests.waiting import eventually


def test_a_small_log_is_left_alone(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("short\n")
    assert not rotate(log, bytes_max=100)
    assert not rotate(tmp_path / "none", bytes_max=100)
    assert [path.name for path in tmp_path.iterdir()] == ["log"]


def test_the_newest_parts_are_kept_and_the_rest_goes(tmp_path: Path) -> None:
    log = tmp_path / "log"
    for part in range(5):
        with log.open("ab") as file:
            file.write(b"%d" % part * 100)
        assert rotate(log, bytes_max=100, kept=2)
    assert log.read_bytes() == b""
    assert numbered(log, 1).read_bytes() == b"4" * 100
    assert numbered(log, 2).read_bytes() == b"3" * 100
    assert not numbered(log, 3).exists()


def test_a_running_process_goes_on_writing_and_its_last_lines_are_found(tmp_path: Path) -> None:
    code = (
        "import sys, time\nfor n in range(300): print('x' * 99, flush=True)\n"
        "print('more', flush=True)\ntime.sleep(600)"
    )
    child = Process(Command("the child", (sys.executable, "-c", code), tmp_path / "log"))
    try:
        eventually(lambda: child.tail() and child.tail()[-1] == "more")
        child.rotate_log(bytes_max=1000)
        assert child.command.log.stat().st_size == 0
        assert numbered(child.command.log, 1).read_text().endswith("more\n")
        with child.command.log.open("ab") as as_the_child:
            as_the_child.write(b"behind it\n")
        assert child.tail() == ["behind it"]
    finally:
        child.kill()


@contextmanager
def no_file_above(size: int) -> Iterator[None]:
    """As on a full disk, for this process alone: a write beyond that fails, what is there stays."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_on_a_full_disk_a_log_makes_room_and_its_last_part_is_kept(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"x" * 300_000 + b"the last line\n")
    numbered(log, 1).write_bytes(b"older")
    with no_file_above(100_000):
        assert rotate(log, bytes_max=200_000)
    assert log.read_bytes() == b""
    kept = numbered(log, 1).read_bytes()
    assert len(kept) == 64 * 1024
    assert kept.endswith(b"xxx" + b"the last line\n")
    assert numbered(log, 2).read_bytes() == b"older"


def test_where_nothing_can_be_written_a_log_is_emptied_all_the_same(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"x" * 300_000)
    with no_file_above(0):
        assert rotate(log, bytes_max=200_000)
    assert log.read_bytes() == b""


def test_a_log_that_cannot_be_emptied_raises_nothing(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    assert not rotate(tmp_path / "log", bytes_max=0)
    assert not rotate(tmp_path / "log" / "x" / "y", bytes_max=0)


def test_of_a_log_that_is_gone_the_last_lines_say_so(tmp_path: Path) -> None:
    child = Process(Command("the child", (sys.executable, "-c", "print('something')"), tmp_path / "log"))
    assert child.wait(20.0) is not None
    child.command.log.unlink()
    (line,) = child.tail()
    assert line.startswith("its log cannot be read: ")
    assert "exit code 0; its last lines: its log cannot be read: " in child.describe_end()
