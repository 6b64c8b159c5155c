"""A sender whose Kafka or Redis goes away, whose buffer is full, or that is told to stop."""

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from bettong.application.schema import schema_of
from bettong.frames.columns import Columns
from bettong.local.broker import KafkaBroker
from bettong.local.probes import grpc_serves
from bettong.local.redis_server import RedisServer
from bettong.topics import stage_topic
from bettong.v1.ingest_pb2 import IngestFrame
from tests.integration.log_parts import frozen
from tests.sender_process import BareSession, SenderProcess, frames_in, hello, opened, taken
from tests.sender_samples import PARTITIONS, Order, orders, rows_frame
from tests.waiting import eventually

NOBODY = "127.0.0.1:1"
MEBIBYTE = 1024 * 1024


@pytest.fixture
def launched(
    own_broker: KafkaBroker, redis_server: RedisServer, unique_name: Callable[..., str], tmp_path: Path
) -> Iterator[Callable[..., SenderProcess]]:
    """Launches a sender over the broker that may be killed, without waiting until it serves; stops it after the test."""
    with ExitStack() as stack:

        def launch(**settings: str) -> SenderProcess:
            addresses = {"kafka": own_broker.bootstrap, "redis": redis_server.url}
            process = SenderProcess(unique_name(), tmp_path, **{**addresses, **settings})
            stack.callback(process.stop)
            process.launch()
            return process

        yield launch


def numbers(kafka: KafkaBroker, sender: SenderProcess) -> list[int]:
    """The numbers of all orders that consumers take, sorted."""
    topic = stage_topic(sender.name, "orders")
    return sorted(
        order.number
        for frames in frames_in(kafka.bootstrap, topic).values()
        for frame in taken(frames)
        if frame.columns is not None
        for order in Columns.of_payload(schema_of(Order), frame.columns).messages()
    )


def frames(count: int) -> list[IngestFrame]:
    """Frame n holds the orders 10 n to 10 n + 9."""
    return [rows_frame(n, orders(range(10 * n, 10 * n + 10))) for n in range(1, count + 1)]


def health(sender: SenderProcess) -> int:
    with grpc.insecure_channel(sender.address) as channel:
        request = health_pb2.HealthCheckRequest(service="bettong.v1.IngestService")
        return health_pb2_grpc.HealthStub(channel).Check(request, timeout=10, wait_for_ready=True).status


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
    eventually(lambda: sender.figures().get("state") == "waiting", seconds=60)
    assert sender.figures()["detail"] == waiting
    assert health(sender) == health_pb2.HealthCheckResponse.NOT_SERVING
    with BareSession(sender.address, hello()) as session:
        code, text = session.status()
    assert (code, text) == (grpc.StatusCode.UNAVAILABLE, f"{waiting}; connect again in a while")
    own_broker.start()
    eventually(sender.answers, seconds=60)
    assert health(sender) == health_pb2.HealthCheckResponse.SERVING
    assert sender.said(waiting) == 1
    assert sender.said("Kafka answers") == 1
    with opened(sender.address) as session:
        session.send(*frames(2))
        session.acknowledged(2)
    assert numbers(own_broker, sender) == list(range(10, 30))


def test_a_broker_killed_in_the_middle_loses_nothing_and_a_session_goes_on(
    own_broker: KafkaBroker, launched: Callable[..., SenderProcess]
) -> None:
    sender = launched()
    eventually(sender.answers, seconds=60)
    ours = frames(8)
    with opened(sender.address) as session:
        session.send(*ours[:2])
        session.acknowledged(2)
        with killed(own_broker):
            session.send(*ours[2:6])
            eventually(lambda: sender.figures().get("state") == "waiting", seconds=30)
            assert "waiting for Kafka" in sender.figures()["detail"]
        session.acknowledged(6)
        session.send(*ours[6:])
        session.acknowledged(8)
    eventually(lambda: sender.figures()["state"] == "running")
    assert sender.said("no answer for") == 1
    assert sender.said("Kafka answers again") == 1
    assert numbers(own_broker, sender) == list(range(10, 90))


def test_a_client_that_gives_up_while_the_broker_is_away_resends_and_each_message_counts_once(
    own_broker: KafkaBroker, launched: Callable[..., SenderProcess]
) -> None:
    sender = launched()
    eventually(sender.answers, seconds=60)
    ours = frames(4)
    with killed(own_broker):
        with opened(sender.address) as session:
            session.send(*ours[:3])
            eventually(lambda: int(sender.figures().get("frames", "0")) == 3)
        with opened(sender.address) as session:
            session.send(*ours[:2])
            eventually(lambda: int(sender.figures()["frames"]) == 5)
    with opened(sender.address) as session:
        session.send(*ours)
        session.acknowledged(4)
    assert numbers(own_broker, sender) == list(range(10, 50))
    topic = stage_topic(sender.name, "orders")
    written = sum(frame.count for found in frames_in(own_broker.bootstrap, topic).values() for frame in found)
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
            eventually(lambda: int(sender.figures().get("buffered", "0")) >= MEBIBYTE, seconds=30)
            with BareSession(sender.address, hello(stream="late")) as late:
                assert late.welcome().credits == 0
                assert int(sender.figures()["buffered"]) <= MEBIBYTE + size + 1024
        assert session.acknowledged(20).credits == 20
    assert numbers(own_broker, sender) == list(range(12_000, 252_000))


def test_told_to_stop_it_settles_what_is_under_way_and_ends_its_sessions(
    own_broker: KafkaBroker, launched: Callable[..., SenderProcess]
) -> None:
    sender = launched()
    eventually(sender.answers, seconds=60)
    with opened(sender.address) as session:
        session.send(*frames(3))
        session.acknowledged(3)
        assert sender.process is not None
        sender.process.terminate()
        code, text = session.status()
    assert code is grpc.StatusCode.UNAVAILABLE
    assert text == "the sender stops; connect again and resend what has no receipt"
    ending = sender.process.wait(30.0)
    assert ending is not None
    assert ending.status == 0
    assert not grpc_serves(sender.address)
    assert numbers(own_broker, sender) == list(range(10, 40))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_sender_that_waits_for_a_broker_stops_when_told(
    launched: Callable[..., SenderProcess], number: signal.Signals
) -> None:
    sender = launched(kafka=NOBODY)
    assert sender.process is not None
    eventually(lambda: sender.said("waiting for Kafka"), seconds=60)
    sender.process._popen.send_signal(number)
    ending = sender.process.wait(20.0)
    assert ending is not None
    assert ending.status == 0


def test_without_redis_frames_are_taken_and_the_log_says_once_that_figures_are_missing(
    own_broker: KafkaBroker, launched: Callable[..., SenderProcess]
) -> None:
    sender = launched(redis=f"redis://{NOBODY}/0")
    eventually(sender.answers, seconds=60)
    with opened(sender.address) as session:
        for frame in frames(3):
            session.send(frame)
            session.acknowledged(frame.sequence)
    assert numbers(own_broker, sender) == list(range(10, 40))
    eventually(lambda: sender.said("no live figures"), seconds=30)
    assert sender.said("no live figures") == 1


def test_every_partition_is_opened_before_anything_is_acknowledged(
    own_broker: KafkaBroker, launched: Callable[..., SenderProcess]
) -> None:
    sender = launched()
    eventually(sender.answers, seconds=60)
    with opened(sender.address) as session:
        session.send(rows_frame(1, orders([1])))
        session.acknowledged(1)
        found = frames_in(own_broker.bootstrap, stage_topic(sender.name, "orders"))
    assert [len(each) for each in found.values()].count(1) == PARTITIONS - 1
