"""The contract of exactly-once connectors: the same tests against each of them."""

import dataclasses
import random
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

import pytest

from bettong.application.destinations import Postgres
from bettong.application.schema import schema_of
from bettong.edges.foreign_kafka import ClientOptions, TransactionalTopic
from bettong.edges.kafka_log import LogAdmin
from bettong.edges.kafka_log.sizes import batch_bytes_max
from bettong.local.broker import KafkaBroker
from bettong_receiver.connectors.connector import SinkBatch, SinkConnector
from bettong_receiver.connectors.kafka_topic import KafkaConnector
from bettong_receiver.connectors.postgres import PostgresConnector
from bettong_receiver.connectors.two_phase import TwoPhaseConnector
from bettong_receiver.errors import SinkError
from examples.sqlite_ledger import SqliteLedger, read_ledger
from tests.foreign_topic import committed
from tests.postgres_server import PostgresServer
from tests.result_frames import Note

Name = Callable[..., str]
PARTITIONS = (0, 1, 5)
FRAME_BYTES_MAX = 100_000


class System(Protocol):
    """A foreign system, as the tests see it."""

    def connector(self) -> SinkConnector[Any]:
        """Another connector of the same sink, as another receiver would have."""

    def message(self, text: str) -> Any:
        """A message that tells its text."""

    def bad(self) -> Any:
        """A message that the system refuses for good; None where it refuses none by itself."""

    def content(self) -> list[str]:
        """The texts that everybody sees, in the order in which they came."""


class PostgresSystem:
    def __init__(self, server: PostgresServer, name: str) -> None:
        self._server, self._name = server, name.replace("-", "_")
        self._openings = 0
        server.run(
            f'CREATE TABLE "{self._name}" (number bigint CHECK (number < 2), price float8, key text,'
            " id bigserial PRIMARY KEY)"
        )

    def connector(self) -> SinkConnector[Any]:
        self._openings += 1
        return PostgresConnector(
            self._server.url,
            Postgres(self._name),
            schema_of(Note),
            application=self._name,
            sink="notes",
            writer=str(self._openings),
        )

    def message(self, text: str) -> Any:
        return (text, 1, 0.5)

    def bad(self) -> Any:
        return ("bad", 2, 0.5)

    def content(self) -> list[str]:
        statement = f'SELECT key FROM "{self._name}" ORDER BY id'  # noqa: S608 - a name that we made
        return [str(row[0]) for row in self._server.run(statement)]


class KafkaSystem:
    def __init__(self, server: KafkaBroker, name: str) -> None:
        self._server, self._name = server, name
        with LogAdmin(server.bootstrap) as admin:
            admin.create_topics([name], partitions=1, replication=1, frame_bytes_max=FRAME_BYTES_MAX)

    def connector(self) -> SinkConnector[Any]:
        topic = TransactionalTopic(
            ClientOptions("test", {"bootstrap_servers": self._server.bootstrap}),
            topic=self._name,
            positions=f"{self._name}-positions",
            transactional_id=self._name,
        )
        return KafkaConnector(topic, application=self._name, sink="notes")

    def message(self, text: str) -> Any:
        return (None, text.encode())

    def bad(self) -> Any:
        return (None, bytes(batch_bytes_max(FRAME_BYTES_MAX)))

    def content(self) -> list[str]:
        return [value.decode() for _, _, value in committed(self._server.bootstrap, self._name)]


class TwoPhaseSystem:
    def __init__(self, path: Path) -> None:
        self._path = path

    def connector(self) -> SinkConnector[Any]:
        return TwoPhaseConnector("notes", lambda: SqliteLedger(self._path))

    def message(self, text: str) -> Any:
        return text.encode()

    def bad(self) -> Any:
        return None

    def content(self) -> list[str]:
        return [message.decode() for each in PARTITIONS for message in read_ledger(self._path, each)]


@pytest.fixture(params=["postgres", "kafka", "two-phase"])
def system(request: pytest.FixtureRequest, unique_name: Name, tmp_path: Path) -> System:
    if request.param == "kafka":
        return KafkaSystem(request.getfixturevalue("kafka"), unique_name("connector"))
    if request.param == "two-phase":
        return TwoPhaseSystem(tmp_path / "ledger.db")
    return PostgresSystem(request.getfixturevalue("postgres"), unique_name("connector"))


def batch(system: System, partition: int, texts: Sequence[str], offset: int) -> SinkBatch[Any]:
    position = b"\x00position of %d at %d\xff" % (partition, offset)
    return SinkBatch(partition, [system.message(text) for text in texts], offset, position)


def test_a_new_sink_has_no_positions(system: System) -> None:
    for _ in range(2):
        with closing(system.connector()) as connector:
            assert connector.open(PARTITIONS) == {0: None, 1: None, 5: None}


def test_what_is_delivered_is_seen_in_order_and_its_position_found_by_the_next(system: System) -> None:
    with closing(system.connector()) as connector:
        connector.open(PARTITIONS)
        connector.deliver([batch(system, 1, ["a", "é"], 7), batch(system, 5, ["x"], 9)])
        connector.deliver([batch(system, 1, [f"{number}" for number in range(2000)], 8)])
        connector.deliver([batch(system, 0, [], 3)])
    content = system.content()
    numbers = [f"{number}" for number in range(2000)]
    assert [text for text in content if text != "x"] == ["a", "é", *numbers]
    assert content.count("x") == 1
    with closing(system.connector()) as connector:
        assert connector.open(PARTITIONS) == {
            0: batch(system, 0, [], 3).position,
            1: batch(system, 1, [], 8).position,
            5: batch(system, 5, [], 9).position,
        }


def test_an_older_connector_stores_nothing_once_a_newer_one_is_open(system: System) -> None:
    with closing(system.connector()) as old, closing(system.connector()) as new:
        old.open(PARTITIONS)
        old.deliver([batch(system, 0, ["first"], 1)])
        assert new.open(PARTITIONS)[0] == batch(system, 0, [], 1).position
        with pytest.raises(SinkError):
            old.deliver([batch(system, 0, ["zombie"], 2)])
        new.deliver([batch(system, 0, ["second"], 2)])
        with pytest.raises(SinkError):
            old.deliver([batch(system, 1, ["zombie"], 2)])
    assert system.content() == ["first", "second"]


def refusing(batch: SinkBatch[Any]) -> SinkBatch[Any]:
    """A batch whose position names what was refused of it."""
    return dataclasses.replace(
        batch, refusing=lambda refused: batch.position + b" without %d" % sum(1 << place for place in refused)
    )


@pytest.mark.parametrize("seed", [20_261_121])
def test_what_is_refused_is_left_out_and_the_rest_stored_with_a_position_that_names_it(
    system: System, seed: int
) -> None:
    if system.bad() is None:
        assert isinstance(system, TwoPhaseSystem)  # a sink of the user's own: see docs/sinks.md
        return
    chance = random.Random(seed)
    wanted: list[str] = []
    batches: list[tuple[SinkBatch[Any], set[int]]] = []
    with closing(system.connector()) as connector:
        connector.open(PARTITIONS)
        for number in range(12):
            batches = []
            for partition in PARTITIONS:
                texts = [f"{partition}.{number}.{place}" for place in range(chance.randrange(6))]
                one = refusing(batch(system, partition, texts, number))
                bads = {place for place in range(len(texts)) if chance.random() < 0.3}
                for place in bads:
                    one.messages[place] = system.bad()
                batches.append((one, bads))
                wanted += [text for place, text in enumerate(texts) if place not in bads]
            found = connector.deliver([one for one, _ in batches])
            assert {partition: set(places) for partition, places in found.items()} == {
                one.partition: bads for one, bads in batches if bads
            }
            assert all(reason for places in found.values() for reason in places.values())
    assert sorted(system.content()) == sorted(wanted)
    for partition in PARTITIONS:
        mine = [text for text in system.content() if text.startswith(f"{partition}.")]
        assert mine == [text for text in wanted if text.startswith(f"{partition}.")], "in order"
    with closing(system.connector()) as connector:
        assert connector.open(PARTITIONS) == {
            one.partition: one.position
            if not bads or one.refusing is None
            else one.refusing(dict.fromkeys(bads, ""))
            for one, bads in batches
        }


def test_where_nothing_may_be_left_out_a_refusal_stores_nothing(system: System) -> None:
    if system.bad() is None:
        assert isinstance(system, TwoPhaseSystem)
        return
    with closing(system.connector()) as connector:
        connector.open(PARTITIONS)
        one = batch(system, 0, ["good", "bad"], 2)
        one.messages[1] = system.bad()
        with pytest.raises(SinkError):
            connector.deliver([one])
    assert system.content() == []


def test_a_closed_connector_leaves_what_it_delivered_and_nothing_else(system: System) -> None:
    connector = system.connector()
    connector.open(PARTITIONS)
    connector.deliver([batch(system, 0, ["kept"], 1)])
    connector.close()
    connector.close()
    assert system.content() == ["kept"]
