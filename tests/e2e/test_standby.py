"""Two processors: one folds, the other takes over when it dies, and back again; every result comes once, in order."""

import json
import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from bettong import metrics
from bettong.client.sender import Sender
from bettong.config.processor import Schedule
from tests.e2e.conftest import ROOT, RunningSuite, StartSuite
from tests.waiting import eventually

TEXT = (ROOT / "LICENSE").read_text() + (ROOT / "docs" / "delivery.md").read_text()
LINES = TEXT.splitlines()
FRAME_LINES = 20
START_S = 120.0


@pytest.mark.timeout(600)
def test_the_second_processor_takes_over_and_the_first_one_takes_it_back(
    start_suite: StartSuite, tmp_path: Path
) -> None:
    """The first one's checkpoint is old by then; its states have moved on."""
    running = start_suite(
        "examples/word_count.py",
        schedule=Schedule.MICRO_BATCH,  # which has a checkpoint; tests/faults/long/standby.toml is resident
        standby=True,
        keep=tmp_path / "kept",
        settings={"spark_master": "local[1]"},
    )
    third = len(LINES) // 3
    send(running, LINES[:third])
    takes_over(running, "processor", "processor-2")
    send(running, LINES[third : 2 * third])
    running.settle()
    takes_over(running, "processor-2", "processor")
    send(running, LINES[2 * third :])
    running.settle()
    assert "another processor has folded" in log(running, "processor")
    running.suite.stop()
    for name in ("processor", "processor-2"):
        assert "Traceback" not in log(running, name)
    seen: Counter[str] = Counter()
    for line in running.all_bytes_of("counts").splitlines():
        result = json.loads(line)
        seen[result["word"]] += 1
        assert result["total"] == seen[result["word"]], "grows by one, in order"
    assert seen == Counter(word for line in LINES for word in line.lower().split())


def takes_over(running: RunningSuite, leader: str, standby: str) -> None:
    """Once the one stands by, kills the other."""
    eventually(lambda: state(running, standby) == "standby", seconds=START_S, what=f"{standby} stands by")
    restarts = running.suite.record.services[leader].restarts
    os.kill(running.suite.record.services[leader].pid, signal.SIGKILL)
    eventually(lambda: state(running, standby) == "running", seconds=START_S, what=f"{standby} takes over")
    eventually(lambda: running.suite.record.services[leader].restarts == restarts + 1)


def state(running: RunningSuite, name: str) -> str | None:
    return running.metrics.live().get(name, {}).get(metrics.STATE.name)


def log(running: RunningSuite, name: str) -> str:
    return running.suite.record.services[name].log.read_text()


def send(running: RunningSuite, lines: list[str]) -> None:
    with Sender(running.sender, "lines") as sender:
        for start in range(0, len(lines), FRAME_LINES):
            sender.send_rows([line.encode() for line in lines[start : start + FRAME_LINES]])
        sender.flush(60)
