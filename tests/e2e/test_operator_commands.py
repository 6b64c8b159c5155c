"""What an operator asks of a running suite: dead letters, a key's history, its state. Found by the suite's folder."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bettong.cli.ending import end_well
from bettong.cli.main import app as command_line
from bettong.client.sender import Sender
from bettong.local.options import SuiteOptions
from bettong.local.suite import Suite
from tests.e2e.poison import Number
from tests.waiting import eventually

PROGRAM = Path(__file__).with_name("poison.py")

Run = Callable[..., list[dict[str, object]]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Of a suite that has had a message which cannot be processed."""
    folder = tmp_path_factory.mktemp("suite")
    options = SuiteOptions(
        application=str(PROGRAM), partitions=4, keep=folder, settings={"snapshot_interval_ms": "0"}
    )
    with Suite(options) as suite:
        with Sender(suite.record.sender, "numbers", "feed") as sender:
            sender.send_messages([Number("a", 1), Number("a", 0), Number("a", 4)])
        yield folder


@pytest.fixture
def run(folder: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command on the suite; the JSON objects that it prints, when it ends well."""

    def run(*arguments: str) -> list[dict[str, object]]:
        command, *rest = arguments
        line = [*command.split(), str(PROGRAM), *rest, "--dir", str(folder)]
        capsys.readouterr()
        code = end_well(command_line, line, name="bettong")
        captured = capsys.readouterr()
        assert code == 0, captured.err
        return [json.loads(text) for text in captured.out.splitlines() if text.startswith("{")]

    return run


def test_a_dead_letter_is_found_and_sent_again_and_a_second_time_is_nothing_new(run: Run) -> None:
    eventually(lambda: len(run("dead-letters list", "--json")) == 1, seconds=120)
    (letter,) = run("dead-letters list", "--json")
    assert (letter["computation"], letter["message"]) == ("divide", '{"group":"a","value":0}')
    run("dead-letters retry", "--only", str(letter["letter"]))
    # The code was not mended: it fails again, and that is another letter.
    eventually(lambda: len(run("dead-letters list", "--json")) == 2, seconds=60)
    newest, first = run("dead-letters list", "--json")
    assert newest["origin"] == f"numbers/dead-letter.{letter['letter']}"
    assert (first["letter"], first["sent_again"]) == (letter["letter"], True)
    run("dead-letters retry", "--only", str(letter["letter"]))
    shares = run("replay", "--key", "a", "--json")
    assert [each["message"]["value"] for each in shares] == [1, 0, 4, 0]  # type: ignore[index]


def test_a_key_has_a_history_and_a_state(run: Run) -> None:
    def seen() -> list[dict[str, object]]:
        run("state list", "--json")
        return [each for each in run("state export", "-") if each["key"] == "a"]

    # A snapshot is saved when the next batch begins: more must come.
    eventually(lambda: bool(seen()), seconds=60)
    (state,) = run("state get", "a")
    assert (state["computation"], state["state"]) == ("divide", {"seen": 2})
    first, failed, last, *_ = run("replay", "--key", "a", "--json")
    assert first["states"] == [{"computation": "divide", "before": None, "after": {"seen": 1}}]
    assert failed["failures"] == [
        {"computation": "divide", "on_error": "dead-letter", "reason": "ZeroDivisionError: division by zero"}
    ]
    assert last["outputs"] == [{"to": "shares", "message": {"group": "a", "share": 25.0, "seen": 2}}]
