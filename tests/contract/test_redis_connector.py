"""The newest results in Redis: after a kill before or after each transaction, and after an outage."""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from redis import Redis

from bettong.edges.kafka_log import Record
from bettong.edges.redis_store import RedisSink, RedisStore
from bettong.errors import StoreUnavailableError
from bettong.local.redis_server import RedisServer
from bettong_receiver.connectors.redis_results import RedisConnector
from bettong_receiver.delivery.batcher import SinkBatcher
from bettong_receiver.delivery.connector import ConnectorUnavailableError
from bettong_receiver.delivery.route import SinkInput, SinkRecord
from bettong_receiver.progress import SinkPartition
from tests.samples.result_frames import rows
from tests.waiting import eventually

PARTITIONS = 3
RECORDS = 4
NEWEST = 5
BEGINNINGS: dict[SinkPartition, int] = {SinkPartition("raw", partition): 0 for partition in range(PARTITIONS)}
INPUT = SinkInput("raw", "app.sink.raw", lambda frame: list(frame.rows or ()))


class Killed(Exception):
    """The process was killed."""


class Faulty(RedisSink):
    """Fails at one transaction: before it runs, or by losing only its answer."""

    def __init__(self, store: RedisStore, error: Exception, *, at: int, behind: bool) -> None:
        super().__init__(store)
        self.calls = 0
        self._error, self._at, self._behind = error, at, behind

    def deliver(self, *args: Any, **words: Any) -> bool:
        self.calls += 1
        fails = self.calls - 1 == self._at
        if fails and not self._behind:
            raise self._error
        done = super().deliver(*args, **words)
        if fails:
            raise self._error
        return done


@pytest.fixture
def store(redis_server: RedisServer, unique_name: Callable[..., str]) -> Iterator[RedisStore]:
    with RedisStore(redis_server.url, unique_name("redis-connector")) as one:
        yield one


def connector(store: RedisStore, on_wait: Callable[[str | None], None] = lambda _: None) -> RedisConnector:
    return RedisConnector(store, "app", results_max=NEWEST, monotonic_s=lambda: 0.0, on_wait=on_wait)


def record(partition: int, offset: int) -> SinkRecord[bytes]:
    messages = [b"%d.%d.%d" % (partition, offset, index) for index in range(2)]
    value = rows(messages, origin=f"raw/x/{partition}", sequence=offset + 1, previous=offset)
    return SinkRecord(INPUT, Record("app.sink.raw", partition, offset, value))


def deliver_all(one: RedisConnector) -> None:
    """Delivers from the stored positions to the end of the log, in one transaction per record."""
    batcher = SinkBatcher("app", [INPUT], beginnings=BEGINNINGS, stored=one.open(BEGINNINGS))
    for offset in range(RECORDS):
        for partition in range(PARTITIONS):
            if batcher.progress[SinkPartition("raw", partition)].offset <= offset:
                batches = batcher.fold([record(partition, offset)])
                one.deliver(batches)
                one.finish()
                batcher.delivered(batches, {})


def test_a_kill_before_or_after_every_transaction_loses_and_repeats_nothing(
    redis_server: RedisServer, unique_name: Callable[..., str]
) -> None:
    with RedisStore(redis_server.url, unique_name("undisturbed")) as undisturbed:
        with closing(connector(undisturbed)) as one:
            deliver_all(one)
        positions = [RedisSink(undisturbed).position("raw", each) for each in range(PARTITIONS)]
        results = RedisSink(undisturbed).results("raw", newest=100)
    assert results == [b"2.2.1", b"0.3.0", b"0.3.1", b"1.3.0", b"1.3.1", b"2.3.0", b"2.3.1"][-NEWEST:]
    for at in range(PARTITIONS * RECORDS):
        for behind in (False, True):
            with RedisStore(redis_server.url, unique_name("killed")) as store:
                with closing(connector(store)) as one:
                    one._sink = Faulty(store, Killed(), at=at, behind=behind)
                    with pytest.raises(Killed):
                        deliver_all(one)
                with closing(connector(store)) as one:
                    deliver_all(one)
                assert RedisSink(store).results("raw", newest=100) == results, (at, behind)
                assert [RedisSink(store).position("raw", each) for each in range(PARTITIONS)] == positions, (
                    "counts included"
                )


@pytest.mark.parametrize("behind", [False, True])
def test_after_a_lost_answer_the_transaction_is_repeated_once(store: RedisStore, *, behind: bool) -> None:
    waits: list[str | None] = []
    with closing(connector(store, waits.append)) as one:
        batcher = SinkBatcher("app", [INPUT], beginnings=BEGINNINGS, stored=one.open(BEGINNINGS))
        one._sink = faulty = Faulty(store, StoreUnavailableError("no answer"), at=0, behind=behind)
        one.deliver(batcher.fold([record(0, 0)]))
        one.flush()
        eventually(lambda: faulty.calls == 2 and one._background.idle())
    assert waits == ["no answer", None]
    assert RedisSink(store).results("raw", newest=100) == [b"0.0.0", b"0.0.1"]


def wait_for(event: threading.Event) -> None:
    assert event.wait(30.0)


def test_only_the_newest_results_wait_in_memory_while_redis_is_unavailable(store: RedisStore) -> None:
    with closing(connector(store)) as one:
        batcher = SinkBatcher("app", [INPUT], beginnings=BEGINNINGS, stored=one.open(BEGINNINGS))
        away = threading.Event()
        one._background.start(lambda: wait_for(away))
        for offset in range(100):
            one.deliver(batcher.fold([record(0, offset)]))
            one.flush()
        assert sum(len(each.messages) for each in one._newest["raw"].frames) <= NEWEST + 1
        away.set()
        one.finish()
    assert RedisSink(store).results("raw", newest=100)[-2:] == [b"0.99.0", b"0.99.1"]


def test_what_a_redis_that_came_back_older_lacks_is_delivered_again(
    redis_server: RedisServer, store: RedisStore
) -> None:
    """As after a failover to a replica that lacks the last second."""
    with closing(connector(store)) as one, Redis.from_url(redis_server.url) as client:
        batcher = SinkBatcher("app", [INPUT], beginnings=BEGINNINGS, stored=one.open(BEGINNINGS))
        one.deliver(batcher.fold([record(0, 0)]))
        one.finish()
        keys = [store.key("results", "raw"), store.key("positions", "raw")]
        earlier = {key: client.dump(key) for key in keys}
        one.deliver(batcher.fold([record(0, 1)]))
        one.finish()
        for key, data in earlier.items():
            client.restore(key, 0, data, replace=True)
        one.deliver(batcher.fold([record(0, 2)]))
        with pytest.raises(ConnectorUnavailableError, match="came back as it was earlier"):
            one.finish()
    with closing(connector(store)) as one:
        batcher = SinkBatcher("app", [INPUT], beginnings=BEGINNINGS, stored=one.open(BEGINNINGS))
        one.deliver(batcher.fold([record(0, offset) for offset in range(3)]))
        one.finish()
    newest = [b"0.0.0", b"0.0.1", b"0.1.0", b"0.1.1", b"0.2.0", b"0.2.1"][-NEWEST:]
    assert RedisSink(store).results("raw", newest=100) == newest


def test_of_two_connectors_at_a_time_each_result_counts_once(store: RedisStore) -> None:
    with closing(connector(store)) as one, closing(connector(store)) as other:
        both = [
            (each, SinkBatcher("app", [INPUT], beginnings=BEGINNINGS, stored=each.open(BEGINNINGS)))
            for each in (one, other)
        ]
        for offset in range(2):
            for each, batcher in both:
                each.deliver(batcher.fold([record(0, offset)]))
                each.finish()
        assert RedisSink(store).results("raw", newest=100) == [b"0.0.0", b"0.0.1", b"0.1.0", b"0.1.1"]
        each, batcher = both[0]
        each.deliver(batcher.fold([record(0, 2), record(0, 3)]))
        each.finish()
        each, batcher = both[1]
        each.deliver(batcher.fold([record(0, 2)]))
        with pytest.raises(ConnectorUnavailableError, match="another receiver delivers, too"):
            each.finish()
    assert RedisSink(store).results("raw", newest=100)[-2:] == [b"0.3.0", b"0.3.1"]
