"""The console of a suite: started when all runs, started again when it dies, and never what a suite ends of."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from bettong.cli.ending import end_well
from bettong.cli.main import app as command_line
from bettong.cli.run import describe, suite_options
from bettong.errors import SettingsError
from bettong.inspection.deployment import DeploymentAnswers, inspection
from bettong.inspection.services import GIVEN_UP, RUNNING, ProcessFacts, ServiceRow, local_rows
from bettong.local import services
from bettong.local.addresses import free_ports
from bettong.local.directories import Directories
from bettong.local.options import SuiteOptions
from bettong.local.probes import is_listened_to
from bettong.local.processes import Command
from bettong.local.suite import Suite
from bettong.services import CONSOLE
from bettong_console.serving import listening_socket
from tests.local.test_suite_full_disk import Fragile, prepared

APPLICATION = Path(__file__).parents[2] / "examples" / "word_count.py"


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Suite]]:
    """A suite with its processes as they would be started; none is."""
    directories = Directories(tmp_path / "kept")

    def make(*, is_installed: bool = True, **options: Any) -> Suite:
        monkeypatch.setattr(services, "has_console", lambda: is_installed)
        suite = Suite(SuiteOptions(application=str(APPLICATION), **options))
        suite._make_servers("word-count", directories)
        return suite

    yield make
    directories.remove()


def options(**changes: Any) -> SuiteOptions:
    flags: dict[str, Any] = {
        "schedule": "resident",
        "partitions": 2,
        "keep": None,
        "results": None,
        "python": False,
        "standby": False,
        "sender": None,
        "receiver": None,
        "console_address": None,
        "no_console": False,
        "announce": None,
    }
    return suite_options("app.py", **flags | changes)


def test_it_is_one_more_process_that_finds_the_suite_by_its_folder_on_loopback(
    made: Callable[..., Suite],
) -> None:
    suite = made(console=True)
    command = suite._servers[CONSOLE].command
    assert command.arguments[1:] == ("-m", "bettong", "console", "--dir", str(suite.record.directory))
    address = command.environment["BETTONG_CONSOLE_LISTEN"]
    assert address.startswith("127.0.0.1:")
    assert suite.record.console == f"http://{address}"


def test_with_a_certificate_its_address_says_so(
    made: Callable[..., Suite], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BETTONG_TLS_CERTIFICATE", "console.pem")
    address = made(console=True).record.console
    assert address is not None
    assert address.startswith("https://")


@pytest.mark.parametrize("changes", [{"console": False}, {"console": True, "is_installed": False}])
def test_where_it_is_left_out_or_not_installed_there_is_none(
    made: Callable[..., Suite], changes: dict[str, Any]
) -> None:
    suite = made(**changes)
    assert CONSOLE not in suite._servers
    assert suite.record.console is None


def test_the_commands_start_one_unless_told_otherwise_and_on_loopback_alone() -> None:
    assert options().console
    assert not options(no_console=True).console
    (port,) = free_ports(1)
    address = f"127.0.0.1:{port}"
    assert options(console_address=address).settings["console_listen"] == address
    for wrong in ("0.0.0.0:7400", "127.0.0.1:0", "127.0.0.1:99999", "localhost:abc", "7400", ""):
        with pytest.raises(SettingsError, match=rf"--console {re.escape(wrong)}: expected 127\.0\.0\.1:PORT"):
            options(console_address=wrong)
    with (
        socket.create_server(("127.0.0.1", port)),
        pytest.raises(SettingsError, match=f"--console {address}: the port is in use; choose another"),
    ):
        options(console_address=address)


def test_its_address_is_printed(made: Callable[..., Suite]) -> None:
    record = made(console=True).record
    text = StringIO()
    describe(record, Console(file=text, width=200), record.directory)
    assert f"console       {record.console}" in text.getvalue()


def test_status_says_where_it_is_too(
    made: Callable[..., Suite], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record = made(console=True).record
    monkeypatch.setattr("bettong.local.record.find", lambda _: record)
    for state in ("running", "gone"):
        found = inspection("word-count", [ServiceRow(CONSOLE, state)], DeploymentAnswers())
        monkeypatch.setattr("bettong.local.inspecting.inspect_suite", lambda _, found=found: found)
        end_well(command_line, ["status"], name="bettong")
        assert (f"see it at {record.console}\n" in capsys.readouterr().out) == (state == "running")


def with_console(folder: Path) -> tuple[Suite, Fragile, Fragile, list[str]]:
    """A suite of a sender that answers and of a console, neither of which is started yet."""
    suite, sender, said = prepared(folder, deaths_max=2)
    console = Fragile(Command(CONSOLE, ("sleep", "60"), folder / "log"), answers=lambda: True, start_s_max=1)
    suite._servers[CONSOLE] = console
    return suite, sender, console, said


def test_it_is_started_when_all_else_answers(tmp_path: Path) -> None:
    suite, sender, console, _ = with_console(tmp_path)
    sender.full = console.full = False
    try:
        suite._launch_all()
        assert suite.record.ready
        assert (sender.runs(), console.runs()) == (True, False)
        suite._check_processes()
        assert console.runs()
    finally:
        sender.kill()
        console.kill()


def test_one_that_stays_down_is_told_of_and_is_nothing_that_the_suite_ends_of(tmp_path: Path) -> None:
    suite, _, _, said = with_console(tmp_path)
    suite._restart_due_s[CONSOLE] = 0.0
    for _ in range(4):
        suite._check_processes()
    assert "only its page is unavailable meanwhile" in said[0]
    assert "console stopped for good, everything else runs on" in said[-1]
    assert suite.given_up == {}
    suite.wait_with_all(0)


def test_an_application_goes_on_without_it() -> None:
    live = {"sender": {"service": "sender", "state": RUNNING, "since": "10"}}
    gone = ProcessFacts(1, 5.0, 6, runs=False, log="console.log", fault="exit code 1: no", final_status=1)
    processes = {"sender": ProcessFacts(2, 5.0, 0, runs=True, log=""), CONSOLE: gone}
    found = inspection("app", local_rows(live, processes), DeploymentAnswers(live))
    assert [row.state for row in found.services if row.name == CONSOLE] == [GIVEN_UP]
    assert found.goes_on


def test_whether_something_listens_is_found_out_by_a_connection() -> None:
    (port,) = free_ports(1)
    assert not is_listened_to(f"127.0.0.1:{port}")
    with listening_socket(f"127.0.0.1:{port}"):
        assert is_listened_to(f"127.0.0.1:{port}")
