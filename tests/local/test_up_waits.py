"""What `bettong up` makes of services that do not go on: lines with their reasons, and an exit code. No suite runs."""

from pathlib import Path

import pytest

from bettong.cli.ending import end_well
from bettong.cli.main import app as command_line
from bettong.inspection.services import ProcessFacts, ServiceRow
from bettong.local import background, readiness
from bettong.local.record import ProcessRecord, SuiteRecord

APPLICATION = Path(__file__).parents[2] / "examples" / "word_count.py"
WAITS = ServiceRow("receiver", "waiting", detail="sink rows: there is no such table; create it")
ENDED = ServiceRow(
    "processor",
    "given up",
    detail="stopped for good: exit code 8: cannot process a message",
    process=ProcessFacts(1, 0.0, 0, runs=False, log="x.log", final_status=8),
)


@pytest.mark.parametrize(
    ("rows", "code", "words"),
    [
        ([], 0, ""),
        ([WAITS], 7, "receiver: waiting: sink rows: there is no such table; create it"),
        ([WAITS, ENDED], 8, "processor: given up: stopped for good: exit code 8"),
    ],
)
def test_up_succeeds_only_when_all_goes_on(
    rows: list[ServiceRow],
    code: int,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(background, "up", lambda *_: record_in(tmp_path))
    monkeypatch.setattr(readiness, "await_running", lambda _: rows)
    arguments = ["up", str(APPLICATION), "--dir", str(tmp_path)]
    assert end_well(command_line, arguments, name="bettong") == code
    reported = capsys.readouterr().err
    assert words in reported
    assert ("resumes once the cause is fixed" in reported) == bool(rows)


def test_up_fails_with_the_last_line_of_a_suite_that_has_ended_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "logs" / "suite.log"

    def up(*_: object) -> SuiteRecord:
        log.parent.mkdir()
        log.write_text("word-count runs\nkafka cannot be started again\n")
        return record_in(tmp_path)

    monkeypatch.setattr(background, "up", up)
    assert end_well(command_line, ["up", str(APPLICATION), "--dir", str(tmp_path)], name="bettong") == 6
    reported = capsys.readouterr().err
    assert "the suite has ended" in reported
    assert f"kafka cannot be started again (its log: {log})" in reported


def record_in(folder: Path) -> SuiteRecord:
    """As `background.up` returns it; no suite runs."""
    return SuiteRecord(
        application=str(APPLICATION),
        name="word-count",
        schedule="resident",
        partitions=1,
        compiled=False,
        directory=folder,
        results=None,
        kafka="127.0.0.1:1",
        redis="redis://127.0.0.1:1/0",
        snapshots="redis",
        addresses={"sender": "127.0.0.1:2", "receiver": "127.0.0.1:3"},
        ready=True,
        owner=ProcessRecord.own(),
        services={},
    )
