"""The contract of exactly-once connectors: the same tests against each of them."""

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

import pytest

from bettong.application.external.postgres import Postgres
from bettong.edges.external_kafka import ClientOptions, TransactionalTopic
from bettong.edges.kafka_log import LogAdmin
from bettong.edges.kafka_log.sizes import batch_bytes_max
from bettong.edges.redis_store import RedisSink, RedisStore
from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from bettong.schema.schema import schema_of
from bettong_receiver.background import Background
from bettong_receiver.connectors.files import FileConnector
from bettong_receiver.connectors.kafka_topic import KafkaConnector
from bettong_receiver.connectors.partitioned_files import FolderLine, PartitionedFilesConnector
from bettong_receiver.connectors.postgres import PostgresConnector
from bettong_receiver.connectors.redis_results import RedisConnector
from bettong_receiver.connectors.two_phase import TwoPhaseConnector
from bettong_receiver.delivery.connector import Refused, SinkBatch, SinkConnector
from bettong_receiver.errors import SinkError
from bettong_receiver.formats import formats
from bettong_receiver.positions import PositionKey, decode
from bettong_receiver.progress import SinkPartition
from ledger_file import read_ledger
from ledger_sink import SqliteLedger
from tests.samples.result_frames import Note, planned
from tests.samples.sink_batches import APPLICATION, sink_batch
from tests.servers.external_topic import committed
from tests.servers.postgres import PostgresServer

Name = Callable[..., str]
PARTITIONS = (0, 1, 5)
BEGINNINGS: Mapping[SinkPartition, int] = {SinkPartition("notes", partition): 0 for partition in PARTITIONS}
FRAME_BYTES_MAX = 100_000


class System(Protocol):
    """An external system, as the tests use it."""

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


class FileSystem:
    """Files in a folder, which only one receiver at a time may open."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def connector(self) -> SinkConnector[Any]:
        return FileConnector(
            self._folder,
            APPLICATION,
            formats(planned()),
            background=Background("file-sync"),
            monotonic_s=time.monotonic,
        )

    def message(self, text: str) -> Any:
        return text.encode()

    def bad(self) -> Any:
        return None

    def content(self) -> list[str]:
        paths = [self._folder / "notes" / f"{each:05}.jsonl" for each in PARTITIONS]
        return [line for path in paths for line in path.read_text().splitlines()]


class PartitionedSystem:
    """Files in folders by fields, which only one receiver at a time may open."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def connector(self) -> SinkConnector[Any]:
        return PartitionedFilesConnector(
            self._folder, application=APPLICATION, sink="notes", monotonic_s=time.monotonic
        )

    def message(self, text: str) -> Any:
        return FolderLine("of=notes/all=yes", text.encode())

    def bad(self) -> Any:
        return FolderLine(f"of={'n' * 253}", b"bad")

    def content(self) -> list[str]:
        paths = sorted(self._folder.rglob("*.jsonl"))
        return [line for path in paths for line in path.read_text().splitlines()]


class RedisSystem:
    """The newest results in Redis. Of two connectors each result counts once: see `test_redis_connector`."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store

    def connector(self) -> SinkConnector[Any]:
        return RedisConnector(
            self._store,
            APPLICATION,
            results_max=100_000,
            monotonic_s=time.monotonic,
            on_wait=lambda _: None,
        )

    def message(self, text: str) -> Any:
        return text.encode()

    def bad(self) -> Any:
        return None

    def content(self) -> list[str]:
        return [each.decode() for each in RedisSink(self._store).results("notes", newest=100_000)]


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


@pytest.fixture(params=["files", "partitioned-files", "redis", "postgres", "kafka", "two-phase"])
def system(request: pytest.FixtureRequest, unique_name: Name, tmp_path: Path) -> Iterator[System]:
    name = unique_name("connector")
    if request.param == "kafka":
        yield KafkaSystem(request.getfixturevalue("kafka"), name)
    elif request.param == "two-phase":
        yield TwoPhaseSystem(tmp_path / "ledger.db")
    elif request.param == "files":
        yield FileSystem(tmp_path / "results")
    elif request.param == "partitioned-files":
        yield PartitionedSystem(tmp_path / "results")
    elif request.param == "redis":
        server: RedisServer = request.getfixturevalue("redis_server")
        with RedisStore(server.url, name) as store:
            yield RedisSystem(store)
    else:
        yield PostgresSystem(request.getfixturevalue("postgres"), name)


def batch(system: System, partition: int, texts: Sequence[str], offset: int) -> SinkBatch[Any]:
    return sink_batch(partition, [system.message(text) for text in texts], offset)


def store(connector: SinkConnector[Any], batches: Sequence[SinkBatch[Any]]) -> Refused:
    """Delivers, and flushes deferred work, too."""
    refused = connector.deliver(batches)
    connector.finish()
    return refused


def offsets(stored: Mapping[SinkPartition, bytes | None]) -> dict[int, int]:
    """The offset in each partition's position; 0 without a position."""
    assert stored.keys() == BEGINNINGS.keys()
    return {
        partition: 0 if data is None else decode(PositionKey(APPLICATION, sink, partition), data)[0].offset
        for (sink, partition), data in stored.items()
    }


def test_a_new_sink_has_no_position(system: System) -> None:
    for _ in range(2):
        with closing(system.connector()) as connector:
            assert offsets(connector.open(BEGINNINGS)) == {0: 0, 1: 0, 5: 0}


def test_messages_are_stored_in_order_and_the_next_connector_finds_their_position(system: System) -> None:
    with closing(system.connector()) as connector:
        connector.open(BEGINNINGS)
        store(connector, [batch(system, 1, ["a", "é"], 7), batch(system, 5, ["x"], 9)])
        store(connector, [batch(system, 1, [f"{number}" for number in range(2000)], 8)])
        store(connector, [batch(system, 0, [], 3)])
    content = system.content()
    numbers = [f"{number}" for number in range(2000)]
    assert [text for text in content if text != "x"] == ["a", "é", *numbers]
    assert content.count("x") == 1
    with closing(system.connector()) as connector:
        assert offsets(connector.open(BEGINNINGS)) == {0: 3, 1: 8, 5: 9}


def test_an_older_connector_stores_nothing_once_a_newer_one_is_open(system: System) -> None:
    if isinstance(system, RedisSystem):
        return  # it does not fence off others: see its docstring
    with closing(system.connector()) as old, closing(system.connector()) as new:
        old.open(BEGINNINGS)
        store(old, [batch(system, 0, ["first"], 1)])
        if isinstance(system, FileSystem | PartitionedSystem):
            with pytest.raises(SinkError, match="another receiver writes here"):
                new.open(BEGINNINGS)
            return
        assert offsets(new.open(BEGINNINGS))[0] == 1
        with pytest.raises(SinkError):
            store(old, [batch(system, 0, ["zombie"], 2)])
        store(new, [batch(system, 0, ["second"], 2)])
        with pytest.raises(SinkError):
            store(old, [batch(system, 1, ["zombie"], 2)])
    assert system.content() == ["first", "second"]


def refusing(batch: SinkBatch[Any]) -> SinkBatch[Any]:
    """A batch whose position names its refused messages."""
    return batch._replace(
        refusing=lambda refused: batch.position() + b" without %d" % sum(1 << index for index in refused),
    )


def refuses_nothing(system: System) -> bool:
    return isinstance(system, TwoPhaseSystem | FileSystem | RedisSystem)  # see docs/sinks.md


@pytest.mark.parametrize("seed", [20_261_121])
def test_refused_messages_are_left_out_and_the_position_stored_with_the_rest_names_them(
    system: System, seed: int
) -> None:
    if refuses_nothing(system):
        assert system.bad() is None
        return
    chance = random.Random(seed)
    wanted: list[str] = []
    batches: list[tuple[SinkBatch[Any], set[int]]] = []
    with closing(system.connector()) as connector:
        connector.open(BEGINNINGS)
        for number in range(12):
            batches = []
            for partition in PARTITIONS:
                texts = [f"{partition}.{number}.{index}" for index in range(chance.randrange(6))]
                bad = {index for index in range(len(texts)) if chance.random() < 0.3}
                messages = [
                    system.bad() if index in bad else system.message(text) for index, text in enumerate(texts)
                ]
                batches.append((refusing(sink_batch(partition, messages, number)), bad))
                wanted += [text for index, text in enumerate(texts) if index not in bad]
            found = store(connector, [one for one, _ in batches])
            assert {key: set(reasons) for key, reasons in found.items()} == {
                one.key: bad for one, bad in batches if bad
            }
            assert all(reason for reasons in found.values() for reason in reasons.values())
    assert sorted(system.content()) == sorted(wanted)
    for partition in PARTITIONS:
        own = [text for text in system.content() if text.startswith(f"{partition}.")]
        assert own == [text for text in wanted if text.startswith(f"{partition}.")], "in order"
    with closing(system.connector()) as connector:
        assert connector.open(BEGINNINGS) == {
            one.key: one.position()
            if not bad or one.refusing is None
            else one.refusing(dict.fromkeys(bad, ""))
            for one, bad in batches
        }


def test_if_no_message_may_be_refused_a_refusal_stores_nothing(system: System) -> None:
    if refuses_nothing(system):
        assert system.bad() is None
        return
    with closing(system.connector()) as connector:
        connector.open(BEGINNINGS)
        with pytest.raises(SinkError):
            connector.deliver([sink_batch(0, [system.message("good"), system.bad()], 2)])
    assert system.content() == []


def test_a_closed_connector_leaves_what_it_stored_and_nothing_else(system: System) -> None:
    connector = system.connector()
    connector.open(BEGINNINGS)
    store(connector, [batch(system, 0, ["kept"], 1)])
    if isinstance(system, FileSystem | PartitionedSystem | RedisSystem):
        connector.deliver([batch(system, 0, ["not stored with a position"], 2)])
    connector.close()
    connector.close()
    with closing(system.connector()) as connector:
        assert offsets(connector.open(BEGINNINGS))[0] == 1
    assert system.content() == ["kept"]
