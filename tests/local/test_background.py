"""`bettong up`, `send`, `tail`, `status` and `down`, as a user types them."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx2
import psutil
import pytest
from kafka import KafkaAdminClient, TopicPartition

from bettong.cli.ending import end_well
from bettong.cli.main import app as command_line
from bettong.edges.kafka_log import LogAdmin
from bettong.edges.kafka_log.secured import python_options
from bettong.local.background import down
from bettong.local.record import SuiteRecord, find
from bettong.topics import stage_topic
from tests.looked_at import has_ended
from tests.waiting import eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # whole suites, also on a busy machine

APPLICATION = Path(__file__).parents[2] / "examples" / "word_count.py"


@dataclass(frozen=True)
class Shell:
    """Runs commands in a folder."""

    folder: Path

    def __call__(self, *arguments: object, seconds: float = 300.0) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "bettong", *map(str, arguments)],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
            env={**os.environ, "TMPDIR": str(self.folder), "COLUMNS": "300"},
        )

    def right(self, *arguments: object) -> str:
        """Nothing else is in the terminal: no lines of gRPC, librdkafka or Java."""
        done = self(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        assert not done.stderr
        return done.stdout


@dataclass(frozen=True)
class Asked:
    """The same in this process, where that it is a process of its own says nothing more: each start of Python takes a
    second of CPU.
    """

    captured: pytest.CaptureFixture[str]

    def __call__(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        self.captured.readouterr()
        words = [*map(str, arguments)]
        code = end_well(command_line, words, name="bettong")
        captured = self.captured.readouterr()
        return subprocess.CompletedProcess(words, code, captured.out, captured.err)

    def right(self, *arguments: object) -> str:
        done = self(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def asked(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Asked:
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.chdir(tmp_path)
    return Asked(capsys)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    yield Shell(tmp_path)
    record = find(tmp_path / ".bettong")
    if record is not None:
        down(record)


def served(record: SuiteRecord) -> str | None:
    """What the console of a suite says of it now; None while it says nothing."""
    assert record.console is not None
    try:
        found = httpx2.get(f"{record.console}/api/now", timeout=5)
    except httpx2.TransportError:
        return None
    return str(found.json()["status"]["application"]) if found.status_code == 200 else None


def test_a_suite_in_the_background_is_fed_read_stopped_and_goes_on(shell: Shell, asked: Asked) -> None:
    """Between two runs it cannot go on, for a while: no suite is started for that alone."""
    program = shell.folder / "app.py"
    program.write_text(APPLICATION.read_text())
    printed = shell.right("up", "app.py", "--partitions", "2")
    record = find(shell.folder / ".bettong")
    assert record is not None
    assert f"console       {record.console}\n" in printed
    page = eventually(partial(served, record), seconds=60, what="the console answers")
    assert page == "word-count"
    record = find(shell.folder / ".bettong")
    assert record is not None
    assert record.services.keys() == {"kafka", "redis", "sender", "processor", "receiver", "console"}
    family = psutil.Process(record.owner.pid).children(recursive=True)

    again = asked("up", "app.py")
    assert again.returncode == 6
    assert "word-count runs in .bettong already" in again.stderr

    words = shell.folder / "words.txt"
    words.write_text("to be or not\nto be\n")
    assert "2 messages to lines" in shell.right("send", "lines", words, "--stream", "hamlet")
    counts = [json.loads(text) for text in shell.right("tail", "counts", "--count", "6").splitlines()]
    assert {(each["word"], each["total"]) for each in counts} == {
        ("to", 1),
        ("to", 2),
        ("be", 1),
        ("be", 2),
        ("or", 1),
        ("not", 1),
    }

    refuses_what_cannot_be_decoded(shell, asked)

    unknown = shell("send", "nothing", words)
    assert unknown.returncode == 1
    assert unknown.stderr.startswith("bettong: error: sender ")
    assert unknown.stderr.count("\n") == 1

    ends = trim(record, asked)
    assert "word-count stopped" in shell.right("down")
    assert all(map(has_ended, family))
    assert not (shell.folder / ".bettong" / "suite.json").exists()
    assert asked("status").returncode == 7

    fails_with_the_reason_where_the_application_cannot_go_on(shell, asked, program, ends)

    assert "console" not in shell.right("up", "app.py", "--partitions", "2", "--no-console")
    asked.right("send", "lines", words, "--stream", "hamlet")  # already in the log: counts nothing
    (shell.folder / "more.json").write_text('{"text": "to sleep"}\n')
    asked.right("send", "lines", "more.json")
    counts += [{"word": "to", "total": 3}, {"word": "sleep", "total": 1}]
    later = [json.loads(text) for text in asked.right("tail", "counts", "--count", "8").splitlines()]
    # Words of different partitions come in any order.
    assert sorted(map(str, later)) == sorted(map(str, counts))

    shell.right("down", "--remove")
    assert not (shell.folder / ".bettong").exists()


def refuses_what_cannot_be_decoded(shell: Shell, asked: Asked) -> None:
    """A dead letter, of which `tail` and `status` tell."""
    (shell.folder / "bad.bin").write_bytes(b"\0\0\0\2\xff\xfe")
    assert "1 of them could not be decoded" in asked.right("send", "lines", "bad.bin")
    assert "UnicodeDecodeError" in asked.right("tail", "dead-letters", "--count", "1")
    dead_letters = "1 dead letters, the last: lines: UnicodeDecodeError"
    eventually(lambda: dead_letters in asked("status").stdout, seconds=30)
    assert dead_letters in shell.right("status")


def trim(record: SuiteRecord, asked: Asked) -> set[int]:
    """Deletes what the second stage has folded from its log, once that is saved; where its partitions begin then."""
    topic = stage_topic("word-count", "words-by-word")

    def saved() -> bool:
        listed = [json.loads(line) for line in asked("state", "list", "app.py", "--json").stdout.splitlines()]
        return bool(listed) and all((each["snapshot_offset"] or 0) == each["log_end"] for each in listed)

    eventually(saved, seconds=60, what="all is saved, though nothing follows")
    eventually(lambda: "lag 0, " in asked("status").stdout, seconds=60)
    with LogAdmin(record.kafka_connection) as admin:
        ends = {TopicPartition(*each): end for each, end in admin.ends([topic]).items() if end}
    deleting = KafkaAdminClient(bootstrap_servers=record.kafka, **python_options(record.kafka_connection))
    deleting.delete_records(ends)
    deleting.close()
    assert ends
    return set(ends.values())


def fails_with_the_reason_where_the_application_cannot_go_on(
    shell: Shell, asked: Asked, program: Path, ends: set[int]
) -> None:
    """Another shape of the state, and a log that was trimmed beyond its snapshots: nothing is left running."""
    folder = shell.folder / ".bettong"
    program.write_text(APPLICATION.read_text().replace("total: int = 0", "total: float = 0.0"))
    done = shell("up", "app.py", "--partitions", "2")
    assert done.returncode == 3, done.stderr
    assert (
        "processor cannot go on (exit code 3), everything is stopped: snapshot of word-count/" in done.stderr
    )
    assert "migrate=" in done.stderr, "the remedy"
    assert find(folder) is None

    program.write_text(APPLICATION.read_text())
    (folder / "redis").rename(shell.folder / "redis")
    done = shell("up", "app.py", "--partitions", "2")
    assert done.returncode == 9, done.stderr
    found = re.search(
        r"no state reaches offset (\d+), where its log begins now; it has no snapshot", done.stderr
    )
    assert found is not None, done.stderr
    assert int(found[1]) in ends
    assert find(folder) is None
    shutil.copytree(folder, shell.folder / "stopped")
    shell.right("down", "--remove", "--dir", "stopped")
    assert not (shell.folder / "stopped").exists()
    shutil.rmtree(folder / "redis")
    (shell.folder / "redis").rename(folder / "redis")


def test_an_application_with_a_mistake_is_refused_at_once(shell: Shell) -> None:
    (shell.folder / "app.py").write_text("import bettong\napp = bettong.Application('a b')\n")
    done = shell("up", "app.py")
    assert done.returncode == 3
    assert "bettong: error: app.py:2: application name 'a b'" in done.stderr
    assert not (shell.folder / ".bettong").exists()


def test_commands_that_need_a_suite_say_how_to_start_one(tmp_path: Path, asked: Asked) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    for arguments in (("send", "lines", "a.txt"), ("tail", "counts")):
        done = asked(*arguments)
        assert done.returncode == 6
        assert "nothing runs in .bettong: start it with `bettong up APP.py`" in done.stderr
    assert asked("status").returncode == 7
    assert asked("down").stdout == "nothing runs in .bettong\n"


def test_down_removes_only_folders_of_a_suite(shell: Shell, asked: Asked) -> None:
    (shell.folder / "precious").mkdir()
    (shell.folder / "precious" / "thesis.txt").touch()
    (shell.folder / "precious" / "lock").touch()
    for arguments in (("down", "--remove"), ("up", APPLICATION)):
        done = asked(*arguments, "--dir", "precious")
        assert done.returncode == 6
        assert done.stderr.count("\n") == 1
    assert sorted(path.name for path in (shell.folder / "precious").iterdir()) == ["lock", "thesis.txt"]


@pytest.mark.parametrize("command", [("up", APPLICATION, "--dir"), ("run", APPLICATION, "--keep")])
def test_a_folder_that_cannot_be_made_is_reported_in_one_line(
    asked: Asked, command: tuple[object, ...]
) -> None:
    done = asked(*command, "/proc/foo")
    assert done.returncode == 6
    assert done.stderr.startswith("bettong: error: /proc/foo cannot be used:")
    assert done.stderr.count("\n") == 1
