"""A forked service is a process like any other."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from bettong.local.processes import Command, Ending
from tests.servers.fork_server import started
from tests.waiting import eventually

END_S_MAX = 60.0
FACTS = """\
import json, os, sys
facts = {"parent": os.getppid(), "session": os.getsid(0), "arguments": sys.argv, "directory": os.getcwd()}
facts["variables"] = [os.environ.get(name) for name in ("BETTONG_GIVEN", "GRPC_ENABLE_FORK_SUPPORT")]
print(json.dumps(facts | {"is loaded": "bettong_sender.main" in sys.modules}))
print("its error", file=sys.stderr)
sys.exit(7)
"""


def test_it_is_our_child_with_its_own_session_environment_folder_output_and_exit_code(tmp_path: Path) -> None:
    command = Command(
        "service",
        (sys.executable, "-c", FACTS),
        tmp_path / "service.log",
        environment={"BETTONG_GIVEN": "this"},
        directory=tmp_path,
    )
    process = started(command)
    assert process.wait(END_S_MAX) == Ending(7)
    error, facts = sorted(command.log.read_text().splitlines())
    assert error == "its error"
    assert json.loads(facts) == {
        "parent": os.getpid(),
        "session": process.pid,
        "arguments": ["-c"],
        "directory": str(tmp_path),
        "variables": ["this", "0"],  # the second one is set by our modules when they are loaded
        "is loaded": True,
    }


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT, signal.SIGABRT])
def test_a_signal_ends_it_as_it_ends_others(tmp_path: Path, number: signal.Signals) -> None:
    program = "import signal, sys\nprint('ready', flush=True)\nsignal.pause()"
    process = started(Command("service", (sys.executable, "-c", program), tmp_path / "service.log"))
    eventually(lambda: process.tail() == ["ready"], seconds=END_S_MAX)
    os.kill(process.pid, number)
    assert process.wait(END_S_MAX) == Ending(-number)


def test_bettong_itself_is_forked_with_its_arguments(tmp_path: Path) -> None:
    command = Command(
        "service", (sys.executable, "-m", "bettong", "sender", "--no-such"), tmp_path / "service.log"
    )
    process = started(command)
    assert process.wait(END_S_MAX) == Ending(2)
    assert any("No such option: --no-such" in line for line in process.tail())


def test_what_has_modules_of_its_own_has_a_python_of_its_own(tmp_path: Path) -> None:
    program = "import sys; sys.exit('bettong_sender.main' in sys.modules)"
    command = Command(
        "service",
        (sys.executable, "-c", program),
        tmp_path / "service.log",
        environment={"PYTHONPATH": str(tmp_path)},
    )
    assert started(command).wait(END_S_MAX) == Ending(0)
