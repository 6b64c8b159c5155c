"""The Postgres sink: a receiver as a process, killed at any moment, and a real server."""

import json
import random
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from bettong.application.external.postgres import Postgres
from bettong.errors import SettingsError
from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from bettong.schema.schema import schema_of
from bettong_receiver.connectors.postgres import PostgresConnector
from bettong_receiver.delivery.connector import ConnectorUnavailableError
from bettong_receiver.errors import SinkError
from bettong_receiver.progress import SinkPartition
from tests.samples.result_frames import Note
from tests.samples.result_frames import note_frame as frame
from tests.samples.result_frames import note_numbers as expected
from tests.samples.sink_batches import sink_batch
from tests.servers.postgres import PostgresServer
from tests.servers.receiver_process import PARTITIONS, Feed, ReceiverProcess, Store
from tests.waiting import eventually

KEY = SinkPartition("notes", 0)
BEGINNINGS = {KEY: 0}
_TABLE = "(number bigint, price float8, key text, id bigserial)"


@pytest.fixture
def name(unique_name: Callable[..., str]) -> str:
    return unique_name("postgres")


@pytest.fixture
def table(name: str, postgres: PostgresServer) -> str:
    found = name.replace("-", "_")
    postgres.run(f"CREATE TABLE {found} {_TABLE}")
    return found


@pytest.fixture
def receiver(
    name: str,
    table: str,
    kafka: KafkaBroker,
    redis_server: RedisServer,
    postgres: PostgresServer,
    tmp_path: Path,
) -> Iterator[ReceiverProcess]:
    """A receiver that is not started yet; killed at the end."""
    one = ReceiverProcess(
        name,
        tmp_path,
        kafka=kafka.bootstrap,
        redis=redis_server.url,
        destinations=f"notes_to=bettong.Postgres({table!r}, connection='warehouse')",
        connections={"warehouse": {"url": postgres.url}},
    )
    yield one
    one.kill()


def delivered(server: PostgresServer, table: str, partition: int) -> list[Any]:
    statement = f"SELECT number FROM {table} WHERE key = 'p{partition}' ORDER BY id"  # noqa: S608 - our own
    return [number for (number,) in server.run(statement)]


@pytest.mark.parametrize("seed", [20_261_121])
def test_after_many_kills_each_row_is_there_once_and_in_order(
    receiver: ReceiverProcess, feed: Feed, postgres: PostgresServer, table: str, seed: int
) -> None:
    chance = random.Random(seed)
    last = dict.fromkeys(range(PARTITIONS), 0)
    for _ in range(6):
        receiver.launch()
        for partition in last:
            new = chance.randrange(1, 60)
            values = []
            for sequence in range(last[partition] + 1, last[partition] + new + 1):
                values.append(frame(partition, sequence))
                if chance.random() < 0.1:
                    values.append(frame(partition, chance.randrange(1, sequence + 1)))
            feed.append("notes", partition, values)
            last[partition] += new
        wanted = chance.randrange(2 * last[0] + 1)
        eventually(lambda least=wanted: len(delivered(postgres, table, 0)) >= least, seconds=60)  # type: ignore[misc]
        receiver.kill()
    receiver.start()
    for partition, sequence in last.items():
        eventually(
            lambda p=partition, s=sequence: delivered(postgres, table, p) == expected(s),  # type: ignore[misc]
            seconds=30,
            what="all of it",
        )


@pytest.mark.parametrize("seed", [20_261_121])
def test_rows_that_postgres_refuses_are_dead_letters_once_through_kills_and_the_others_are_stored(
    receiver: ReceiverProcess, feed: Feed, store: Store, postgres: PostgresServer, table: str, seed: int
) -> None:
    chance = random.Random(seed)
    postgres.run(f"ALTER TABLE {table} ADD CHECK (number % 7 <> 0)")
    good = [number for number in expected(120) if number % 7]
    bad = [number for number in expected(120) if number % 7 == 0]
    for start in range(1, 121, 30):
        receiver.launch()
        feed.append("notes", 0, [frame(0, sequence) for sequence in range(start, start + 30)])
        wanted = chance.randrange(len(good) * (start + 29) // 120)
        eventually(lambda least=wanted: len(delivered(postgres, table, 0)) >= least, seconds=60)  # type: ignore[misc]
        receiver.kill()
    receiver.start()
    eventually(lambda: delivered(postgres, table, 0) == good, seconds=60, what="all good rows, in order")
    eventually(lambda: len(feed.dead_letters()) >= len(bad), seconds=30)
    found = feed.dead_letters()
    assert [json.loads(dead_letter.message)["number"] for dead_letter in found] == bad
    assert [(each.origin, each.sequence, each.index, each.computation) for each in found] == [
        ("notes/notes-in/0", number // 2, number % 2, "notes") for number in bad
    ]
    assert all("violates check constraint" in each.reason and "23514" in each.reason for each in found)
    eventually(lambda: store.metrics().get("dead_letters") == str(len(bad)), seconds=30)
    assert "violates check constraint" in store.metrics()["dead_letter_last"]
    lines = receiver.content("dead-letters", 0).splitlines()
    assert [json.loads(json.loads(line)["message"])["number"] for line in lines] == bad


@pytest.mark.parametrize("on_error", ["skip", "stop"])
def test_on_error_says_what_becomes_of_a_row_that_postgres_refuses(
    receiver: ReceiverProcess, feed: Feed, store: Store, postgres: PostgresServer, table: str, on_error: str
) -> None:
    receiver.keywords += f", on_error={on_error!r}"
    postgres.run(f"ALTER TABLE {table} ADD CONSTRAINT small CHECK (number <> 4)")
    receiver.start()
    feed.append("notes", 0, [frame(0, sequence) for sequence in range(1, 4)])
    if on_error == "skip":
        eventually(lambda: delivered(postgres, table, 0) == [2, 3, 5, 6, 7], seconds=30)
        eventually(lambda: store.metrics().get("skipped") == "1", seconds=30)
    else:
        eventually(lambda: "violates check constraint" in store.metrics().get("detail", ""), seconds=30)
        assert 4 not in delivered(postgres, table, 0)
        postgres.run(f"ALTER TABLE {table} DROP CONSTRAINT small")
        eventually(lambda: delivered(postgres, table, 0) == expected(3), seconds=60)
    assert feed.dead_letters() == []


def test_a_kill_between_position_and_rows_leaves_neither(
    receiver: ReceiverProcess, feed: Feed, postgres: PostgresServer, table: str
) -> None:
    """The receiver has updated its position, waits for a lock on the table, and is killed there."""
    receiver.start()
    feed.append("notes", 0, [frame(0, 1)])
    eventually(lambda: delivered(postgres, table, 0) == expected(1))
    with psycopg.connect(postgres.url) as other:
        other.execute(f"LOCK TABLE {table} IN EXCLUSIVE MODE")
        feed.append("notes", 0, [frame(0, 2)])
        waiting = f"SELECT 1 FROM pg_locks WHERE relation = '{table}'::regclass AND NOT granted"  # noqa: S608 - our own
        eventually(lambda: postgres.run(waiting), seconds=30, what="the receiver waits for the table")
        receiver.kill()
        eventually(lambda: receiver.process is not None and receiver.process.ending is not None)
    receiver.start()
    feed.append("notes", 0, [frame(0, 3)])
    eventually(lambda: delivered(postgres, table, 0) == expected(3), seconds=30)


def test_files_go_on_while_postgres_is_away_and_it_catches_up(
    name: str, kafka: KafkaBroker, redis_server: RedisServer, feed: Feed, store: Store, tmp_path: Path
) -> None:
    server = PostgresServer()
    receiver = ReceiverProcess(
        name,
        tmp_path,
        kafka=kafka.bootstrap,
        redis=redis_server.url,
        destinations="notes_to=bettong.Postgres('public.notes')",
        connections={"notes": {"url": server.url}},
    )
    try:
        # A table that is missing when Postgres first answers would end the receiver.
        server.start()
        server.run(f"CREATE TABLE notes {_TABLE}")
        server.stop()
        receiver.start()
        feed.append("notes", 1, [frame(1, 1)])
        eventually(
            lambda: store.metrics().get("messages") == "2", what="others go on before it was ever there"
        )
        eventually(
            lambda: "sink notes" in store.metrics().get("detail", ""), what="it says what it waits for"
        )
        server.start()
        eventually(lambda: delivered(server, "notes", 1) == expected(1), seconds=60)

        server.kill()
        feed.append("notes", 1, [frame(1, sequence) for sequence in range(2, 50)])
        eventually(lambda: store.metrics().get("messages") == "98", what="others go on while it is away")
        eventually(lambda: store.metrics().get("state") == "waiting", seconds=30)
        eventually(lambda: int(store.metrics().get("lag/notes", 0)) > 0, what="it says how far behind it is")
        server.start()
        eventually(lambda: delivered(server, "notes", 1) == expected(49), seconds=60)
        eventually(lambda: store.metrics().get("state") == "running", seconds=30)
        eventually(lambda: store.metrics().get("lag/notes") == "0", seconds=30)
    finally:
        receiver.kill()
        server.close()


def test_a_table_that_does_not_fit_is_waited_for_with_all_that_is_wrong(
    receiver: ReceiverProcess, feed: Feed, store: Store, postgres: PostgresServer, table: str
) -> None:
    postgres.run(f"ALTER TABLE {table} ALTER price TYPE text, DROP key, ADD who int NOT NULL")
    receiver.launch()
    eventually(lambda: "does not fit" in store.metrics().get("detail", ""), seconds=60)
    reported = store.metrics()
    assert reported["state"] == "waiting"
    for words in (
        "no column 'key', expected one of type text",
        "column 'price' is text, expected double precision",
        "column 'who' is NOT NULL without a default",
    ):
        assert words in reported["detail"]
    feed.append("notes", 0, [frame(0, 1)])
    postgres.run(f"DROP TABLE {table}")
    postgres.run(f"CREATE TABLE {table} {_TABLE}")
    eventually(lambda: delivered(postgres, table, 0) == expected(1), seconds=60)
    eventually(lambda: store.metrics()["state"] == "running", seconds=30)


def test_a_connection_that_is_not_there_stops_the_start(receiver: ReceiverProcess, tmp_path: Path) -> None:
    (tmp_path / "connections.json").write_text("{}")
    receiver.launch()
    assert receiver.process is not None
    ending = receiver.process.wait(60.0)
    assert ending is not None
    assert ending.status == 4
    assert receiver.said("sink 'notes' needs the connection 'warehouse'")


def test_a_table_that_goes_in_the_middle_is_said_and_waited_for(
    receiver: ReceiverProcess, feed: Feed, store: Store, postgres: PostgresServer, table: str
) -> None:
    receiver.start()
    feed.append("notes", 0, [frame(0, 1)])
    eventually(lambda: delivered(postgres, table, 0) == expected(1))
    postgres.run(f"ALTER TABLE {table} RENAME TO {table}_away")
    feed.append("notes", 0, [frame(0, 2)])
    eventually(lambda: "there is no such table; create it" in store.metrics()["detail"], seconds=30)
    assert store.metrics()["messages"] == "4"
    postgres.run(f"ALTER TABLE {table}_away RENAME TO {table}")
    eventually(lambda: delivered(postgres, table, 0) == expected(2), seconds=60)
    eventually(lambda: store.metrics().get("state") == "running", seconds=30)


def connector(url: str, table: str) -> PostgresConnector:
    return PostgresConnector(url, Postgres(table), schema_of(Note), application=table, sink="s", writer="w")


@pytest.mark.parametrize(
    ("state", "is_the_rows"),
    [
        ("22001", True),
        ("22003", True),
        ("23505", True),
        ("23514", True),
        ("44000", True),
        ("P0001", True),
        ("54000", True),
        ("08006", False),
        ("40001", False),
        ("40P01", False),
        ("53100", False),
        ("55P03", False),
        ("57P01", False),
        ("25006", False),
        ("42501", False),
        ("42P01", False),
        ("XX000", False),
    ],
)
def test_a_rows_own_fault_is_told_from_all_others_by_the_sqlstate(
    postgres: PostgresServer, table: str, *, state: str, is_the_rows: bool
) -> None:
    """A trigger raises that error."""
    postgres.run(
        f"CREATE FUNCTION f_{table}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        f" IF NEW.key = 'bad' THEN RAISE EXCEPTION 'so it is' USING ERRCODE = '{state}'; END IF;"
        f" RETURN NEW; END $$; CREATE TRIGGER t BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION f_{table}()"
    )
    with closing(connector(postgres.url, table)) as one:
        one.open(BEGINNINGS)
        batch = sink_batch(0, [("good", 1, 1.0), ("bad", 2, 1.0)], 2, lambda _: b"without")
        if is_the_rows:
            assert list(one.deliver([batch])) == [KEY]
        else:
            with pytest.raises(SinkError):
                one.deliver([batch])
    assert postgres.run(f"SELECT count(*) FROM {table}") == [(int(is_the_rows),)]  # noqa: S608 - our own


def test_a_constraint_that_is_checked_at_the_commit_refuses_its_rows_only(
    postgres: PostgresServer, table: str
) -> None:
    postgres.run(f"ALTER TABLE {table} ADD UNIQUE (number) DEFERRABLE INITIALLY DEFERRED")
    with closing(connector(postgres.url, table)) as one:
        one.open(BEGINNINGS)
        rows = [("a", 1, 1.0), ("again", 1, 1.0), ("b", 2, 1.0), ("nul\x00", 3, 1.0)]
        refused = one.deliver([sink_batch(0, rows, 2, lambda _: b"without")])
        assert list(refused[KEY]) == [1, 3]
        assert "duplicate key" in refused[KEY][1]
        assert "NUL" in refused[KEY][3]
    assert postgres.run(f"SELECT key FROM {table} ORDER BY id") == [("a",), ("b",)]  # noqa: S608 - our own


def test_a_row_that_postgres_refuses_is_reported_and_stores_no_position(
    postgres: PostgresServer, table: str
) -> None:
    with closing(connector(postgres.url, table)) as one:
        one.open(BEGINNINGS)
        with pytest.raises(SinkError, match=r"delivering: refused: .*NUL"):
            one.deliver([sink_batch(0, [("good", 1, 1.0), ("a\x00b", 2, 1.0)], 2)])
    with closing(connector(postgres.url, table)) as one:
        assert one.open(BEGINNINGS) == {KEY: None}
    assert postgres.run(f"SELECT count(*) FROM {table}") == [(0,)]  # noqa: S608 - our own


def test_names_are_quoted(postgres: PostgresServer, name: str) -> None:
    odd = f'odd "{name}"; DROP TABLE x'
    quoted = '"' + odd.replace('"', '""') + '"'
    postgres.run(f"CREATE SCHEMA {quoted}")
    postgres.run(f"CREATE TABLE {quoted}.{quoted} {_TABLE}")
    with closing(connector(postgres.url, f"{odd}.{odd}")) as one:
        one.open(BEGINNINGS)
        batch = sink_batch(0, [("k'); --", 1, float("inf"))], 1)
        one.deliver([batch])
    assert postgres.run(f"SELECT key, price FROM {quoted}.{quoted}") == [("k'); --", float("inf"))]  # noqa: S608
    assert postgres.run(f"SELECT position FROM {quoted}.bettong_positions") == [(batch.position(),)]  # noqa: S608


def test_a_server_that_is_away_or_refuses_a_password_is_unavailable_and_secrets_stay_secret(
    postgres: PostgresServer, table: str
) -> None:
    away = "postgresql://me:secret@127.0.0.1:1/db?connect_timeout=2"
    with closing(connector(away, table)) as one, pytest.raises(ConnectorUnavailableError) as caught:
        one.open(BEGINNINGS)
    assert "127.0.0.1:1/db" in str(caught.value)
    assert "secret" not in str(caught.value)
    nobody = postgres.url.replace("postgres@", "nobody:secret@")
    with closing(connector(nobody, table)) as one, pytest.raises(ConnectorUnavailableError) as caught:
        one.open(BEGINNINGS)
    assert "nobody" in str(caught.value)
    assert "secret" not in str(caught.value)
    with pytest.raises(SettingsError) as raised:
        connector("no address with a secret", table)
    assert "with a secret" not in str(raised.value)
