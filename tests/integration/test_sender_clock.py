"""A sender whose clock is wrong: what it stamps its records with, in a real Kafka."""

import os
import time
from collections.abc import Callable
from pathlib import Path

from bettong.chaos.clock import MovableClock
from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from bettong.topics import stage_topic
from tests.samples.sender import orders, rows_frame
from tests.servers.sender_process import SenderProcess, frames_in, opened

ROOT = Path(__file__).parents[2]
HOUR_S = 3600
MINUTE_NS = 60 * 1_000_000_000


def test_the_log_clock_does_not_follow_a_sender_whose_clock_jumps_ahead(
    kafka: KafkaBroker, redis_server: RedisServer, unique_name: Callable[..., str], tmp_path: Path
) -> None:
    clock = MovableClock(tmp_path / "clock")
    path = os.pathsep.join((clock.environment["PYTHONPATH"], str(ROOT)))
    settings = {**clock.environment, "PYTHONPATH": path}
    with SenderProcess(
        unique_name(), tmp_path, kafka=kafka.bootstrap, redis=redis_server.url, **settings
    ) as sender:
        with opened(sender.address, stream="feed") as session:
            for sequence, hours in enumerate((0, 30, -30, 30), 1):
                clock.set(hours * HOUR_S)
                session.send(rows_frame(sequence, orders([sequence])))
                session.acknowledged(sequence)
            session.finish()
        stamps = [
            frame.ingest_ns
            for found in frames_in(kafka.bootstrap, stage_topic(sender.name, "orders")).values()
            for frame in found
        ]
        assert len(stamps) >= 4
        assert max(abs(stamp - time.time_ns()) for stamp in stamps) < MINUTE_NS
        assert "the clocks of this machine and of Redis differ" in sender.log.read_text()
