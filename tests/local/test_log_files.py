"""Logs of processes that know nothing of rotation."""

import sys
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
