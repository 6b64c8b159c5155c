"""What holds up a partition under micro-batch: a frame that was lost, and a message that takes long."""

import re
from pathlib import Path

import pytest

from bettong.chaos.spec import OtherProcess
from bettong.chaos.victims import processes
from bettong.cli.ending import end_well
from bettong.cli.main import app as command_line
from bettong.client import Sender
from bettong.config.processor import Schedule
from bettong.local.options import SuiteOptions
from bettong.local.suite import Suite
from tests.e2e.held_up import await_named, interrupt_workers
from tests.e2e.test_status_truth import (
    BEHIND_A_GAP,
    FILLS_THE_GAP,
    GAP_ALARM_S,
    GAP_SAYS,
    MENDED_S,
    TRUE_S,
    append,
)
from tests.waiting import eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

APPLICATION = """
import threading
from dataclasses import dataclass
import bettong

@dataclass
class Note:
    text: str

def same(note: Note) -> Note:
    if note.text == "long":
        threading.Event().wait(60)
    return note

app = bettong.Application("truth")
app.source("notes", schema=Note, key="text").map(same).sink("rows")
"""


# As tests/e2e/test_poison.py has it of the resident schedule: an interrupt, and a message that takes long.
@pytest.mark.timely
def test_a_lost_frame_is_an_alarm_though_no_batch_follows_and_whoever_folds_next_and_a_long_message_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    program, kept = tmp_path / "app.py", tmp_path / "kept"
    program.write_text(APPLICATION)
    options = SuiteOptions(
        application=str(program),
        partitions=1,
        schedule=Schedule.MICRO_BATCH,
        keep=kept,
        settings={"spark_master": "local[1]", "gap_alarm_s": str(GAP_ALARM_S)},
    )
    monkeypatch.setenv("COLUMNS", "1000")

    def status() -> tuple[int, str]:
        capsys.readouterr()
        return end_well(command_line, ["status", "--dir", str(kept)], name="bettong"), capsys.readouterr().out

    def is_alarm() -> bool:
        code, text = status()
        return code == 7 and re.search(GAP_SAYS, text) is not None

    def results(sink: str = "rows") -> int:
        files = (kept / "results" / sink).glob("*.jsonl")
        return sum(file.read_bytes().count(b"\n") for file in files)

    with Suite(options) as suite, Sender(suite.record.sender, "notes", "feed") as sender:
        sender.send_columns({"text": ["a"]})
        eventually(lambda: results() == 1 and status()[0] == 0, seconds=MENDED_S, what=lambda: f"{status()}")
        append(suite.record, BEHIND_A_GAP)
        eventually(is_alarm, seconds=GAP_ALARM_S + 10, what=lambda: f"{status()}")
        for worker in processes(OtherProcess.WORKER, suite.record.services):
            worker.kill()
        sender.send_columns({"text": ["b"]})
        eventually(lambda: results() == 2, seconds=MENDED_S)
        eventually(is_alarm, seconds=TRUE_S, what=lambda: f"{status()}")
        append(suite.record, FILLS_THE_GAP)
        eventually(lambda: status()[0] == 0, seconds=MENDED_S, what=lambda: f"{status()}")
        interrupt_workers(suite.record)
        sent = results()
        sender.send_columns({"text": ["c"]})
        eventually(lambda: results() == sent + 1, seconds=30)
        assert results("dead-letters") == 0
        sender.send_columns({"text": ["d", "long"]})
        sender.flush(60)
        await_named(kept, capsys, monkeypatch, "origin notes/feed, sequence 4, index 1")
