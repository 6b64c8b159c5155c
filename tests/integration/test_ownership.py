"""One client a stream: two senders, a real Kafka, and a Redis that goes away, forgets or is asked by strangers."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import grpc
import pytest
from redis import Redis

from bettong.client import Sender
from bettong.edges.redis_store import RedisStore
from bettong.edges.redis_store.leases import ENDED_KEPT_MS
from bettong.errors import RefusedError
from bettong.frames.columns import Columns
from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from bettong.schema.schema import schema_of
from bettong.topics import stage_topic
from bettong.v1.ingest_pb2 import IngestFrame
from tests.samples.sender import Order, orders, rows_frame
from tests.servers.freezing import frozen
from tests.servers.sender_process import LEASE_MS, BareSession, SenderProcess, frames_in, hello, opened, taken
from tests.waiting import eventually

LONG_MS = "60000"

Launch = Callable[..., SenderProcess]


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis that a test may kill, and that forgets everything then."""
    with RedisServer(tmp_path / "redis") as server:
        yield server


@pytest.fixture
def launch(
    kafka: KafkaBroker, own_redis: RedisServer, unique_name: Callable[..., str], tmp_path: Path
) -> Iterator[Launch]:
    """Starts senders of one application: `launch("pod-1", BETTONG_...="...")`, and waits until they serve."""
    name = unique_name()
    with ExitStack() as stack:

        def start(instance: str, **settings: str) -> SenderProcess:
            folder = tmp_path / instance
            folder.mkdir(exist_ok=True)
            process = SenderProcess(
                name,
                folder,
                kafka=kafka.bootstrap,
                redis=own_redis.url,
                **{"BETTONG_INSTANCE": instance, **settings},
            )
            stack.enter_context(process)
            process.settle()
            return process

        yield start


@pytest.fixture(scope="module")
def pods(
    kafka: KafkaBroker,
    redis_server: RedisServer,
    unique_name: Callable[..., str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[SenderProcess, SenderProcess]]:
    """Two senders of one application, for tests that do them no harm and have streams of their own."""
    name, parts = unique_name(), {"kafka": kafka.bootstrap, "redis": redis_server.url}
    with ExitStack() as stack:
        one, two = (
            stack.enter_context(
                SenderProcess(name, tmp_path_factory.mktemp(pod), BETTONG_INSTANCE=pod, **parts)
            )
            for pod in ("pod-1", "pod-2")
        )
        one.settle()
        yield one, two


def frames(first: int, last: int) -> list[IngestFrame]:
    """Frame n holds the orders 10 n to 10 n + 9."""
    return [rows_frame(n, orders(range(10 * n, 10 * n + 10))) for n in range(first, last + 1)]


def test_the_first_sessions_of_a_new_application_wait_for_nobody(
    kafka: KafkaBroker, own_redis: RedisServer, unique_name: Callable[..., str], tmp_path: Path
) -> None:
    """With a lease of a minute, which Redis needs to settle."""
    with SenderProcess(
        unique_name(), tmp_path, kafka=kafka.bootstrap, redis=own_redis.url, BETTONG_SENDER_LEASE_MS=LONG_MS
    ) as sender:
        for stream in ("one", "two"):
            with Sender(sender.address, "orders", stream=stream, reconnect_s=20) as client:
                client.send_messages(orders(range(10)), sequence=1)
                client.flush(20)


def test_a_stream_that_nobody_comes_back_to_is_forgotten_some_minutes_after_it_ended(
    pods: tuple[SenderProcess, SenderProcess], redis_server: RedisServer
) -> None:
    address, names = pods[0].address, ("nameless", "named")
    for stream in (None, names[1]):
        with Sender(address, "orders", stream=stream, new_name=lambda: names[0]) as client:
            client.send_messages(orders(range(10)), sequence=1)
    with RedisStore(redis_server.url, pods[0].name) as store, Redis.from_url(redis_server.url) as redis:
        ended_ms, other_ms = (int(redis.pttl(store.key("stream", f"orders/{name}"))) for name in names)
    assert 0 < ended_ms <= ENDED_KEPT_MS < other_ms


def numbers(kafka: KafkaBroker, sender: SenderProcess, stream: str = "feed") -> list[int]:
    """The numbers of a stream's orders that consumers take, sorted."""
    topic = stage_topic(sender.name, "orders")
    return sorted(
        order.number
        for found in frames_in(kafka.bootstrap, topic).values()
        for frame in taken(found)
        if frame.origin == f"orders/{stream}" and frame.columns is not None
        for order in Columns.of_payload(schema_of(Order), frame.columns).messages()
    )


def appended(kafka: KafkaBroker, sender: SenderProcess, stream: str) -> int:
    """Messages of a stream in the log, repetitions included."""
    topic = stage_topic(sender.name, "orders")
    found = frames_in(kafka.bootstrap, topic).values()
    return sum(frame.count for frames in found for frame in frames if frame.origin == f"orders/{stream}")


def refusal(sender: SenderProcess, client: str, stream: str = "feed") -> tuple[grpc.StatusCode, str, int]:
    """How a client is refused, and the lease it is told of."""
    with BareSession(sender.address, hello(stream=stream, client=client)) as session:
        code, text = session.status()
        return code, text, session.lease_left_ms()


def test_a_second_client_is_refused_at_every_sender_and_told_by_whom_until_the_first_has_ended(
    launch: Launch, kafka: KafkaBroker
) -> None:
    one, two = launch("pod-1", BETTONG_SENDER_LEASE_MS=LONG_MS), launch("pod-2")
    with opened(one.address, client="first") as first:
        first.send(*frames(1, 2))
        first.acknowledged(2)
        for sender in (one, two):
            for client in ("second", ""):
                code, text, left_ms = refusal(sender, client)
                assert code is grpc.StatusCode.ALREADY_EXISTS
                assert "stream 'orders/feed' is fed by another client, ipv4:127.0.0.1:" in text
                assert "at sender 'pod-1' since 20" in text
                assert "end that client, or choose another name" in text
                assert 50_000 < left_ms <= 60_000
        with opened(two.address, stream="other", client="second"):
            first.send(*frames(3, 3))
            first.acknowledged(3)
        first.finish()
    with opened(two.address, client="second") as second:
        second.send(*frames(4, 4))
        second.acknowledged(4)
    assert numbers(kafka, one) == list(range(10, 50))


def test_two_clients_of_the_library_under_one_name_are_refused_in_about_the_lease_time(
    pods: tuple[SenderProcess, SenderProcess],
) -> None:
    sender, _ = pods
    with Sender(sender.address, "orders", "twins") as first:
        with pytest.raises(RefusedError, match=r"ALREADY_EXISTS: stream 'orders/twins' is fed by another"):
            Sender(sender.address, "orders", "twins")
        assert first.send_messages(orders([1])) == 1


def test_a_client_that_reconnects_takes_over_from_its_older_session_also_at_another_sender(
    pods: tuple[SenderProcess, SenderProcess], kafka: KafkaBroker
) -> None:
    one, two = pods
    with opened(one.address, stream="again") as older:
        older.send(*frames(1, 2))
        older.acknowledged(2)
        with BareSession(one.address, hello(stream="again", acknowledged=1)) as newer:
            assert newer.welcome().acknowledged >= 1
            newer.send(*frames(2, 3))
            newer.acknowledged(3)
            code, text = older.status()
            assert code is grpc.StatusCode.ABORTED
            assert "stream 'orders/again' is fed from ipv4:127.0.0.1:" in text
            with BareSession(two.address, hello(stream="again", acknowledged=3)) as newest:
                newest.welcome()
                newest.send(*frames(4, 4))
                newest.acknowledged(4)
                code, text = newer.status()
                assert code is grpc.StatusCode.ABORTED
                assert "is another session's now" in text
    assert numbers(kafka, one, "again") == list(range(10, 50))


def test_a_session_without_a_client_is_one_of_its_own(pods: tuple[SenderProcess, SenderProcess]) -> None:
    sender, _ = pods
    with opened(sender.address, stream="nobody", client=""):
        assert refusal(sender, "", "nobody")[0] is grpc.StatusCode.ALREADY_EXISTS


def test_a_client_with_too_long_an_id_is_refused(pods: tuple[SenderProcess, SenderProcess]) -> None:
    with BareSession(pods[0].address, hello(client="x" * 129)) as session:
        code, text = session.status()
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert "Hello.client has 129 characters, expected at most 128" in text


def test_the_stream_of_a_sender_that_was_killed_is_free_when_its_lease_has_run_out(
    launch: Launch, kafka: KafkaBroker
) -> None:
    one, two = launch("pod-1"), launch("pod-2")
    with opened(one.address, client="first") as first:
        first.send(*frames(1, 2))
        first.acknowledged(2)
        one.kill()
        code, _, left_ms = refusal(two, "second")
        assert code is grpc.StatusCode.ALREADY_EXISTS
        assert left_ms <= LEASE_MS
    with Sender(two.address, "orders", "feed", acknowledged=2) as heir:
        assert heir.send_messages(orders([1000])) == 3
    assert numbers(kafka, two) == [*range(10, 30), 1000]


def test_what_is_durable_is_known_by_name_and_not_appended_again(
    pods: tuple[SenderProcess, SenderProcess], kafka: KafkaBroker
) -> None:
    one, two = pods
    with opened(one.address, stream="durable") as session:
        session.send(*frames(1, 3))
        session.acknowledged(3)
        session.finish()
    with BareSession(two.address, hello(stream="durable", client="knows nothing")) as session:
        assert session.welcome().acknowledged == 3
        session.send(*frames(1, 4))
        assert session.acknowledged(4).credits == 4
        session.finish()
    assert numbers(kafka, one, "durable") == list(range(10, 50))
    assert appended(kafka, one, "durable") == 40


def test_a_sender_that_slept_past_its_lease_takes_nothing_for_a_stream_that_is_anothers(
    launch: Launch, kafka: KafkaBroker
) -> None:
    one, two = launch("pod-1"), launch("pod-2")
    with opened(one.address, client="first") as first:
        first.send(*frames(1, 1))
        first.acknowledged(1)
        with frozen(one):
            first.send(*(rows_frame(n, orders([9000 + n])) for n in (2, 3)))
            second = eventually(lambda: _admitted(two, "second"), seconds=30)
            with second:
                second.send(*frames(2, 3))
                second.acknowledged(3)
                second.finish()
        assert first.status()[0] is grpc.StatusCode.ABORTED
    assert numbers(kafka, one) == list(range(10, 40))


def _admitted(sender: SenderProcess, client: str) -> BareSession | None:
    session = BareSession(sender.address, hello(client=client))
    try:
        session.welcome()
    except grpc.RpcError:
        session.close()
        return None
    return session


def test_a_session_whose_stream_was_given_away_ends(launch: Launch, own_redis: RedisServer) -> None:
    sender = launch("pod-1")
    with opened(sender.address) as session:
        with RedisStore(own_redis.url, sender.name) as store, Redis.from_url(own_redis.url) as client:
            client.hset(store.key("stream", "orders/feed"), "token", "of somebody else")
        code, text = session.status()
    assert code is grpc.StatusCode.ABORTED
    assert "give each a name of its own" in text


def test_a_redis_that_forgot_everything_does_not_give_a_live_stream_away(
    launch: Launch, own_redis: RedisServer, kafka: KafkaBroker
) -> None:
    one, two = launch("pod-1"), launch("pod-2")
    with opened(one.address, client="first") as first:
        first.send(*frames(1, 2))
        first.acknowledged(2)
        own_redis.kill()
        own_redis.start()
        assert refusal(two, "second")[0] is grpc.StatusCode.ALREADY_EXISTS
        first.send(*frames(3, 4))
        first.acknowledged(4)
    assert numbers(kafka, one) == list(range(10, 50))


def test_a_short_absence_of_redis_is_not_noticed_by_a_session_and_no_new_one_is_opened(
    launch: Launch, own_redis: RedisServer, kafka: KafkaBroker
) -> None:
    sender = launch("pod-1", BETTONG_SENDER_LEASE_MS=LONG_MS)
    with opened(sender.address) as session:
        own_redis.kill()
        session.send(*frames(1, 2))
        session.acknowledged(2)
        with BareSession(sender.address, hello(stream="new")) as new:
            code, text = new.status()
        assert code is grpc.StatusCode.UNAVAILABLE
        assert "stream 'orders/new': it is unknown now whether another client feeds it" in text
        assert "Redis at redis://127.0.0.1" in text
        own_redis.start()
        session.send(*frames(3, 4))
        session.acknowledged(4)
        session.finish()
    assert numbers(kafka, sender) == list(range(10, 50))


def test_without_redis_for_longer_than_the_lease_a_session_waits_and_goes_on(
    launch: Launch, own_redis: RedisServer, kafka: KafkaBroker
) -> None:
    sender = launch("pod-1", BETTONG_SENDER_LEASE_MS="8000")
    with opened(sender.address) as session:
        session.send(*frames(1, 1))
        session.acknowledged(1)
        own_redis.kill()
        eventually(lambda: sender.said("sessions wait"), seconds=30)
        session.send(*frames(2, 3))
        assert numbers(kafka, sender) == list(range(10, 20))
        own_redis.start()
        session.acknowledged(3)
        eventually(lambda: sender.said("leases are renewed again") == 1)
    assert sender.said("leases cannot be renewed") == sender.said("sessions wait") == 1
    assert numbers(kafka, sender) == list(range(10, 40))


def test_without_redis_for_two_lease_times_a_session_ends_so_that_its_client_may_look_elsewhere(
    launch: Launch, own_redis: RedisServer, kafka: KafkaBroker
) -> None:
    sender = launch("pod-1")
    with opened(sender.address) as session:
        own_redis.kill()
        eventually(lambda: sender.said("sessions wait"), seconds=30)
        session.send(*frames(1, 1))
        code, text = session.status()
    assert code is grpc.StatusCode.UNAVAILABLE
    assert "this sender does not reach Redis" in text
    assert numbers(kafka, sender) == []
