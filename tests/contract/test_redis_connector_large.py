"""Many newest results in Redis: in several deliveries, each with its position, as each one blocks Redis."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any

import pytest

from bettong.edges.kafka_log import Record
from bettong.edges.redis_store import RedisSink, RedisStore
from bettong.local.redis_server import RedisServer
from bettong_receiver.connectors.redis_results import RedisConnector
from bettong_receiver.delivery.batcher import SinkBatcher
from bettong_receiver.delivery.connector import ConnectorUnavailableError, MovingPosition
from bettong_receiver.delivery.route import SinkInput, SinkRecord
from bettong_receiver.progress import SinkPartition
from tests.samples.result_frames import rows
from tests.waiting import eventually

INPUT = SinkInput("raw", "app.sink.raw", lambda frame: list(frame.rows or ()))
BEGINNINGS = {SinkPartition("raw", 0): 0, SinkPartition("raw", 1): 0}
NEWEST = 2_500
FRAMES = 60
# Of one frame.
MESSAGES = 50
MESSAGE_BYTES = 1_000
DELIVERY_BYTES_MAX = 200_000


@pytest.fixture
def store(
    redis_server: RedisServer, unique_name: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[RedisStore]:
    monkeypatch.setattr("bettong_receiver.connectors.redis_results._DELIVERY_BYTES_MAX", DELIVERY_BYTES_MAX)
    with RedisStore(redis_server.url, unique_name("large-deliveries")) as one:
        yield one


class Killed(Exception):
    """The process was killed."""


class MeasuredSink(RedisSink):
    """Notes how large deliveries are. `killed_after` so many of them."""

    def __init__(self, store: RedisStore, killed_after: int | None = None) -> None:
        super().__init__(store)
        self.sizes: list[int] = []
        self._killed_after = killed_after

    def deliver(self, *args: Any, messages: Sequence[bytes], **words: Any) -> bool:
        if len(self.sizes) == self._killed_after:
            raise Killed
        self.sizes.append(sum(map(len, messages)))
        return super().deliver(*args, messages=messages, **words)


def connector(store: RedisStore, newest: int = NEWEST) -> RedisConnector:
    return RedisConnector(store, "app", results_max=newest, monotonic_s=lambda: 0.0, on_wait=lambda _: None)


def messages_of(partition: int, offsets: range) -> list[bytes]:
    return [
        b"%d.%d.%d " % (partition, offset, index) + bytes(MESSAGE_BYTES)
        for offset in offsets
        for index in range(MESSAGES)
    ]


def record(partition: int, offset: int) -> SinkRecord[bytes]:
    messages = messages_of(partition, range(offset, offset + 1))
    value = rows(messages, origin=f"raw/x/{partition}", sequence=offset + 1, previous=offset)
    return SinkRecord(INPUT, Record("app.sink.raw", partition, offset, value))


def batcher_of(one: RedisConnector) -> SinkBatcher[bytes]:
    return SinkBatcher("app", [INPUT], beginnings=BEGINNINGS, stored=one.open(BEGINNINGS))


def deliver(one: RedisConnector, batcher: SinkBatcher[bytes], until: int) -> None:
    """A frame of each partition at a time, from where the batcher stands."""
    for offset in range(until):
        standing = {each.partition: progress.offset for each, progress in batcher.progress.items()}
        records = [record(partition, offset) for partition, next_ in standing.items() if next_ <= offset]
        one.deliver(batcher.fold(records))


def newest_of(store: RedisStore, partition: int) -> list[bytes]:
    found = RedisSink(store).results("raw", newest=2 * NEWEST)
    return [each for each in found if each.startswith(b"%d." % partition)]


def wait_for(event: threading.Event) -> None:
    assert event.wait(30.0)


def test_what_waited_while_redis_was_away_is_delivered_a_part_at_a_time(store: RedisStore) -> None:
    with closing(connector(store)) as one:
        sink = one._sink = MeasuredSink(store)
        batcher, is_back = batcher_of(one), threading.Event()
        one._background.start(lambda: wait_for(is_back))
        deliver(one, batcher, FRAMES)
        is_back.set()
        eventually(one._background.idle)
        one.finish()
        frame_bytes = MESSAGES * (MESSAGE_BYTES + 20)
        assert max(sink.sizes) < DELIVERY_BYTES_MAX + frame_bytes
        assert sum(sink.sizes) < NEWEST * (MESSAGE_BYTES + 20) + frame_bytes, "older ones are not sent at all"
    assert [len(newest_of(store, partition)) for partition in (0, 1)] == [NEWEST // 2, NEWEST // 2]
    for partition in (0, 1):
        own = newest_of(store, partition)
        assert own == messages_of(partition, range(FRAMES - len(own) // MESSAGES, FRAMES))
    with closing(connector(store)) as again:
        assert {each.offset for each in batcher_of(again).progress.values()} == {FRAMES}


def test_none_of_them_is_empty_where_the_last_frame_ends_one(store: RedisStore) -> None:
    with closing(connector(store)) as one:
        sink = one._sink = MeasuredSink(store)
        deliver(one, batcher_of(one), 4)
        one.finish()
        assert [size >= DELIVERY_BYTES_MAX for size in sink.sizes] == [True, True]
    with closing(connector(store)) as again:
        assert {each.offset for each in batcher_of(again).progress.values()} == {4}


@pytest.mark.parametrize("killed_after", [0, 1, 4])
def test_after_a_kill_between_two_of_them_each_result_counts_once(
    store: RedisStore, killed_after: int
) -> None:
    with closing(connector(store)) as one:
        one._sink = MeasuredSink(store, killed_after)
        deliver(one, batcher_of(one), 20)
        with pytest.raises(Killed):
            one.finish()
    with closing(connector(store)) as one:
        batcher = batcher_of(one)
        offsets = [each.offset for each in batcher.progress.values()]
        assert sum(offsets) < 40, "some are not delivered"
        assert sum(map(bool, offsets)) == min(killed_after, 2)
        deliver(one, batcher, 20)
        one.finish()
    assert [newest_of(store, each) for each in (0, 1)] == [messages_of(each, range(20)) for each in (0, 1)]


def test_each_of_them_follows_the_stored_position(store: RedisStore) -> None:
    with closing(connector(store)) as one, closing(connector(store)) as other:
        batcher, others = batcher_of(one), batcher_of(other)
        deliver(other, others, 1)
        other.finish()
        deliver(one, batcher, 20)
        with pytest.raises(ConnectorUnavailableError, match="another receiver delivers, too"):
            one.finish()
    assert [newest_of(store, each) for each in (0, 1)] == [messages_of(each, range(1)) for each in (0, 1)]


def test_where_no_results_are_kept_only_positions_that_are_stored_are_encoded(
    store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    encode, encoded = MovingPosition.encode, list[int]()

    def counted(position: MovingPosition, *, length_bytes: int = 0) -> bytes:
        encoded.append(position.key.partition)
        return encode(position, length_bytes=length_bytes)

    monkeypatch.setattr(MovingPosition, "encode", counted)
    with closing(connector(store, newest=0)) as one:
        deliver(one, batcher_of(one), FRAMES)
        one.finish()
    assert sorted(encoded) == [0, 1]
    assert newest_of(store, 0) == []
    with closing(connector(store, newest=0)) as again:
        assert {each.offset for each in batcher_of(again).progress.values()} == {FRAMES}
