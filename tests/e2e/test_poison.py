"""A user's function that raises: a dead letter, the stream goes on, and what an operator asks of the running suite.

Tests are in the order in which they run; the last one holds up what the others need.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bettong.cli.ending import end_well
from bettong.cli.main import app as command_line
from bettong.client.sender import Sender
from bettong.local.options import SuiteOptions
from bettong.local.record import find
from bettong.local.suite import Suite
from tests.e2e.held_up import await_named, interrupt_workers
from tests.e2e.poison import Number
from tests.waiting import eventually

PROGRAM = Path(__file__).with_name("poison.py")

Run = Callable[..., list[dict[str, object]]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Of a suite that has had a message which cannot be processed."""
    folder = tmp_path_factory.mktemp("suite")
    options = SuiteOptions(
        application=str(PROGRAM),
        partitions=4,
        keep=folder,
        settings={"snapshot_interval_ms": "0", "spark_master": "local[1]"},
    )
    with Suite(options) as suite:
        with Sender(suite.record.sender, "numbers", "feed") as sender:
            sender.send_messages([Number("a", 1), Number("a", 0), Number("a", 4)])
            sender.send_messages([Number("a", 5)])
        yield folder


@pytest.fixture
def say(folder: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs a command on the suite; what it prints, when it ends well."""

    def say(*line: str) -> str:
        capsys.readouterr()
        code = end_well(command_line, [*line, "--dir", str(folder)], name="bettong")
        captured = capsys.readouterr()
        assert code == 0, captured.err
        return captured.out

    return say


@pytest.fixture
def run(say: Callable[..., str]) -> Run:
    """The JSON objects that a command on the application prints."""

    def run(command: str, *rest: str) -> list[dict[str, object]]:
        reported = say(*command.split(), str(PROGRAM), *rest)
        return [json.loads(text) for text in reported.splitlines() if text.startswith("{")]

    return run


def lines(folder: Path, sink: str) -> list[dict[str, object]]:
    """The results of a sink so far."""
    files = sorted((folder / "results" / sink).glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_bytes().splitlines()]


def test_a_function_that_raises_gives_a_dead_letter_and_the_stream_goes_on(
    folder: Path, say: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    eventually(lambda: len(lines(folder, "shares")) >= 3, seconds=120)
    found = [(each["share"], each["seen"]) for each in lines(folder, "shares")]
    assert found == [(100.0, 1), (25.0, 2), (20.0, 3)]
    eventually(lambda: len(lines(folder, "dead-letters")) >= 1, seconds=60)
    (dead_letter,) = lines(folder, "dead-letters")
    assert dead_letter["computation"] == "divide"
    assert dead_letter["reason"] == "ZeroDivisionError: division by zero"
    assert (dead_letter["origin"], dead_letter["sequence"], dead_letter["index"]) == ("numbers/feed", 1, 1)
    assert json.loads(str(dead_letter["message"])) == {"group": "a", "value": 0}
    monkeypatch.setenv("COLUMNS", "250")

    def is_shown() -> bool:
        status = say("status")
        return "divide" in status and "ZeroDivisionError" in status

    eventually(is_shown, seconds=60, what="the receiver has reported it")


def test_a_dead_letter_is_found_and_sent_again_and_a_second_time_is_nothing_new(run: Run) -> None:
    eventually(lambda: len(run("dead-letters list", "--each", "--json")) == 1, seconds=120)
    (dead_letter,) = run("dead-letters list", "--each", "--json")
    assert (dead_letter["computation"], dead_letter["message"]) == ("divide", '{"group":"a","value":0}')
    run("dead-letters retry", "--only", str(dead_letter["id"]))
    # The code was not mended: it fails again, and that is another dead letter.
    eventually(lambda: len(run("dead-letters list", "--each", "--json")) == 2, seconds=60)
    newest, first = run("dead-letters list", "--each", "--json")
    assert newest["origin"] == f"numbers/dead-letter.{dead_letter['id']}"
    assert (first["id"], first["sent_again"]) == (dead_letter["id"], True)
    run("dead-letters retry", "--only", str(dead_letter["id"]))
    shares = run("replay", "--key", "a", "--json")
    assert [each["message"]["value"] for each in shares] == [1, 0, 4, 5, 0]  # type: ignore[index]


def test_a_key_has_a_history_and_a_state(run: Run) -> None:
    def seen() -> list[object]:
        run("state list", "--json")
        return [each["state"] for each in run("state export", "-") if each["key"] == "a"]

    # A snapshot is saved once the output before it is durable.
    eventually(lambda: seen() == [{"seen": 3}], seconds=60)
    (state,) = run("state get", "a")
    assert (state["computation"], state["state"]) == ("divide", {"seen": 3})
    first, failed, third, *_ = run("replay", "--key", "a", "--json")
    assert first["states"] == [{"computation": "divide", "before": None, "after": {"seen": 1}}]
    assert failed["failures"] == [
        {"computation": "divide", "on_error": "dead-letter", "reason": "ZeroDivisionError: division by zero"}
    ]
    assert third["outputs"] == [{"to": "shares", "message": {"group": "a", "share": 25.0, "seen": 2}}]


# Under micro-batch: tests/e2e/test_lost_frame.py.
@pytest.mark.timely
def test_an_interrupt_is_nothing_and_status_names_a_message_that_takes_long(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    record = find(folder)
    assert record is not None

    def seen() -> list[object]:
        return [each["seen"] for each in lines(folder, "shares") if each["group"] == "b"]

    with Sender(record.sender, "numbers", "long") as sender:
        sender.send_messages([Number("b", 1)])
        eventually(lambda: seen() == [1], seconds=120)
        dead_letters = lines(folder, "dead-letters")
        interrupt_workers(record)
        sender.send_messages([Number("b", 1)])
        eventually(lambda: seen() == [1, 2], seconds=30)
        assert lines(folder, "dead-letters") == dead_letters
        sender.send_messages([Number("b", 1), Number("b", -1)])
        sender.flush(60)
        await_named(folder, capsys, monkeypatch, "origin numbers/long, sequence 3, index 1")
