"""Reading results over gRPC: the receiver's service and the client's iterator, with a real broker and Redis."""

import itertools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest

from bettong.client.subscriber import Position, Result, Subscriber
from bettong.errors import ClientError, RefusedError
from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from bettong.v1 import subscribe_pb2 as pb
from bettong.v1.subscribe_pb2_grpc import SubscribeServiceStub
from tests.samples.result_frames import Note, columns, dead_letter, rows
from tests.servers.closed_port import closed_port
from tests.servers.receiver_process import PARTITIONS, Feed, ReceiverProcess, Store
from tests.waiting import eventually

SUBSCRIBERS_MAX = 3


@pytest.fixture(scope="module")
def receiver(
    kafka: KafkaBroker,
    redis_server: RedisServer,
    tmp_path_factory: pytest.TempPathFactory,
    unique_name: Callable[..., str],
) -> Iterator[ReceiverProcess]:
    """A running receiver without files, with 100 frames in each partition of `raw` and a few in the other sinks."""
    one = ReceiverProcess(
        unique_name("subscriber"),
        tmp_path_factory.mktemp("receiver"),
        kafka=kafka.bootstrap,
        redis=redis_server.url,
        BETTONG_RECEIVER_SUBSCRIBERS_MAX=str(SUBSCRIBERS_MAX),
        BETTONG_RECEIVER_DIR=None,
    )
    feed = Feed(one.name, kafka.bootstrap)
    for partition in range(PARTITIONS):
        feed.append("raw", partition, itertools.chain.from_iterable(twice(partition, 1, 100)))
    feed.append("notes", 0, [columns([Note("a", 1, 0.5)], origin="notes/notes-in/0", sequence=1, previous=0)])
    record = rows([dead_letter(b"bad")], origin="dead-letters/check/1", sequence=1, previous=0)
    feed.append("dead-letters", 1, [record])
    feed.close()
    with one:
        yield one


@pytest.fixture(scope="module")
def feed(receiver: ReceiverProcess, kafka: KafkaBroker) -> Iterator[Feed]:
    one = Feed(receiver.name, kafka.bootstrap)
    yield one
    one.close()


@pytest.fixture
def stub(receiver: ReceiverProcess) -> Iterator[SubscribeServiceStub]:
    with grpc.insecure_channel(receiver.address) as channel:
        yield SubscribeServiceStub(channel)


def message(partition: int, number: int) -> bytes:
    return b"<%d.%d>" % (partition, number)


def twice(partition: int, first: int, last: int) -> Iterator[tuple[bytes, bytes]]:
    """Frames of one message each, each followed by its duplicate."""
    for number in range(first, last + 1):
        value = rows(
            [message(partition, number)],
            origin=f"raw/notes-in/{partition}",
            sequence=number,
            previous=number - 1,
            sent_ns=number,
        )
        yield value, value


def take(results: Iterator[Result], count: int) -> list[Result]:
    return list(itertools.islice(results, count))


def of(results: list[Result], partition: int) -> list[bytes]:
    return [each for result in results if result.position.partition == partition for each in result.messages]


@contextmanager
def subscriber(receiver: ReceiverProcess, sink: str = "raw", **options: object) -> Iterator[Subscriber]:
    with Subscriber(receiver.address, sink, **options) as one:  # type: ignore[arg-type]
        yield one


def test_a_subscriber_gets_each_message_once_in_order_per_partition(receiver: ReceiverProcess) -> None:
    with subscriber(receiver) as one:
        results = take(one, 100 * PARTITIONS)
    for partition in range(PARTITIONS):
        assert of(results, partition) == [message(partition, number) for number in range(1, 101)]
    assert {result.sent_ns for result in results} == set(range(1, 101))


def test_without_a_folder_there_are_no_files_and_everything_else_is_there(
    receiver: ReceiverProcess, redis_server: RedisServer
) -> None:
    store = Store(redis_server.url, receiver.name)
    eventually(lambda: int(store.metrics().get("messages", 0)) >= 100 * PARTITIONS)
    eventually(lambda: len(store.results("raw")) == 100 * PARTITIONS)
    assert not receiver.results.exists()
    store.close()


def test_messages_are_those_of_the_files(receiver: ReceiverProcess) -> None:
    with subscriber(receiver, "notes") as notes, subscriber(receiver, "dead-letters") as dead_letters:
        assert next(notes).messages == [b'{"key":"a","number":1,"price":0.5}']
        assert b'"message":"bad"' in next(dead_letters).messages[0]


@pytest.mark.parametrize("seen", [0, 1, 150, 299])
def test_a_subscriber_resumes_exactly_after_its_positions(receiver: ReceiverProcess, seen: int) -> None:
    with subscriber(receiver) as one:
        before = take(one, seen)
        saved = [position.SerializeToString() for position in one.positions]
    positions = [Position.FromString(each) for each in saved]
    with subscriber(receiver, positions=positions) as one:
        after = take(one, 100 * PARTITIONS - seen)
    for partition in range(PARTITIONS):
        whole = of(before, partition) + of(after, partition)
        assert whole == [message(partition, number) for number in range(1, 101)]


def test_a_duplicate_of_what_was_seen_before_the_position_is_skipped(receiver: ReceiverProcess) -> None:
    """The first frame of each partition is followed by its duplicate, which the table in the position reveals."""
    with subscriber(receiver) as one:
        first = next(one)
    with subscriber(receiver, positions=[first.position]) as one:
        partition = first.position.partition
        again = next(each for each in one if each.position.partition == partition)
    assert again.messages == [message(partition, 2)]


def test_latest_starts_with_the_next_result(
    receiver: ReceiverProcess, feed: Feed, redis_server: RedisServer
) -> None:
    store = Store(redis_server.url, receiver.name)
    eventually(lambda: store.metrics().get("lag") == "0")
    store.close()
    with subscriber(receiver, "notes", start="latest") as one, ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, one)
        eventually(lambda: len(one.positions) == PARTITIONS)
        feed.append(
            "notes", 2, [columns([Note("b", 2, 1.5)], origin="notes/notes-in/2", sequence=1, previous=0)]
        )
        assert coming.result(30.0).messages == [b'{"key":"b","number":2,"price":1.5}']


@pytest.mark.parametrize(
    ("request_", "code", "words"),
    [
        (pb.SubscribeRequest(sink="nope"), "NOT_FOUND", "no sink 'nope'; there are notes, raw, dead-letters"),
        (pb.SubscribeRequest(), "NOT_FOUND", "no sink ''"),
        (
            pb.SubscribeRequest(sink="raw", positions=[pb.Position(partition=99)]),
            "INVALID_ARGUMENT",
            "has partitions 0 to 2",
        ),
        (
            pb.SubscribeRequest(sink="raw", positions=[pb.Position(), pb.Position()]),
            "INVALID_ARGUMENT",
            "two positions for partition 0",
        ),
        (
            pb.SubscribeRequest(sink="raw", positions=[pb.Position(highest={"notes/notes-in/0": 1})]),
            "INVALID_ARGUMENT",
            "is not one of sink 'raw'",
        ),
        (
            pb.SubscribeRequest(sink="raw", positions=[pb.Position(offset=10_000)]),
            "OUT_OF_RANGE",
            "offset 10000 is not in the log",
        ),
    ],
)
def test_a_request_that_cannot_be_served_is_refused_with_its_status(
    stub: SubscribeServiceStub, request_: pb.SubscribeRequest, code: str, words: str
) -> None:
    call = stub.Subscribe(request_, timeout=30.0)
    with pytest.raises(grpc.RpcError):
        next(call)
    assert call.code() is grpc.StatusCode[code]
    assert words in call.details()


def test_one_subscriber_too_many_is_refused_and_let_in_when_another_goes(stub: SubscribeServiceStub) -> None:
    calls = [stub.Subscribe(pb.SubscribeRequest(sink="raw")) for _ in range(SUBSCRIBERS_MAX)]
    for call in calls:
        next(call)
    last = stub.Subscribe(pb.SubscribeRequest(sink="raw"), timeout=30.0)
    with pytest.raises(grpc.RpcError):
        next(last)
    assert last.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "BETTONG_RECEIVER_SUBSCRIBERS_MAX=3" in last.details()
    calls[0].cancel()

    def let_in() -> bool:
        call = stub.Subscribe(pb.SubscribeRequest(sink="raw"), timeout=30.0)
        try:
            return bool(next(call).ByteSize())
        except grpc.RpcError:
            return False
        finally:
            call.cancel()

    eventually(let_in, what="the place of one who went is free")
    for call in calls:
        call.cancel()


def test_subscribers_that_go_are_no_longer_counted(
    receiver: ReceiverProcess, stub: SubscribeServiceStub, redis_server: RedisServer
) -> None:
    store = Store(redis_server.url, receiver.name)
    call = stub.Subscribe(pb.SubscribeRequest(sink="notes"))
    next(call)
    eventually(lambda: store.metrics().get("sessions") == "1")
    call.cancel()
    eventually(lambda: store.metrics().get("sessions") == "0")
    store.close()


def test_a_subscriber_that_does_not_read_slows_nobody(
    receiver: ReceiverProcess, feed: Feed, stub: SubscribeServiceStub
) -> None:
    idle = stub.Subscribe(pb.SubscribeRequest(sink="notes"))
    next(idle)
    large = Note("x" * 100_000, 1, 0.5)
    feed.append(
        "notes",
        1,
        [columns([large] * 5, origin="notes/notes-in/1", sequence=n, previous=n - 1) for n in range(1, 31)],
    )
    with subscriber(receiver, "notes") as one:
        results = [each for each in take(one, 31) if each.position.partition == 1]
    assert sum(len(each.messages) for each in results) >= 5 * 29
    idle.cancel()


def test_an_unknown_sink_is_refused_for_good(receiver: ReceiverProcess) -> None:
    with subscriber(receiver, "nope") as one, pytest.raises(RefusedError, match="there are notes, raw"):
        next(one)


def test_a_receiver_that_cannot_be_reached_is_given_up_after_reconnect_s() -> None:
    with (
        closed_port() as port,
        Subscriber(f"127.0.0.1:{port}", "raw", reconnect_s=0.5) as one,
        pytest.raises(ClientError, match=f"127.0.0.1:{port}: no results of 'raw' .* is it running"),
    ):
        next(one)


def test_closing_ends_an_iterator_that_waits(receiver: ReceiverProcess) -> None:
    one = Subscriber(receiver.address, "notes", start="latest")
    with ThreadPoolExecutor(1) as thread:
        rest = thread.submit(list, one)
        eventually(lambda: len(one.positions) == PARTITIONS)
        one.close()
        assert rest.result(10.0) == []


def test_a_subscriber_survives_kills_of_the_receiver_without_loss_or_double(
    kafka: KafkaBroker, redis_server: RedisServer, tmp_path: Path, unique_name: Callable[..., str]
) -> None:
    receiver = ReceiverProcess(unique_name("cut"), tmp_path, kafka=kafka.bootstrap, redis=redis_server.url)
    feed = Feed(receiver.name, kafka.bootstrap)
    got: list[bytes] = []
    done = threading.Event()

    def read(one: Subscriber) -> None:
        for result in one:
            got.extend(result.messages)
            if len(got) >= 40:
                break
        done.set()

    try:
        receiver.start()
        with Subscriber(receiver.address, "raw") as one, ThreadPoolExecutor(1) as thread:
            reading = thread.submit(read, one)
            for cut in range(2):
                first = 20 * cut + 1
                feed.append("raw", 0, itertools.chain.from_iterable(twice(0, first, first + 9)))
                eventually(lambda least=first: len(got) >= least, seconds=30)  # type: ignore[misc]
                receiver.kill()
                feed.append("raw", 0, itertools.chain.from_iterable(twice(0, first + 10, first + 19)))
                receiver.start()
            eventually(done.is_set, seconds=30)
            reading.result(10.0)
    finally:
        receiver.kill()
        feed.close()
    assert got == [message(0, number) for number in range(1, 41)]
