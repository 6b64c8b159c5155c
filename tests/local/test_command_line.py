"""The command line itself: help, mistakes, exit codes, and flags made from settings."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, version
from pathlib import Path

import pytest

from bettong.cli import services as services_module
from bettong.cli.ending import end_well
from bettong.cli.exit_codes import MEANINGS
from bettong.cli.main import app
from bettong.cli.tail import shown
from bettong.config.reading import read, settings_class
from bettong.config.receiver import ReceiverSettings
from bettong.errors import LogUnavailableError
from bettong.services import SERVICES

COMMANDS = ["run", "up", "down", "status", "top", "send", "tail", "check", *SERVICES]
EXAMPLES = Path(__file__).parents[2] / "examples"
# What costs time to import, and no command needs before it runs.
SLOW = {"grpc", "kafka", "numba", "pydantic", "pyspark", "redis", "textual"}

Ran = tuple[int, str, str]


@pytest.fixture
def bettong(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    monkeypatch.setenv("COLUMNS", "240")

    def ran(*arguments: object) -> Ran:
        status = end_well(app, [str(each) for each in arguments], name="bettong")
        return status, *capsys.readouterr()

    return ran


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str, bettong: Callable[..., Ran]) -> None:
    status, output, _ = bettong(command, "--help")
    assert status == 0
    assert f"Usage: bettong {command}" in output


def test_the_help_names_every_command_and_every_exit_code(bettong: Callable[..., Ran]) -> None:
    status, output, _ = bettong("--help")
    assert status == 0
    assert all(f" {command} " in output for command in COMMANDS)
    assert all(f"{code}  {meaning}" in output for code, meaning in MEANINGS.items())
    assert bettong() == (0, output, "")


def test_the_version_is_that_of_the_package(bettong: Callable[..., Ran]) -> None:
    assert bettong("--version") == (0, f"bettong {version('bettong')}\n", "")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("chekc",), "No such command 'chekc'. Did you mean 'check'? (see `bettong --help`)"),
        (("state", "lst"), "No such command 'lst'. Did you mean 'list'? (see `bettong state --help`)"),
        (
            ("dead-letters", "send"),
            "No such command 'send'; there are list, show, retry (see `bettong dead-letters --help`)",
        ),
        (("check",), "Missing argument 'APP.py'. (see `bettong check --help`)"),
        (
            ("tail", "sink", "--count", "0"),
            "Invalid value for '--count': Input should be greater than or equal to 1 (see `bettong tail",
        ),
        (("sender", "--nope"), "No such option: --nope"),
        (("send", "orders"), "Invalid value: 'orders' has no file: give pairs, SOURCE FILE [SOURCE FILE]..."),
        (("send", "orders", "gone.jsonl"), "Invalid value: 'gone.jsonl', for source 'orders', is not a file"),
        (
            ("send", "orders", __file__, "orders", __file__),
            "Invalid value: source 'orders' is given twice: send its files one after",
        ),
        (("check", "x" * 300 + ".py"), f"{Path.cwd()}/{'x' * 40}"),
        (("send", "orders", "x" * 300), "x" * 40),
        (
            ("log", "app.py", "--since", "2026-11-29", "--until", "2026-11-28"),
            "Invalid value: --since 2026-11-29 00:00:00 is not before --until 2026-11-28 00:00:00: no message lies",
        ),
        (("send", *["orders", __file__] * 17), "Invalid value: 17 pairs; at most 16 are sent at once"),
    ],
)
def test_a_wrong_command_line_is_one_line(
    arguments: tuple[str, ...], error: str, bettong: Callable[..., Ran]
) -> None:
    status, output, complaint = bettong(*arguments)
    assert (status, output) == (2, "")
    assert complaint.startswith(f"bettong: error: {error}")
    assert complaint.count("\n") == 1


@pytest.mark.parametrize(
    ("example", "shown_parts"),
    [
        (
            "market_spread/risk_check.py",
            [
                "stage nbbo",
                "source orders: Order, key symbol",
                "nbbo + orders -> Rejected",
                "compiled",
                "sink rejected",
            ],
        ),
        (
            "word_count.py",
            ["flat_map words: lines -> Word", "to stage words-by-word: words, by key word", "Python"],
        ),
    ],
)
def test_check_prints_the_graph(example: str, shown_parts: list[str], bettong: Callable[..., Ran]) -> None:
    status, output, _ = bettong("check", EXAMPLES / example)
    assert status == 0
    assert not [part for part in shown_parts if part not in output]


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (
            "import bettong\nbettong.Application('a').source('s', schema=int)",
            "app.py:2: source 's': <class 'int'> is no schema",
        ),
        ("x = 1 +\n", "app.py:1: SyntaxError"),
        ("raise ValueError('two\\nlines')", "app.py:1: ValueError: two lines"),
        ("x = 1", "expected one Application in the file, found none"),
    ],
)
def test_check_reports_a_mistake_in_one_line(
    code: str, error: str, bettong: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("app.py").write_text(code)
    status, _, complaint = bettong("check", "app.py")
    assert status == 3
    assert error in complaint
    assert complaint.count("\n") == 1


MARKED = """
from dataclasses import dataclass, field
from typing import Annotated
import bettong

@dataclass
class Payment:
    account: Annotated[str, bettong.Width(8)]
    note: str

@dataclass
class Account:
    total: float = 0.0

@dataclass
class Exact:
    account: Annotated[str, bettong.Width(8)]

class Strict:
    def __init__(self, needed):
        self.needed = needed

@bettong.compiled
def wide(payment: Payment, account: Account) -> Payment:
    return payment

@bettong.compiled
def opens(exact: Exact, account: Account) -> Exact:
    open("x")
    return exact

def plain(payment: Payment, state) -> Payment:
    return payment

app = bettong.Application("a")
payments = app.source("payments", schema=Payment, key="account")
exact = app.source("exact", schema=Exact, key="account")
exact.sink("all")
payments.sink("every")
"""


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("exact.stateful(opens, state=Account).sink('out')", "'opens' ("),
        ("payments.stateful(wide, state=Account).sink('out')", "note has no fixed width"),
        ("payments.stateful(plain, state=Strict).sink('out')", "a new state cannot be made"),
    ],
    ids=["not compilable", "variable width", "state with arguments"],
)
def test_check_finds_what_a_stage_cannot_run(
    code: str, error: str, bettong: Callable[..., Ran], tmp_path: Path
) -> None:
    (tmp_path / "app.py").write_text(f"{MARKED}\n{code}\n")
    status, _, complaint = bettong("check", tmp_path / "app.py")
    assert status == 3
    assert error in complaint
    assert complaint.count("\n") == 1


@pytest.mark.parametrize("service", list(SERVICES))
def test_every_setting_of_a_service_is_a_flag_with_its_variable(
    service: str, bettong: Callable[..., Ran]
) -> None:
    _, output, _ = bettong(service, "--help")
    for key in settings_class(SERVICES[service]).model_fields:
        assert f"--{key.replace('_', '-')}" in output
        assert f"BETTONG_{key.upper()}" in output


def test_flags_reach_the_service_as_overrides_and_only_those_given(
    bettong: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[Mapping[str, object]] = []
    monkeypatch.setattr(sys.modules[__name__], "receiver_main", taken.append)
    entry = EntryPoint("receiver", f"{__name__}:receiver_main", services_module.GROUP)
    monkeypatch.setattr(services_module, "found", lambda _name: entry)
    assert bettong("receiver", "--application", "app.py", "--no-compiled", "--partitions", "4")[0] == 0
    assert taken == [{"application": "app.py", "compiled": False, "partitions": "4"}]
    assert read(ReceiverSettings, taken[0]).partitions == 4


def receiver_main(_overrides: Mapping[str, object]) -> None:
    raise LogUnavailableError("no broker\nanswers")


def test_an_error_of_a_service_is_one_line_and_its_exit_code(
    bettong: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = EntryPoint("receiver", f"{__name__}:receiver_main", services_module.GROUP)
    monkeypatch.setattr(services_module, "found", lambda _name: entry)
    assert bettong("receiver", "--application", "app.py") == (5, "", "bettong: error: no broker answers\n")


def test_settings_that_are_missing_or_wrong_are_reported_all_at_once(
    bettong: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BETTONG_APPLICATION", raising=False)
    status, _, complaint = bettong("sender", "--partitions", "0")
    assert status == 4
    assert "BETTONG_APPLICATION" in complaint
    assert "BETTONG_PARTITIONS" in complaint


def test_a_schedule_that_there_is_not_is_refused(bettong: Callable[..., Ran]) -> None:
    status, _, complaint = bettong("run", EXAMPLES / "word_count.py", "--schedule", "hourly")
    assert status == 4
    assert (
        complaint
        == "bettong: error: --schedule hourly: there is no such schedule, expected resident, micro-batch\n"
    )


def test_results_are_never_mixed_with_those_of_another_log(
    bettong: Callable[..., Ran], tmp_path: Path
) -> None:
    (tmp_path / "old").touch()
    status, _, complaint = bettong("run", EXAMPLES / "word_count.py", "--results", tmp_path)
    assert status == 6
    assert "holds files already" in complaint


def test_remote_status_needs_both_redis_and_application(bettong: Callable[..., Ran]) -> None:
    assert bettong("status", "--redis", "redis://127.0.0.1:1/0")[0] == 4


def test_status_is_valid_json_when_nothing_runs_too(bettong: Callable[..., Ran], tmp_path: Path) -> None:
    code, output, _ = bettong("status", "--json", "--dir", tmp_path)
    assert code == 7
    assert json.loads(output)["unknown"] == [
        f"nothing runs in {tmp_path} (bettong up APP.py; elsewhere: --redis URL --application NAME)"
    ]


def test_top_wants_a_terminal_and_something_to_show(
    bettong: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, _, complaint = bettong("top", "--dir", tmp_path)
    assert code == 4
    assert "needs a terminal: `bettong status --json` is for scripts" in complaint
    monkeypatch.setattr("bettong.cli.top.command._is_terminal", lambda: True)
    code, _, complaint = bettong("top", "--dir", tmp_path)
    assert code == 6
    assert f"nothing runs in {tmp_path}" in complaint
    assert bettong("top", "--redis", "redis://127.0.0.1:1/0")[0] == 4


def test_a_password_is_taken_by_no_flag(bettong: Callable[..., Ran]) -> None:
    url = "redis://user:secret@127.0.0.1:1/0"
    for command in (
        ("status", "--application", "x"),
        ("top", "--application", "x"),
        ("sender",),
        ("receiver",),
    ):
        code, *said = bettong(*command, "--redis", url)
        assert code in {2, 4}
        assert "BETTONG_REDIS" in str(said)
        assert "secret" not in str(said)


def test_nothing_slow_is_imported_before_a_command_runs() -> None:
    code = "import sys, bettong.cli.main; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not SLOW & set(done.stdout.split())


def test_messages_are_shown_as_text_or_in_hexadecimal() -> None:
    assert shown('{"word":"né"}'.encode()) == '{"word":"né"}'
    assert shown(b"\x00\x01") == "0001"
    assert shown(b"\xff") == "ff"
    assert shown(b"two\nlines") == "74776f0a6c696e6573"


@pytest.mark.parametrize("command", ["status", "down", "tail sink"])
def test_a_file_in_place_of_a_suites_folder_is_an_error_of_one_line(
    command: str, bettong: Callable[..., Ran], tmp_path: Path
) -> None:
    file = tmp_path / "votes.csv"
    file.touch()
    status, output, complaint = bettong(*command.split(), "--dir", file)
    assert (status, output) == (6, "")
    assert complaint.startswith(
        f"bettong: error: {file}/suite.json cannot be read: Not a directory; give the folder"
    )
    assert complaint.count("\n") == 1


def test_a_group_without_a_command_names_those_that_it_has(bettong: Callable[..., Ran]) -> None:
    status, _, complaint = bettong("state")
    assert status == 2
    assert complaint.startswith(
        "bettong: error: No command is given; there are list, get, export, reset (see"
    )


def run_in_shell(command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["/bin/sh", "-c", command], check=False, capture_output=True, text=True)


@pytest.mark.parametrize("command", ["--version", "--help"])
def test_output_on_a_full_disk_is_an_error_of_one_line(command: str) -> None:
    ran = run_in_shell(f"{sys.executable} -m bettong {command} > /dev/full")
    assert ran.returncode == 1
    assert ran.stderr.startswith(
        "bettong: error: standard output, or a file, cannot be written: No space left"
    )
    assert ran.stderr.count("\n") == 1


def test_the_output_of_a_command_is_no_file_and_the_error_says_how_it_is_sent(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    ran = run_in_shell(f"{sys.executable} -m bettong send orders {tmp_path / 'pipe'}")
    assert ran.returncode == 2
    assert "is not a file; give - and pipe it in" in ran.stderr


def test_a_stream_that_is_closed_is_read_as_empty_and_written_to_in_vain() -> None:
    script = "import sys; from bettong.cli.ending import fill_closed_streams as fill; fill();"
    for closed, use in (("1>&-", "sys.stdout.write('x')"), ("0<&-", "assert sys.stdin.buffer.read() == b''")):
        ran = run_in_shell(f'{sys.executable} -c "{script} {use}" {closed}')
        assert (ran.returncode, ran.stderr) == (0, "")
