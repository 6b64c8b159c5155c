"""`bettong health` against a real Kafka and Redis: it runs, it goes on, it has stalled, nobody knows."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bettong.cli.ending import end_well
from bettong.cli.main import app as command_line
from bettong.edges.kafka_log import LogAdmin
from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.identifiers import PartitionId
from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from bettong.topics import stage_topic
from tests.integration.log_parts import FRAME_BYTES_MAX, NOBODY, append_all

PROGRAM = """
from dataclasses import dataclass
import bettong

@dataclass
class Note:
    text: str

app = bettong.Application({name!r})
app.source("notes", schema=Note, key="text").sink("out")
"""


class Container:
    """One in which a processor would run, and its probe."""

    def __init__(self, name: str, folder: Path, kafka: KafkaBroker, redis: str) -> None:
        self.topic = stage_topic(name, "notes")
        self.kafka = kafka
        self.store = RedisStore(redis, name)
        self.metrics = LiveMetrics(self.store)
        self.memory = folder / "memory.json"
        self.file = folder / "app.py"
        self.file.write_text(PROGRAM.replace("{name!r}", repr(name)))
        with LogAdmin(kafka.bootstrap) as admin:
            admin.create_topics([self.topic], partitions=2, replication=1, frame_bytes_max=FRAME_BYTES_MAX)

    def health(self, *options: str) -> int:
        return end_well(command_line, ["health", "--memory", str(self.memory), *options], name="bettong")

    def speak(self, state: str, **metrics: str | int) -> None:
        self.metrics.write_live("here", {"state": state, **metrics}, 60)

    def age(self, seconds: float) -> None:
        """As if the last look had been earlier."""
        memory = json.loads(self.memory.read_text())
        memory["seen"]["since_s"] -= seconds
        self.memory.write_text(json.dumps(memory))


@pytest.fixture
def container(
    unique_name: Callable[..., str],
    tmp_path: Path,
    kafka: KafkaBroker,
    redis_server: RedisServer,
    monkeypatch: pytest.MonkeyPatch,
) -> Container:
    found = Container(unique_name("health"), tmp_path, kafka, redis_server.url)
    settings = {
        "APPLICATION": found.file,
        "KAFKA": kafka.bootstrap,
        "REDIS": redis_server.url,
        "INSTANCE": "here",
    }
    for name, value in settings.items():
        monkeypatch.setenv(f"BETTONG_{name}", str(value))
    return found


def test_it_runs_when_it_says_so(container: Container, reported: Callable[[], str]) -> None:
    assert container.health("--running") == 7
    assert reported() == "here: has reported nothing to Redis\n"
    container.speak("waiting")
    assert container.health("--running") == 7
    container.speak("waiting", lag=3)  # one partition is held up, the others are folded
    assert container.health("--running") == 0
    container.speak("running")
    assert container.health("--running") == 0


def test_it_is_well_when_it_stands_by(container: Container, reported: Callable[[], str]) -> None:
    container.speak("standby", detail="other is at work")
    assert container.health("--running") == 0
    assert reported() == "here: standby\n"


def test_it_has_stalled_when_records_wait_for_too_long(
    container: Container, reported: Callable[[], str]
) -> None:
    container.speak("running")
    append_all(container.kafka, container.topic, 0, [b"a", b"b", b"c"])
    assert container.health() == 0
    container.age(300)
    assert container.health() == 0
    reported()
    container.age(300)
    assert container.health() == 7
    assert reported().startswith("here: 0 records folded, 3 wait, for 6")
    container.metrics.write_partition(PartitionId("notes", 0), {"offset": 2})
    assert container.health("--stalled-s", "1") == 0


def test_it_has_stalled_when_it_says_nothing(container: Container) -> None:
    assert container.health() == 0
    container.age(600)
    assert container.health() == 7
    container.speak("running")
    assert container.health() == 0


def test_a_container_that_starts_again_begins_anew(container: Container) -> None:
    append_all(container.kafka, container.topic, 0, [b"a"])
    assert container.health() == 0
    container.age(600)
    assert container.health() == 7
    container.speak("running")
    assert container.health() == 7
    assert container.health("--running") == 0
    assert container.health() == 0


def test_a_kafka_that_is_away_is_no_stall(container: Container, monkeypatch: pytest.MonkeyPatch) -> None:
    container.speak("running")
    append_all(container.kafka, container.topic, 0, [b"a"])
    assert container.health() == 0
    container.age(600)
    monkeypatch.setenv("BETTONG_KAFKA", NOBODY)
    assert container.health() == 0
