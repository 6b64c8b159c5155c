"""on_error="stop" with every service a process: the processor ends with the reason, and goes on once mended."""

import json
from contextlib import ExitStack
from pathlib import Path

import pytest

from bettong.client.sender import Sender
from bettong.config.processor import Schedule
from bettong.errors import PoisonError
from bettong.local.options import SuiteOptions
from bettong.local.suite import Suite
from tests.waiting import eventually

PROGRAM = """
from dataclasses import dataclass
import bettong

@dataclass(slots=True)
class Number:
    group: str
    value: int

@dataclass(slots=True)
class Share:
    group: str
    share: float
    seen: int

@dataclass(slots=True)
class Group:
    seen: int = 0

def divide(number: Number, group: Group) -> Share:
    group.seen += 1
    return Share(number.group, {share}, group.seen)

app = bettong.Application("stops")
numbers = app.source("numbers", schema=Number, key="group")
numbers.stateful(divide, state=Group, on_error="stop").sink("shares")
"""
BROKEN = PROGRAM.replace("{share}", "100 / number.value")
MENDED = PROGRAM.replace("{share}", "100 / number.value if number.value else 0.0")
VALUES = [1, 2, 0, 4, 5]


def lines(folder: Path) -> list[tuple[float, int]]:
    """Share and count of each result, in the order of the file."""
    found = [
        json.loads(line)
        for path in (folder / "results" / "shares").glob("*.jsonl")
        for line in path.read_bytes().splitlines()
    ]
    return [(each["share"], each["seen"]) for each in found]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "schedule", [Schedule.RESIDENT, pytest.param(Schedule.MICRO_BATCH, marks=pytest.mark.long)]
)
def test_the_processor_stops_for_good_and_goes_on_with_that_very_message_once_mended(
    tmp_path: Path, schedule: Schedule
) -> None:
    program, folder = tmp_path / "app.py", tmp_path / "kept"
    program.write_text(BROKEN)
    said: list[str] = []
    options = SuiteOptions(
        application=str(program),
        partitions=2,
        schedule=schedule,
        keep=folder,
        settings={"snapshot_interval_ms": "0", "spark_master": "local[1]"},
    )
    with ExitStack() as stack:
        suite = stack.enter_context(Suite(options, say=said.append))
        sender = stack.enter_context(Sender(suite.record.sender, "numbers", stream="feed"))
        for value in VALUES[:2]:
            sender.send_columns({"group": ["a"], "value": [value]})
        eventually(lambda: len(lines(folder)) == 2, seconds=120)
        for value in VALUES[2:]:
            sender.send_columns({"group": ["a"], "value": [value]})
        sender.flush(60)
        eventually(lambda: any("processor stopped for good" in text for text in said), seconds=120)
        assert f"exit code {PoisonError.exit_code}" in said[-1]
        # Not started again, while all others serve on: the next message is taken in.
        sender.send_columns({"group": ["a"], "value": [10]})
        sender.flush(60)
        assert suite.record.services["processor"].restarts == 0
        assert lines(folder) == [(100.0, 1), (50.0, 2)]

    log = (folder / "logs" / "processor.log").read_text()
    (reported,) = [line for line in log.splitlines() if line.startswith("bettong: error:")]
    assert "'divide' (on_error=\"stop\") cannot process a message: ZeroDivisionError: " in reported
    assert "origin numbers/feed, sequence 3, index 0" in reported
    assert reported.endswith('goes on with this very message: {"group":"a","value":0}')

    program.write_text(MENDED)
    with Suite(options):
        eventually(lambda: len(lines(folder)) >= 6, seconds=120)
    assert lines(folder) == [(100.0, 1), (50.0, 2), (0.0, 3), (25.0, 4), (20.0, 5), (10.0, 6)]
