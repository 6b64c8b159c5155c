"""Child processes end with us, whatever way we end."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from bettong.errors import LocalError
from bettong.local.processes import Command, Ending, Process
from tests.looked_at import has_ended
from tests.waiting import eventually

SLEEP = "import time; time.sleep(600)"
# A parent of its own, with a child in the same session, as Spark has a Java process.
WITH_CHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SLEEP!r}])"
DEAF = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); {SLEEP}"


def command(tmp_path: Path, code: str, *, stop_s_max: float = 5.0) -> Command:
    return Command("the child", (sys.executable, "-c", code), tmp_path / "log", stop_s_max=stop_s_max)


def test_an_end_is_noticed_with_its_exit_code_and_last_lines(tmp_path: Path) -> None:
    child = Process(command(tmp_path, "print('one'); print('two'); raise SystemExit(3)"))
    assert child.wait(10) == Ending(3)
    assert child.tail() == ["one", "two"]
    assert child.describe_end() == f"exit code 3; its last lines: one | two; its log: {tmp_path / 'log'}"


def test_the_last_lines_are_those_of_this_start(tmp_path: Path) -> None:
    Process(command(tmp_path, "print('of the first')")).wait(10)
    second = Process(command(tmp_path, "print('of the second')"))
    second.wait(10)
    assert second.tail() == ["of the second"]


def test_a_signal_is_reported_by_its_name(tmp_path: Path) -> None:
    child = Process(command(tmp_path, SLEEP))
    os.kill(child.pid, signal.SIGKILL)
    assert str(child.wait(10)) == "signal SIGKILL"


def test_who_ignores_sigterm_is_killed_after_its_grace(tmp_path: Path) -> None:
    child = Process(command(tmp_path, DEAF, stop_s_max=0.2))
    eventually(lambda: child.tail() == ["deaf"])
    assert child.stop() == Ending(-signal.SIGKILL)
    assert has_ended(child.pid)


def test_what_a_dead_child_leaves_in_its_session_is_killed(tmp_path: Path) -> None:
    child = Process(command(tmp_path, WITH_CHILD))
    (grandchild,) = eventually(psutil.Process(child.pid).children)
    os.kill(child.pid, signal.SIGKILL)
    child.wait(10)
    eventually(lambda: has_ended(grandchild.pid))


def test_stopping_or_killing_twice_does_nothing(tmp_path: Path) -> None:
    child = Process(command(tmp_path, SLEEP))
    assert child.stop() == child.stop() == child.kill() == Ending(-signal.SIGTERM)


def test_a_missing_program_is_an_error(tmp_path: Path) -> None:
    child = Process(Command("nothing", ("no-such-program",), tmp_path / "log"))
    child.wait(10)
    assert "No such file" in child.describe_end()
    with pytest.raises(LocalError, match="nothing cannot be started"):
        Process(Command("nothing", ("true",), tmp_path / "log", directory=tmp_path / "missing"))


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the kernel's parent-death signal is Linux's"
)
def test_children_die_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    code = f"""
import sys, time
from pathlib import Path
from bettong.local.processes import Command, Process
child = Process(Command("the child", (sys.executable, "-c", {SLEEP!r}), Path({str(tmp_path / "log")!r})))
print(child.pid, flush=True)
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert not has_ended(child)
        parent.kill()
        eventually(lambda: has_ended(child))
