"""The receiver as a process, with a real broker and a real Redis: what it delivers through all kinds of failures."""

import json
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from redis import Redis

from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from tests.samples.result_frames import Note, columns, dead_letter, rows
from tests.servers.health import NOT_SERVING, SERVING, health
from tests.servers.receiver_process import PARTITIONS, Feed, ReceiverProcess, Store
from tests.waiting import eventually


@pytest.fixture
def name(unique_name: Callable[..., str]) -> str:
    return unique_name("receiver")


@pytest.fixture
def receiver(
    name: str, kafka: KafkaBroker, redis_server: RedisServer, tmp_path: Path
) -> Iterator[ReceiverProcess]:
    """A receiver that is not started yet; killed at the end."""
    one = ReceiverProcess(name, tmp_path, kafka=kafka.bootstrap, redis=redis_server.url)
    yield one
    one.kill()


def raw(partition: int, sequence: int, previous: int, *, sent_ns: int = 0) -> bytes:
    """A frame of two messages that identify the frame."""
    messages = [b"<%d.%d.%d>" % (partition, sequence, index) for index in range(2)]
    return rows(
        messages, origin=f"raw/notes-in/{partition}", sequence=sequence, previous=previous, sent_ns=sent_ns
    )


def expected(partition: int, last: int) -> bytes:
    return b"".join(b"<%d.%d.0><%d.%d.1>" % (partition, n, partition, n) for n in range(1, last + 1))


def test_each_message_is_delivered_once_to_files_and_redis_and_counted(
    receiver: ReceiverProcess, feed: Feed, store: Store
) -> None:
    now_ns = time.time_ns()
    notes = [Note("a", 1, 0.1), Note("é", -2, 1e300)]
    for partition in range(PARTITIONS):
        feed.append(
            "raw",
            partition,
            [
                raw(partition, 1, 0, sent_ns=now_ns),
                raw(partition, 1, 0),
                raw(partition, 3, 2),
                b"garbage",
                raw(partition, 2, 1, sent_ns=now_ns),
                raw(partition, 3, 2, sent_ns=now_ns),
                raw(partition, 1, 0),
            ],
        )
    feed.append("notes", 1, [columns(notes, origin="notes/notes-in/1", sequence=5, previous=0)])
    feed.append(
        "dead-letters", 2, [rows([dead_letter(b"bad")], origin="dead-letters/x/2", sequence=1, previous=0)]
    )
    receiver.start()
    eventually(lambda: store.metrics().get("lag") == "0", seconds=30, what="everything is delivered")

    for partition in range(PARTITIONS):
        assert receiver.content("raw", partition) == expected(partition, 3)
    lines = receiver.content("notes", 1).splitlines()
    assert [json.loads(line) for line in lines] == [
        {"key": "a", "number": 1, "price": 0.1},
        {"key": "é", "number": -2, "price": 1e300},
    ]
    assert json.loads(receiver.content("dead-letters", 2))["message"] == "bad"
    assert receiver.content("notes", 0) == b""

    eventually(lambda: store.metrics().get("frames") == "10")
    metrics = store.metrics()
    counted = {key: metrics[key] for key in ("messages", "duplicates", "gaps", "unreadable", "dead_letters")}
    assert counted == {
        "messages": "20",
        "duplicates": "6",
        "gaps": "3",
        "unreadable": "3",
        "dead_letters": "1",
    }
    assert metrics["state"] == "running"
    assert (
        metrics["dead_letter_last"] == "x: no"
        or "origin orders/feed, sequence 7" in metrics["dead_letter_last"]
    )
    assert 0 < float(metrics["latency_p50_ms"]) <= float(metrics["latency_max_ms"]) < 60_000
    eventually(lambda: len(store.results("raw")) == 6 * PARTITIONS)
    assert b"".join(each for each in store.results("raw") if each.startswith(b"<1.")) == expected(1, 3)
    assert store.results("notes") == lines


@pytest.mark.parametrize("seed", [20_241_121])
def test_the_files_after_many_kills_are_those_of_an_undisturbed_run(
    receiver: ReceiverProcess, feed: Feed, store: Store, seed: int
) -> None:
    """SIGKILL at random moments, while frames arrive, with retries, zombies and gaps among them."""
    chance = random.Random(seed)
    last = dict.fromkeys(range(PARTITIONS), 0)
    for _ in range(6):
        receiver.launch()
        for _ in range(chance.randrange(1, 8)):
            for partition in range(PARTITIONS):
                feed.append("raw", partition, _disturbed(chance, partition, last))
        if chance.random() < 0.7:
            wanted = chance.randrange(last[0] + 1)
            eventually(lambda least=wanted: len(receiver.content("raw", 0)) >= least, seconds=60)  # type: ignore[misc]
        receiver.kill()
    receiver.start()
    for partition in range(PARTITIONS):
        whole = expected(partition, last[partition])
        eventually(lambda p=partition, w=whole: receiver.content("raw", p) == w, seconds=30, what="all of it")  # type: ignore[misc]
    eventually(lambda: store.metrics().get("messages") == str(2 * sum(last.values())))
    eventually(lambda: len(store.results("raw")) == 2 * sum(last.values()))
    kept = store.results("raw")
    for partition in range(PARTITIONS):
        mine = [each for each in kept if each.startswith(b"<%d." % partition)]
        assert b"".join(mine) == expected(partition, last[partition])


def _disturbed(chance: random.Random, partition: int, last: dict[int, int]) -> list[bytes]:
    """The next frames, with random transmission faults."""
    values = []
    for _ in range(chance.randrange(1, 40)):
        number = last[partition] = last[partition] + 1
        if chance.random() < 0.1:
            values.append(raw(partition, number + 1, number))
        if chance.random() < 0.1 and number > 1:
            old = chance.randrange(1, number)
            values.append(raw(partition, old, old - 1))
        values.append(raw(partition, number, number - 1))
    return values


def test_what_a_redis_that_came_back_older_lacks_is_delivered_again_and_files_stay_whole(
    receiver: ReceiverProcess, feed: Feed, store: Store, name: str, redis_server: RedisServer
) -> None:
    """As after a failover to a replica that lacks the last second. Nobody starts the receiver again."""
    receiver.start()
    feed.append("raw", 0, [raw(0, 1, 0)])
    eventually(lambda: len(store.results("raw")) == 2)
    keys = [f"bettong:{name}:results:raw", f"bettong:{name}:positions:raw"]
    with Redis.from_url(redis_server.url) as client, client.pipeline(transaction=True) as together:
        earlier = {key: client.dump(key) for key in keys}
        feed.append("raw", 0, [raw(0, 2, 1)])
        eventually(lambda: len(store.results("raw")) == 4)
        for key, data in earlier.items():
            together.restore(key, 0, data, replace=True)
        together.execute()
    assert b"".join(store.results("raw")) == expected(0, 1)
    feed.append("raw", 0, [raw(0, 3, 2)])
    eventually(lambda: b"".join(store.results("raw")) == expected(0, 3), what="Redis has all of them")
    eventually(lambda: receiver.content("raw", 0) == expected(0, 3))
    eventually(lambda: store.metrics().get("state") == "running")


def test_sigterm_saves_what_was_delivered_and_ends_well(
    receiver: ReceiverProcess, feed: Feed, store: Store
) -> None:
    feed.append("raw", 0, [raw(0, 1, 0), raw(0, 2, 1)])
    receiver.start()
    eventually(lambda: receiver.content("raw", 0) == expected(0, 2))
    receiver.stop()
    assert receiver.process is not None
    assert receiver.process.ending is not None
    assert receiver.process.ending.status == 0
    position = json.loads((receiver.results / "raw" / "00000.position").read_text().splitlines()[1])
    assert (position["offset"], position["length_bytes"]) == (2, len(expected(0, 2)))
    assert store.metrics()["state"] == "stopping"
    assert len(store.results("raw")) == 4
    feed.append("raw", 0, [raw(0, 3, 2)])
    receiver.start()
    eventually(lambda: receiver.content("raw", 0) == expected(0, 3))


def test_told_to_stop_its_health_says_so_first_and_it_goes_on_for_a_while(
    name: str, kafka: KafkaBroker, redis_server: RedisServer, feed: Feed, tmp_path: Path
) -> None:
    receiver = ReceiverProcess(
        name, tmp_path, kafka=kafka.bootstrap, redis=redis_server.url, BETTONG_DRAIN_MS="3000"
    )
    with receiver:
        assert receiver.process is not None
        receiver.process.terminate()
        eventually(lambda: health(receiver.address) == NOT_SERVING)
        feed.append("raw", 0, [raw(0, 1, 0)])
        ending = receiver.process.wait(30.0)
        assert ending is not None
        assert ending.status == 0
    assert receiver.content("raw", 0) == expected(0, 1)


def test_a_damaged_position_stops_the_start_with_its_name(receiver: ReceiverProcess, feed: Feed) -> None:
    feed.append("raw", 0, [raw(0, 1, 0)])
    receiver.start()
    eventually(lambda: receiver.content("raw", 0) == expected(0, 1))
    receiver.stop()
    position = receiver.results / "raw" / "00000.position"
    position.write_bytes(position.read_bytes()[:-3])
    receiver.launch()
    assert receiver.process is not None
    ending = receiver.process.wait(30.0)
    assert ending is not None
    assert ending.status == 1
    assert receiver.said(f"ERROR {position}: its checksum does not fit")


def test_an_address_in_use_stops_the_start(receiver: ReceiverProcess, tmp_path: Path) -> None:
    receiver.start()
    second = ReceiverProcess(
        receiver.name,
        tmp_path / "second",
        kafka=receiver.command.environment["BETTONG_KAFKA"],
        redis=receiver.command.environment["BETTONG_REDIS"],
        BETTONG_RECEIVER_LISTEN=receiver.address,
    )
    (tmp_path / "second").mkdir()
    second.launch()
    assert second.process is not None
    ending = second.process.wait(30.0)
    assert ending is not None
    assert ending.status == 4
    assert second.said("BETTONG_RECEIVER_LISTEN: cannot listen on")


def test_a_broker_that_is_away_is_waited_for_at_start_and_in_the_middle(
    name: str, redis_server: RedisServer, store: Store, tmp_path: Path
) -> None:
    broker = KafkaBroker(tmp_path / "kafka", heap_mb=256)
    receiver = ReceiverProcess(name, tmp_path, kafka=broker.bootstrap, redis=redis_server.url)
    try:
        receiver.launch()
        eventually(
            lambda: store.metrics().get("state") == "waiting", seconds=30, what="it says that it waits"
        )
        assert "Kafka" in store.metrics()["detail"]
        assert not receiver.answers()
        assert health(receiver.address, "alive") == SERVING
        receiver.stop()
        assert receiver.process is not None
        assert str(receiver.process.ending) == "exit code 0"

        receiver.launch()
        broker.start()
        receiver.wait()
        feed = Feed(name, broker.bootstrap)
        feed.append("raw", 0, [raw(0, 1, 0)])
        eventually(lambda: receiver.content("raw", 0) == expected(0, 1), seconds=30)
        assert store.metrics()["state"] == "running"

        broker.kill()
        eventually(
            lambda: store.metrics().get("state") == "waiting", seconds=40, what="it says that it waits again"
        )
        broker.start()
        feed.append("raw", 0, [raw(0, 2, 1)])
        eventually(lambda: receiver.content("raw", 0) == expected(0, 2), seconds=60)
        eventually(lambda: store.metrics().get("state") == "running", seconds=30)
        feed.close()
    finally:
        receiver.kill()
        broker.kill()


def test_files_go_on_while_redis_is_away_and_redis_catches_up(
    name: str, kafka: KafkaBroker, feed: Feed, tmp_path: Path
) -> None:
    redis = RedisServer(tmp_path / "redis", appendonly=True)
    receiver = ReceiverProcess(
        name, tmp_path, kafka=kafka.bootstrap, redis=redis.url, BETTONG_RECEIVER_REDIS_RESULTS_MAX="10"
    )
    store = Store(redis.url, name)
    try:
        receiver.launch()
        eventually(lambda: receiver.said("Redis"), seconds=30, what="it says that it waits for Redis")
        redis.start()
        receiver.wait()
        feed.append("raw", 0, [raw(0, 1, 0)])
        eventually(lambda: len(store.results("raw")) == 2)
        redis.stop()
        feed.append("raw", 0, [raw(0, number, number - 1) for number in range(2, 101)])
        eventually(lambda: receiver.content("raw", 0) == expected(0, 100), what="files go on")
        eventually(lambda: receiver.said("delivering"), seconds=30, what="it says what Redis does not take")
        redis.start()
        newest = [b"<0.%d.%d>" % (number, index) for number in range(96, 101) for index in range(2)]
        eventually(lambda: store.results("raw") == newest, seconds=30, what="Redis has the newest")
    finally:
        receiver.kill()
        redis.kill()
        store.close()
