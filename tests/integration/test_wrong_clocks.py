"""Appending from a machine whose clock is wrong: the log takes what it sends."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bettong.chaos.clock import MovableClock
from bettong.local.broker import KafkaBroker
from tests.integration.log_parts import FRAME_BYTES_MAX

APPEND = """
import sys, threading
from bettong.edges.kafka_log import LogWriter
from bettong.identifiers import TopicPartition
bootstrap, topic, size = sys.argv[1:]
answered, outcomes = threading.Event(), []
with LogWriter(bootstrap, frame_bytes_max=int(size), buffer_bytes_max=1 << 20) as log:
    log.append(TopicPartition(topic, 0), b"value", lambda outcome: (outcomes.append(outcome), answered.set()))
    answered.wait(30)
print(outcomes[0])
"""


@pytest.mark.parametrize("offset_s", [0.0, 86_400.0, -86_400.0], ids=["right", "ahead", "behind"])
def test_a_clock_that_is_a_day_off_does_not_keep_a_sender_from_the_log(
    kafka: KafkaBroker, topic: str, tmp_path: Path, offset_s: float
) -> None:
    clock = MovableClock(tmp_path / "clock")
    clock.set(offset_s)
    done = subprocess.run(
        [sys.executable, "-c", APPEND, kafka.bootstrap, topic, str(FRAME_BYTES_MAX)],
        env={**os.environ, **clock.environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.strip() == "0", done.stdout + done.stderr[-2000:]
