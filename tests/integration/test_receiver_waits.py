"""A receiver that cannot start, or cannot open a sink, reports the cause within 2 s, and never `running`."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bettong import metrics
from bettong.config.connection_settings import RedisConnection
from bettong.inspection.live.deployment import inspect_remote
from bettong.local.addresses import LOOPBACK, free_ports
from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from tests.integration.log_parts import NOBODY
from tests.servers.postgres import PostgresServer
from tests.servers.receiver_process import ReceiverProcess, Store
from tests.waiting import bound_s, eventually

pytestmark = [pytest.mark.slow, pytest.mark.timely]

TRUE_S = 2.0
START_S = 60.0

Start = Callable[..., ReceiverProcess]


@pytest.fixture
def name(unique_name: Callable[..., str]) -> str:
    return unique_name("waits")


@pytest.fixture
def start(name: str, kafka: KafkaBroker, redis_server: RedisServer, tmp_path: Path) -> Iterator[Start]:
    """Starts a receiver that delivers rows to a table on a missing server. Killed at the end."""
    started: list[ReceiverProcess] = []

    def launched(url: str, *, there: str = kafka.bootstrap) -> ReceiverProcess:
        one = ReceiverProcess(
            name,
            tmp_path,
            kafka=there,
            redis=redis_server.url,
            destinations="notes_to=bettong.Postgres('nowhere', connection='warehouse')",
            connections={"warehouse": {"url": url}},
        )
        started.append(one)
        one.launch()
        return one

    yield launched
    for each in started:
        each.kill()


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("Kafka is away", f"Kafka at {NOBODY}"),
        ("no server", "connecting: "),
        ("a wrong user", 'role "nobody" does not exist'),
        ("no table", "there is no such table; create it: CREATE TABLE"),
    ],
)
def test_it_waits_and_says_why(
    fault: str,
    words: str,
    start: Start,
    store: Store,
    name: str,
    redis_server: RedisServer,
    postgres: PostgresServer,
) -> None:
    urls = {
        "no server": f"postgresql://postgres@{LOOPBACK}:{free_ports(1)[0]}/postgres",
        "a wrong user": postgres.url.replace("postgres@", "nobody@"),
    }
    receiver = start(urls.get(fault, postgres.url), **({"there": NOBODY} if fault == "Kafka is away" else {}))
    seen: set[str] = set()
    eventually(store.metrics, seconds=START_S, what="it says something")
    began_s = time.monotonic()

    def says_why() -> bool:
        record = store.metrics()
        seen.add(record.get(metrics.STATE.name, ""))
        return record.get(metrics.STATE.name) == "waiting" and words in record[metrics.DETAIL.name]

    eventually(says_why, seconds=START_S, what=lambda: f"{words}; it says {store.metrics()}")
    assert time.monotonic() - began_s < bound_s(TRUE_S)
    assert "running" not in seen
    found = inspect_remote(name, RedisConnection(redis_server.url), None)
    (row,) = [row for row in found.services if row.name == "receiver-1"]
    assert (row.state, words in row.detail) == ("waiting", True)
    assert found.overview.lag is None
    holds_up = float(store.metrics()[f"{metrics.HELD.name}/notes"]) > 0
    assert holds_up == (fault != "Kafka is away")
    assert receiver.runs(), "it waits, and does not die again and again"
