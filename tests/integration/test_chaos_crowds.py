"""Clients that behave badly, at real services: they come and go."""

from collections.abc import Callable
from pathlib import Path

from bettong.chaos.crowds import StalledSubscribers, StreamCrowd
from bettong.frames.frame import FrameKind
from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from bettong.metrics import SESSIONS
from bettong.topics import stage_topic
from tests.samples.sender import refused_in
from tests.servers.receiver_process import Feed, ReceiverProcess, Store
from tests.servers.sender_process import SenderProcess, frames_in, taken
from tests.waiting import eventually

STREAMS = 40


def test_each_stream_of_a_crowd_opens_and_ends(
    kafka: KafkaBroker, redis_server: RedisServer, unique_name: Callable[..., str], tmp_path: Path
) -> None:
    name = unique_name()
    names = map(str, range(STREAMS))
    with SenderProcess(
        name, tmp_path, kafka=kafka.bootstrap, redis=redis_server.url, BETTONG_SENDER_SESSIONS_MAX="64"
    ) as sender:
        sender.settle()
        crowd = StreamCrowd([sender.address], "orders", STREAMS, names=lambda: next(names))
        assert crowd.wait(60.0)
        assert crowd.is_over
        eventually(lambda: sender.metrics().get(SESSIONS.name) == "0", what="every session ends")
        opened = {
            frame.origin
            for frames in frames_in(kafka.bootstrap, stage_topic(name, "orders")).values()
            for frame in frames
            if frame.kind is FrameKind.OPEN
        }
        assert opened == {f"orders/crowd-{number}" for number in range(STREAMS)}


def test_streams_with_a_row_come_back_until_it_is_durable_once(
    kafka: KafkaBroker, redis_server: RedisServer, unique_name: Callable[..., str], tmp_path: Path
) -> None:
    name = unique_name()
    with SenderProcess(
        name, tmp_path, kafka=kafka.bootstrap, redis=redis_server.url, BETTONG_SENDER_SESSIONS_MAX="64"
    ) as sender:
        sender.settle()
        reported: list[str] = []
        crowd = StreamCrowd(
            [sender.address],
            "orders",
            20 * STREAMS,
            row_of=lambda number: b"?%d" % number if number % 2 else None,
            report=reported.append,
        )
        eventually(lambda: crowd.done > STREAMS)
        sender.kill()
        assert crowd.done < 20 * STREAMS
        sender.start()
        assert crowd.wait(60.0)
        assert crowd.is_over
        assert reported[-1].startswith("crowd: 800 of 800 streams, ")
    counted = [
        refused.message
        for frames in frames_in(kafka.bootstrap, stage_topic(name, "orders")).values()
        for frame in taken(frames)
        for refused in refused_in(frame)
    ]
    assert sorted(counted) == sorted(b"?%d" % number for number in range(1, 20 * STREAMS, 2))


def test_a_crowd_that_is_sent_away_opens_no_more(
    kafka: KafkaBroker, redis_server: RedisServer, unique_name: Callable[..., str], tmp_path: Path
) -> None:
    name = unique_name()
    with SenderProcess(name, tmp_path, kafka=kafka.bootstrap, redis=redis_server.url) as sender:
        sender.settle()
        crowd = StreamCrowd([sender.address], "orders", 1_000_000)
        eventually(lambda: crowd.done > 0)
        crowd.close()
        done = crowd.done
        eventually(lambda: sender.metrics().get(SESSIONS.name) == "0", what="every session ends")
        assert crowd.done == done < 1_000_000


def test_stalled_subscribers_stay_until_they_are_sent_away(
    kafka: KafkaBroker, redis_server: RedisServer, unique_name: Callable[..., str], tmp_path: Path
) -> None:
    name = unique_name()
    feed, store = Feed(name, kafka.bootstrap), Store(redis_server.url, name)
    try:
        with ReceiverProcess(name, tmp_path, kafka=kafka.bootstrap, redis=redis_server.url) as receiver:
            sinks = [sink.name for sink in feed.plan.sinks]
            stalled = StalledSubscribers(receiver.address, sinks, 5)
            eventually(lambda: store.metrics().get(SESSIONS.name) == "5", what="all subscribe")
            assert stalled.refused == 0
            stalled.close()
            eventually(lambda: store.metrics().get(SESSIONS.name) == "0", what="all go")
    finally:
        feed.close()
        store.close()
