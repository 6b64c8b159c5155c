"""A sender whose Kafka or Redis goes away, whose buffer is full, or that is told to stop."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import grpc
import pytest

from bettong.frames.columns import Columns
from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from bettong.schema.schema import schema_of
from bettong.topics import stage_topic
from bettong.v1.ingest_pb2 import IngestFrame
from tests.samples.sender import Order, orders, rows_frame
from tests.servers.freezing import frozen
from tests.servers.health import NOT_SERVING, SERVING, health
from tests.servers.sender_process import BareSession, SenderProcess, frames_in, hello, opened, taken
from tests.waiting import eventually

NOBODY = "127.0.0.1:1"
MEBIBYTE = 1024 * 1024


@pytest.fixture
def launched(
    own_broker: KafkaBroker, redis_server: RedisServer, unique_name: Callable[..., str], tmp_path: Path
) -> Iterator[Callable[..., SenderProcess]]:
    """Launches a sender over the broker that may be killed, and does not wait until it serves."""
    with ExitStack() as stack:

        def launch(**settings: str) -> SenderProcess:
            addresses = {"kafka": own_broker.bootstrap, "redis": redis_server.url}
            process = SenderProcess(unique_name(), tmp_path, **{**addresses, **settings})
            stack.callback(process.stop)
            process.launch()
            return process

        yield launch


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis that a test may kill."""
    with RedisServer(tmp_path / "redis") as server:
        yield server


@pytest.fixture(scope="module")
def steady(
    own_process: KafkaBroker,
    redis_server: RedisServer,
    unique_name: Callable[..., str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[SenderProcess]:
    """A sender that outlives its broker, for tests with streams of their own."""
    own_process.start()
    folder = tmp_path_factory.mktemp("steady")
    with SenderProcess(unique_name(), folder, kafka=own_process.bootstrap, redis=redis_server.url) as process:
        yield process


def numbers(kafka: KafkaBroker, sender: SenderProcess, stream: str = "feed") -> list[int]:
    """The numbers of a stream's orders that consumers take, sorted."""
    topic = stage_topic(sender.name, "orders")
    return sorted(
        order.number
        for frames in frames_in(kafka.bootstrap, topic).values()
        for frame in taken(frames)
        if frame.origin == f"orders/{stream}" and frame.columns is not None
        for order in Columns.of_payload(schema_of(Order), frame.columns).messages()
    )


def frames(count: int) -> list[IngestFrame]:
    """Frame n holds the orders 10 n to 10 n + 9."""
    return [rows_frame(n, orders(range(10 * n, 10 * n + 10))) for n in range(1, count + 1)]


@contextmanager
def killed(broker: KafkaBroker) -> Iterator[None]:
    """A broker that crashes, and starts again."""
    broker.kill()
    try:
        yield
    finally:
        broker.start()


def test_without_a_broker_at_start_it_says_so_waits_and_goes_on(
    own_broker: KafkaBroker, launched: Callable[..., SenderProcess]
) -> None:
    own_broker.stop()
    sender = launched()
    waiting = f"waiting for Kafka at {own_broker.bootstrap}"
    eventually(lambda: sender.metrics().get("state") == "waiting", seconds=60)
    assert sender.metrics()["detail"] == waiting
    assert health(sender.address, "bettong.v1.IngestService") == NOT_SERVING
    assert health(sender.address, "alive") == SERVING
    with BareSession(sender.address, hello()) as session:
        code, text = session.status()
    assert (code, text) == (grpc.StatusCode.UNAVAILABLE, f"{waiting}; connect again in a while")
    own_broker.start()
    eventually(sender.answers, seconds=60)
    assert health(sender.address, "bettong.v1.IngestService") == SERVING
    assert sender.said(f"[warning  ] {waiting}") == 1
    assert sender.said("Kafka answers") == 1
    with opened(sender.address) as session:
        session.send(*frames(2))
        session.acknowledged(2)
    assert numbers(own_broker, sender) == list(range(10, 30))


def test_a_broker_killed_in_the_middle_loses_nothing_and_a_session_goes_on(
    own_broker: KafkaBroker, steady: SenderProcess
) -> None:
    ours = frames(8)
    with opened(steady.address, stream="goes-on") as session:
        session.send(*ours[:2])
        session.acknowledged(2)
        with killed(own_broker):
            session.send(*ours[2:6])
            eventually(lambda: steady.metrics().get("state") == "waiting", seconds=30)
            assert "waiting for Kafka" in steady.metrics()["detail"]
        session.acknowledged(6)
        session.send(*ours[6:])
        session.acknowledged(8)
    eventually(lambda: steady.metrics()["state"] == "running")
    assert 1 <= steady.said("no answer for") == steady.said("Kafka answers again")
    assert numbers(own_broker, steady, "goes-on") == list(range(10, 90))


def test_a_client_that_gives_up_while_the_broker_is_mute_resends_and_each_message_counts_once(
    own_broker: KafkaBroker, steady: SenderProcess
) -> None:
    ours = frames(4)
    with opened(steady.address, stream="gives-up") as session:
        session.send(ours[0])
        session.acknowledged(1)
        before = int(steady.metrics()["frames"])
        with frozen(own_broker):
            session.send(*ours[1:3])
            eventually(lambda: int(steady.metrics()["frames"]) >= before + 2)
            session.close()
            with BareSession(steady.address, hello(stream="gives-up", acknowledged=1)) as second:
                second.welcome()
                second.send(*ours[1:3])
                eventually(lambda: int(steady.metrics()["frames"]) >= before + 4)
    with BareSession(steady.address, hello(stream="gives-up", acknowledged=1)) as third:
        third.welcome()
        third.send(*ours[1:])
        third.acknowledged(4)
    assert numbers(own_broker, steady, "gives-up") == list(range(10, 50))
    found = frames_in(own_broker.bootstrap, stage_topic(steady.name, "orders"))
    written = sum(
        frame.count for each in found.values() for frame in each if frame.origin == "orders/gives-up"
    )
    assert written > 40


def test_a_full_buffer_stops_credits_and_reading_until_it_has_room(
    own_broker: KafkaBroker, launched: Callable[..., SenderProcess]
) -> None:
    sender = launched(
        BETTONG_SENDER_BUFFER_BYTES_MAX=str(MEBIBYTE),
        BETTONG_SENDER_CREDITS="64",
        BETTONG_FRAME_BYTES_MAX=str(256 * 1024),
    )
    eventually(sender.answers, seconds=60)
    schema = schema_of(Order)
    size = len(Columns.of_messages(schema, orders(range(12_000))).payload())
    ours = [
        IngestFrame(
            sequence=n,
            columns=Columns.of_messages(schema, orders(range(12_000 * n, 12_000 * n + 12_000))).payload(),
        )
        for n in range(1, 21)
    ]
    with opened(sender.address) as session:
        with frozen(own_broker):
            session.send(*ours)
            eventually(lambda: int(sender.metrics().get("buffered", "0")) >= MEBIBYTE, seconds=30)
            with BareSession(sender.address, hello(stream="late")) as late:
                assert late.welcome().credits == 0
                assert int(sender.metrics()["buffered"]) <= MEBIBYTE + size + 1024
        assert session.acknowledged(20).credits == 20
    assert numbers(own_broker, sender) == list(range(12_000, 252_000))


def test_told_to_stop_it_flushes_what_is_in_flight_and_ends_its_sessions_also_without_redis(
    own_broker: KafkaBroker, own_redis: RedisServer, launched: Callable[..., SenderProcess]
) -> None:
    sender = launched(redis=own_redis.url, BETTONG_SENDER_LEASE_MS="60000")
    eventually(sender.answers, seconds=60)
    sender.settle()
    with opened(sender.address) as session:
        own_redis.kill()
        session.send(*frames(3))
        session.acknowledged(3)
        eventually(lambda: sender.said("live metrics cannot be written"), seconds=30)
        assert sender.process is not None
        sender.process.terminate()
        code, text = session.status()
    assert code is grpc.StatusCode.UNAVAILABLE
    assert text == "the sender stops; connect again and resend what has no receipt"
    ending = sender.process.wait(30.0)
    assert ending is not None
    assert ending.status == 0
    assert sender.said("live metrics cannot be written") == 1
    assert numbers(own_broker, sender) == list(range(10, 40))


def test_told_to_stop_its_health_says_so_first_and_it_goes_on_for_a_while(
    own_broker: KafkaBroker, launched: Callable[..., SenderProcess]
) -> None:
    sender = launched(BETTONG_DRAIN_MS="3000")
    eventually(sender.answers, seconds=60)
    assert sender.process is not None
    with opened(sender.address) as session:
        sender.process.terminate()
        eventually(lambda: health(sender.address, "bettong.v1.IngestService") == NOT_SERVING)
        session.send(*frames(3))
        session.acknowledged(3)
        assert session.status()[0] is grpc.StatusCode.UNAVAILABLE
    ending = sender.process.wait(30.0)
    assert ending is not None
    assert ending.status == 0
    assert numbers(own_broker, sender) == list(range(10, 40))


def test_a_sender_that_waits_for_a_broker_stops_when_interrupted(
    launched: Callable[..., SenderProcess],
) -> None:
    sender = launched(kafka=NOBODY)
    assert sender.process is not None
    eventually(lambda: sender.said("waiting for Kafka"), seconds=60)
    os.kill(sender.process.pid, signal.SIGINT)
    ending = sender.process.wait(20.0)
    assert ending is not None
    assert ending.status == 0
