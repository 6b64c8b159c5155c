"""Leases of streams in a real Redis: who holds one, for how long, and what a Redis that forgets does not do."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from redis import Redis

from bettong.edges.redis_store import Claim, Granted, Held, RedisLeases, RedisStore, Settling
from bettong.edges.redis_store.leases import STREAM_KEPT_MS
from bettong.errors import StoreError
from bettong.local.redis_server import RedisServer
from tests.waiting import eventually

SHORT_MS = 200
LONG_MS = 60_000
GRANTED = Granted(0)


def claim(token: str, client: str = "", *, stream: str = "orders/feed", log: str = "log-1") -> Claim:
    return Claim(
        stream=stream, token=token, client=client, instance="sender-1", peer=f"peer of {token}", log=log
    )


@pytest.fixture
def store(redis_server: RedisServer, unique_name: Callable[..., str]) -> Iterator[RedisStore]:
    """Of an application that Redis has known for long."""
    with RedisStore(redis_server.url, unique_name()) as store:
        first = RedisLeases(store, lease_ms=1)
        eventually(lambda: first.acquire(claim("first", stream="orders/first")) == GRANTED)
        with Redis.from_url(redis_server.url) as client:
            client.hset(store.key("epoch"), "since", 0)
        yield store


@pytest.fixture
def client(redis_server: RedisServer) -> Iterator[Redis]:
    """What others may do to the server behind our back."""
    with Redis.from_url(redis_server.url) as client:
        yield client


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[RedisServer]:
    """A server that a test may kill; it forgets all then."""
    with RedisServer(tmp_path) as server:
        yield server


def test_a_stream_is_held_against_others_who_are_told_by_whom(store: RedisStore) -> None:
    leases = RedisLeases(store, lease_ms=LONG_MS)
    before_s = time.time()
    assert leases.acquire(claim("one", "a")) == GRANTED
    for other in (claim("two", "b"), claim("two"), claim("two", "")):
        held = leases.acquire(other)
        assert isinstance(held, Held)
        assert (held.instance, held.peer) == ("sender-1", "peer of one")
        assert before_s - 1 <= held.since_s <= time.time() + 1
        assert 55 < held.left_s <= 60
    assert leases.acquire(claim("two", "b", stream="orders/other")) == GRANTED


def test_a_command_carried_out_twice_changes_nothing(store: RedisStore) -> None:
    leases = RedisLeases(store, lease_ms=LONG_MS)
    one = claim("one")
    assert [leases.acquire(one), leases.acquire(one)] == [GRANTED, GRANTED]
    assert [leases.renew([(one, 5)]), leases.renew([(one, 5)])] == [[True], [True]]
    for _ in range(2):
        leases.release(one, 7)
    assert leases.acquire(claim("two")) == Granted(7)
    leases.release(one, 9)
    assert isinstance(leases.acquire(claim("three")), Held)


def test_who_claims_without_a_client_is_a_client_of_its_own(store: RedisStore) -> None:
    leases = RedisLeases(store, lease_ms=LONG_MS)
    assert leases.acquire(claim("one")) == GRANTED
    assert isinstance(leases.acquire(claim("two")), Held)


def test_the_same_client_takes_its_stream_over_and_its_older_session_has_lost_it(store: RedisStore) -> None:
    leases = RedisLeases(store, lease_ms=LONG_MS)
    older, newer = claim("older", "a"), claim("newer", "a")
    assert [leases.acquire(older), leases.acquire(newer)] == [GRANTED, GRANTED]
    assert leases.renew([(older, 3), (newer, 0)]) == [False, True]
    leases.release(older, 3)
    assert isinstance(leases.acquire(claim("other", "b")), Held)
    leases.release(newer, 2)
    assert leases.acquire(claim("other", "b")) == Granted(2)


def test_a_lease_that_is_not_renewed_runs_out_and_one_that_is_does_not(store: RedisStore) -> None:
    leases = RedisLeases(store, lease_ms=SHORT_MS)
    dies, lives = claim("dies"), claim("lives", stream="orders/lives")
    assert [leases.acquire(dies), leases.acquire(lives)] == [GRANTED, GRANTED]

    def taken() -> bool:
        assert leases.renew([(lives, 0)]) == [True]
        assert isinstance(leases.acquire(claim("heir", stream="orders/lives")), Held)
        return leases.acquire(claim("heir")) == GRANTED

    eventually(taken)
    assert leases.renew([(dies, 4)]) == [False]


def test_a_holder_that_comes_late_goes_on_when_nobody_came_in_between(store: RedisStore) -> None:
    leases = RedisLeases(store, lease_ms=1)
    late = claim("late")
    assert leases.acquire(late) == GRANTED
    eventually(lambda: leases.renew([(late, 0)]) == [True])
    assert leases.acquire(claim("guest", "g", stream="orders/feed")) is not None
    eventually(lambda: leases.acquire(claim("guest", "g")) == GRANTED)
    leases.release(claim("guest", "g"), 0)
    assert leases.renew([(late, 0)]) == [False], "a guest had it in between, and may have numbered frames"


def test_what_is_acknowledged_only_grows_is_exact_to_the_last_bit_and_belongs_to_one_log(
    store: RedisStore,
) -> None:
    leases = RedisLeases(store, lease_ms=LONG_MS)
    large = 2**64 - 2
    for acknowledged, known in [(9, 9), (10, 10), (3, 10), (large, large), (large - 1, large), (0, large)]:
        one = claim(f"t{acknowledged}", "a")
        assert isinstance(leases.acquire(one), Granted)
        assert leases.renew([(one, acknowledged)]) == [True]
        leases.release(one, acknowledged)
        assert leases.acquire(claim("look", "a")) == Granted(known)
        leases.release(claim("look", "a"), 0)
    assert leases.acquire(claim("new", "a", log="log-2")) == Granted(0)
    leases.release(claim("new", "a", log="log-2"), 5)
    assert leases.acquire(claim("new", "a", log="log-2")) == Granted(5)


def test_many_streams_are_renewed_together_and_each_is_told_apart(store: RedisStore) -> None:
    leases = RedisLeases(store, lease_ms=LONG_MS)
    claims = [claim(f"t{number}", stream=f"orders/{number}") for number in range(1100)]
    assert all(leases.acquire(each) == GRANTED for each in claims)
    lost = {3, 700, 1099}
    changed = [claim("x", stream=each.stream) if n in lost else each for n, each in enumerate(claims)]
    assert leases.renew([(each, 1) for each in changed]) == [n not in lost for n in range(1100)]
    assert leases.renew([]) == []


def test_a_stream_goes_by_itself_when_nobody_has_fed_it_for_long(
    store: RedisStore, client: Redis, redis_server: RedisServer
) -> None:
    leases = RedisLeases(store, lease_ms=LONG_MS)
    leases.acquire(claim("one"))
    assert STREAM_KEPT_MS - 10_000 < int(client.pttl(store.key("stream", "orders/feed"))) <= STREAM_KEPT_MS


def test_a_redis_that_started_empty_lets_holders_renew_before_it_serves_strangers(
    own_server: RedisServer,
) -> None:
    lease_ms = 1500
    with RedisStore(own_server.url, "app") as store:
        leases = RedisLeases(store, lease_ms=lease_ms)
        holder, stranger = claim("holder", "a"), claim("stranger", "b")
        eventually(lambda: leases.acquire(holder) == GRANTED)
        own_server.kill()
        own_server.start()
        settling = leases.acquire(stranger)
        assert isinstance(settling, Settling)
        assert 0 < settling.left_s <= lease_ms / 1000
        assert leases.renew([(holder, 8)]) == [True]
        assert isinstance(leases.acquire(stranger), Held)
        leases.release(holder, 8)
        assert isinstance(leases.acquire(stranger), Settling), "another one's lease may still be unknown"
        eventually(lambda: leases.acquire(stranger) == Granted(8))


def test_the_time_to_settle_runs_from_the_first_look(own_server: RedisServer) -> None:
    with RedisStore(own_server.url, "app") as store:
        leases = RedisLeases(store, lease_ms=LONG_MS)
        leases.look()
        eventually(lambda: _left_s(leases) < LONG_MS / 1000 - 0.2)
        with Redis.from_url(own_server.url) as client:
            client.flushall()
        assert _left_s(leases) > LONG_MS / 1000 - 0.2, "emptied is as good as started anew"


def _left_s(leases: RedisLeases) -> float:
    answer = leases.acquire(claim("one"))
    assert isinstance(answer, Settling)
    return answer.left_s


def test_without_redis_every_call_is_an_error_in_time(own_server: RedisServer) -> None:
    with RedisStore(own_server.url, "app") as store:
        leases = RedisLeases(store, lease_ms=LONG_MS)
        own_server.kill()
        for doing, call in (
            ("acquiring stream orders/feed", lambda: leases.acquire(claim("one"))),
            ("renewing 1 stream", lambda: leases.renew([(claim("one"), 1)])),
        ):
            began = time.monotonic()
            with pytest.raises(StoreError, match=f"{doing}.* does not answer"):
                call()
            assert time.monotonic() - began < 15


def test_a_key_of_somebody_else_is_an_error_that_says_so(store: RedisStore, client: Redis) -> None:
    client.set(store.key("stream", "orders/feed"), b"of somebody else")
    with pytest.raises(StoreError, match=r"acquiring stream orders/feed.*begin with bettong"):
        RedisLeases(store, lease_ms=LONG_MS).acquire(claim("one"))
