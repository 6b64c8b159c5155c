"""`bettong send` to a sender's process: pipes, rows that cannot be read, and what it says when it ends early."""

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bettong.cli.ending import end_well
from bettong.cli.main import app as command_line
from bettong.client.sender import Sender
from tests.samples.sender import orders
from tests.servers.sender_alone import sender_alone
from tests.waiting import eventually

HEADER = "side,number,symbol,price\n"

# Exit code, standard output and standard error.
Send = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with sender_alone(tmp_path_factory.mktemp("sender"), {}) as (address, *_):
        yield address


@pytest.fixture
def send(capsys: pytest.CaptureFixture[str]) -> Send:
    """`bettong send orders`, in this process: each start of Python takes a second of CPU."""

    def ended(address: str, *arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        words = ["send", "orders", *map(str, arguments), "--to", address]
        status = end_well(command_line, words, name="bettong")
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return ended


def pipe(address: str, *arguments: object, given: str = "") -> tuple[int, str, str]:
    """The same in a process of its own, which reads what is given."""
    command = [sys.executable, "-m", "bettong", "send", "orders", "-", *map(str, arguments), "--to", address]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout, done.stderr


def order(number: object) -> str:
    return f"1,{number},A,0.5\n"


def test_standard_input_is_sent_as_a_file_is(address: str) -> None:
    lines = "".join(
        json.dumps({"side": 1, "number": number, "symbol": "A", "price": 0.5}) + "\n" for number in range(500)
    )
    status, output, errors = pipe(address, "--format", "json", given=lines)
    assert (status, errors) == (0, "")
    assert output.startswith("500 messages to orders in ")


def test_rows_are_skipped_and_counted_and_the_first_are_named(
    send: Send, address: str, tmp_path: Path
) -> None:
    path = tmp_path / "orders.csv"
    path.write_text(HEADER + "".join(order(number if number % 2 else "odd") for number in range(60)))
    status, output, errors = send(address, path, "--on-error", "skip")
    assert status == 0
    assert output.startswith("30 messages to orders in ")
    *named, last = errors.splitlines()
    assert len(named) == 20
    assert named[1] == f"skipped: {path}, row 3: field 'number': invalid value 'odd', expected uint32"
    assert last == "orders.csv: 30 skipped; the first 20 are named above"


def test_lines_of_json_that_are_no_messages_become_dead_letters_of_the_sender(
    address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = '{"side": 1, "number": %d, "symbol": "A", "price": 0.5}\n'
    (path := tmp_path / "objects.jsonl").write_text(
        "".join([good % 1, "oops\n", good % 2, '{"side": "b"}\n'])
    )
    words = ["send", "objects", str(path), "--frame", "2", "--to", address]
    assert end_well(command_line, words, name="bettong") == 1
    assert "objects.jsonl: the first 0 messages to objects are durable" in capsys.readouterr().err
    for expected in ("\n2 of them could not be decoded", "nothing new for objects: "):
        assert end_well(command_line, [*words, "--on-error", "dead-letter"], name="bettong") == 0
        assert expected in capsys.readouterr().out
    words = ["send", "orders", str(path), "--on-error", "dead-letter", "--to", address]
    assert end_well(command_line, words, name="bettong") == 2
    assert "source 'orders' does not read JSON: give it format=\"json\"" in capsys.readouterr().err


def test_where_a_file_cannot_be_read_on_it_says_what_is_durable(
    send: Send, address: str, tmp_path: Path
) -> None:
    path = tmp_path / "orders.csv"
    path.write_text(HEADER + "".join(order(number if number != 25 else "odd") for number in range(60)))
    status, output, errors = send(address, path, "--frame", "10")
    assert (status, output) == (1, "")
    assert (
        "orders.csv: the first 20 messages to orders are durable\nthe same command, with the same file, resumes after"
        " them; a changed file is a new stream, so remove them from it" in errors
    )
    assert f"bettong: error: {path}, row 26: field 'number': invalid value 'odd'" in errors
    status, _, errors = send(address, path, "--frame", "10", "--stream", "named")
    assert (
        "the first 20 messages to orders are durable\nthe same command, with the same input, resumes after them"
        in errors
    )
    status, _, errors = send(address, path, "--frame", "10", "--again")
    assert "the first 20 messages to orders are durable\nto resume after them, remove them" in errors


def test_a_file_that_is_sent_twice_counts_once(send: Send, address: str, tmp_path: Path) -> None:
    rows = "".join(map(order, range(1000, 1060)))
    (path := tmp_path / "twice.csv").write_text(HEADER + rows)
    (copy := tmp_path / "copy.csv").write_text(HEADER + rows)
    assert send(address, path)[1].startswith("60 messages to orders in ")
    for same in (path, copy):
        status, output, errors = send(address, same)
        assert (status, errors) == (0, "")
        assert output.splitlines() == [
            f"{same.name}: resuming after 60 messages that are durable already",
            "nothing new for orders: all of it was sent before, or --again sends it once more",
        ]
    assert send(address, path, "--again")[1].startswith("60 messages to orders in ")
    assert send(address, path, "--again")[1].startswith("60 messages to orders in ")
    assert send(address, path, "--stream", "other")[1].startswith("60 messages to orders in ")


def test_a_file_that_was_interrupted_goes_on_where_it_was(send: Send, address: str, tmp_path: Path) -> None:
    (path := tmp_path / "half.csv").write_text(
        HEADER + "".join(order(number if number != 2025 else "odd") for number in range(2000, 2060))
    )
    assert send(address, path, "--frame", "10")[0] == 1
    status, output, _ = send(address, path, "--frame", "10", "--on-error", "skip")
    assert status == 0
    going_on, sent = output.splitlines()
    assert going_on == "half.csv: resuming after 20 messages that are durable already"
    assert sent.startswith("39 messages to orders in ")
    status, _, errors = send(address, path, "--frame", "7", "--on-error", "skip")
    assert status == 0
    assert "1 skipped" in errors


def test_a_file_cut_into_other_frames_is_refused_behind_an_interruption(
    send: Send, address: str, tmp_path: Path
) -> None:
    (path := tmp_path / "cut.csv").write_text(
        HEADER + "".join(order(number if number != 3025 else "odd") for number in range(3000, 3060))
    )
    assert send(address, path, "--frame", "10")[0] == 1
    status, _, errors = send(address, path, "--frame", "7", "--on-error", "skip")
    assert status == 1
    assert "was fed before, up to message 20, which is now inside a frame: send the same file with" in errors


def test_a_file_that_has_grown_is_another_one(send: Send, address: str, tmp_path: Path) -> None:
    (path := tmp_path / "grown.csv").write_text(HEADER + "".join(map(order, range(4000, 4010))))
    assert send(address, path)[1].startswith("10 messages to orders in ")
    with path.open("a") as file:
        file.write(order(4010))
    assert send(address, path)[1].startswith("11 messages to orders in ")
    (rest := tmp_path / "rest.csv").write_text(HEADER + order(4011))
    assert send(address, rest)[1].startswith("1 messages to orders in ")


def test_standard_input_is_a_stream_of_its_own_each_time(address: str) -> None:
    for _ in range(2):
        status, output, _ = pipe(address, "--format", "csv", given=HEADER + order(5000))
        assert status == 0
        assert output.startswith("1 messages to orders in ")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("-",), "- has no file ending, so its format is unknown: give --format"),
        (("-", "more", "-", "--format", "json"), "- is given twice: standard input can be read only once"),
        (("a.bin", "--on-error", "skip"), "--on-error skip: binary messages are delimited by their lengths"),
        (
            ("a.bin", "--on-error", "dead-letter"),
            "--on-error dead-letter: only JSON lines are sent as they are",
        ),
        (("a.bin", "--again", "--stream", "a"), "--again sends a new stream: leave --stream out"),
    ],
)
def test_what_standard_input_and_skipping_cannot_do_is_refused(
    send: Send, arguments: tuple[str, ...], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.bin").touch()
    monkeypatch.chdir(tmp_path)
    status, _, errors = send("127.0.0.1:1", *arguments)
    assert status == 2
    assert reason in errors


def test_parquet_on_standard_input_is_refused_with_the_reason(address: str) -> None:
    status, _, errors = pipe(address, "--format", "parquet")
    assert status == 1
    assert "standard input: Parquet is read from its end, which a pipe does not have; give a file" in errors


@pytest.mark.timeout(120)
def test_on_a_terminal_it_says_what_it_waits_for_and_ctrl_c_tells_what_is_durable(address: str) -> None:
    terminal, other_end = pty.openpty()
    os.set_blocking(terminal, False)
    command = [sys.executable, "-m", "bettong", "send", "orders", "-", "--format", "csv", "--frame", "1"]
    environment = {**os.environ, "COLUMNS": "160", "TERM": "xterm"}
    seen = b""

    def shows(text: bytes) -> bool:
        nonlocal seen
        try:
            seen += os.read(terminal, 65536)
        except BlockingIOError:
            pass
        except OSError:  # what wrote there has ended
            return True
        return text in seen

    with subprocess.Popen(
        [*command, "--to", address], stdin=subprocess.PIPE, stderr=other_end, env=environment
    ) as process:
        os.close(other_end)
        assert process.stdin is not None
        process.stdin.write((HEADER + order(1) + order(2) + order(3)).encode())
        process.stdin.flush()
        eventually(lambda: shows(b"waiting for standard input"), seconds=60)
        assert b"3 messages" in seen
        process.send_signal(signal.SIGINT)
        eventually(lambda: shows(b"the first 3 messages to orders are durable"))
        assert process.wait(30) == 130
        process.stdin.close()
    assert b"standard input: the first 3 messages to orders are durable" in seen
    os.close(terminal)


def test_a_client_says_what_its_frames_wait_for(tmp_path: Path) -> None:
    with sender_alone(tmp_path, {"BETTONG_SENDER_CREDITS": "2"}, answered_bytes_max=1000) as (
        address,
        pid,
        _,
    ):
        client = Sender(address, "orders")
        assert client.hindrance == ""
        client.send_messages(orders(range(500), "A"))
        assert client.hindrance == f"receipts of sender {address}"
        client.send_messages(orders(range(500), "A"))
        eventually(lambda: "grants no credit for another frame" in client.hindrance)
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: f"sender {address} is away (UNAVAILABLE" in client.hindrance)
        client.abandon()
