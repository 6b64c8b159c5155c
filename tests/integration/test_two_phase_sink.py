"""A user's two-phase sink in a receiver as a process, killed at any moment."""

import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from ledger_file import read_ledger
from tests.samples.result_frames import rows
from tests.servers.receiver_process import PARTITIONS, Feed, ReceiverProcess, Store
from tests.waiting import eventually

# Imported as from an application's folder.
FOLDER = Path(__file__).resolve().parents[2] / "examples" / "sqlite_ledger"
OPEN = f"(__import__('sys').path.append({str(FOLDER)!r}) or __import__('ledger_sink')).open_ledger"

# The sink recreates a missing table, so only this makes it fail.
REFUSING = "CREATE TRIGGER no BEFORE INSERT ON ledger BEGIN SELECT RAISE(ABORT, 'not now'); END"


@pytest.fixture
def name(unique_name: Callable[..., str]) -> str:
    return unique_name("ledger")


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def receiver(
    name: str, ledger: Path, kafka: KafkaBroker, redis_server: RedisServer, tmp_path: Path
) -> Iterator[ReceiverProcess]:
    """A receiver that is not started yet; killed at the end."""
    one = ReceiverProcess(
        name,
        tmp_path,
        kafka=kafka.bootstrap,
        redis=redis_server.url,
        destinations=f"raw_to=bettong.TwoPhase({OPEN})",
        connections={"raw": {"path": str(ledger)}},
    )
    yield one
    one.kill()


def frame(partition: int, sequence: int) -> bytes:
    return rows(
        [b"%d" % sequence], origin=f"raw/notes-in/{partition}", sequence=sequence, previous=sequence - 1
    )


def expected(last: int) -> list[bytes]:
    return [b"%d" % sequence for sequence in range(1, last + 1)]


def delivered(ledger: Path, partition: int) -> list[bytes]:
    try:
        return read_ledger(ledger, partition)
    except sqlite3.OperationalError:  # the receiver has not made the tables yet
        return []


@pytest.mark.parametrize("seed", [77])
def test_after_many_kills_each_message_is_there_once_and_in_order(
    receiver: ReceiverProcess, feed: Feed, ledger: Path, seed: int
) -> None:
    chance = random.Random(seed)
    last = 0
    for _ in range(6):
        receiver.launch()
        for sequence in range(last + 1, last + chance.randrange(20, 80)):
            last = sequence
            for partition in range(PARTITIONS):
                feed.append("raw", partition, [frame(partition, sequence)])
        wanted = chance.randrange(last + 1)
        eventually(lambda least=wanted: len(delivered(ledger, 0)) >= least, seconds=60)  # type: ignore[misc]
        receiver.kill()
    receiver.start()
    for partition in range(PARTITIONS):
        eventually(lambda p=partition: delivered(ledger, p) == expected(last), seconds=30)  # type: ignore[misc]


def test_a_kill_between_prepare_and_commit_commits_once(
    receiver: ReceiverProcess, feed: Feed, ledger: Path
) -> None:
    """A trigger makes every commit fail: the receiver prepares, cannot commit, and is killed there."""
    receiver.start()
    feed.append("raw", 0, [frame(0, 1)])
    eventually(lambda: delivered(ledger, 0) == expected(1))
    with closing(sqlite3.connect(ledger, timeout=10)) as file:
        file.execute(REFUSING)
        file.commit()
        feed.append("raw", 0, [frame(0, 2)])
        staged = "SELECT message FROM staged"
        eventually(lambda: file.execute(staged).fetchall() == [(b"2",)], seconds=30, what="it has prepared")
        receiver.kill()
        assert delivered(ledger, 0) == expected(1)
        file.execute("DROP TRIGGER no")
        file.commit()
    feed.append("raw", 0, [frame(0, 3)])
    receiver.start()
    eventually(lambda: delivered(ledger, 0) == expected(3), seconds=30)


def test_what_the_sink_raises_is_said_and_the_others_go_on(
    receiver: ReceiverProcess, feed: Feed, ledger: Path, name: str, redis_server: RedisServer
) -> None:
    receiver.start()
    feed.append("raw", 0, [frame(0, 1)])
    eventually(lambda: delivered(ledger, 0) == expected(1))
    with (
        closing(Store(redis_server.url, name)) as store,
        closing(sqlite3.connect(ledger, timeout=10)) as file,
    ):
        file.execute(REFUSING)
        file.commit()
        feed.append("raw", 0, [frame(0, 2)])
        eventually(lambda: store.metrics().get("messages") == "2", what="files go on")
        eventually(lambda: "IntegrityError: not now" in store.metrics()["detail"], seconds=30)
        file.execute("DROP TRIGGER no")
        file.commit()
        eventually(lambda: delivered(ledger, 0) == expected(2), seconds=30)
        eventually(lambda: store.metrics()["state"] == "running", seconds=30)


def test_a_sink_that_cannot_be_opened_is_waited_for_and_the_others_go_on(
    receiver: ReceiverProcess, feed: Feed, name: str, redis_server: RedisServer, tmp_path: Path
) -> None:
    (tmp_path / "connections.json").write_text("{}")
    receiver.start()
    feed.append("raw", 0, [frame(0, 1)])
    with closing(Store(redis_server.url, name)) as store:
        eventually(lambda: "opening: KeyError: 'path'" in store.metrics().get("detail", ""), seconds=30)
        assert store.metrics()["state"] == "waiting"
        eventually(lambda: store.metrics().get("messages") == "1", what="files go on")
