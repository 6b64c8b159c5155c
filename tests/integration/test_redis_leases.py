"""Leases of streams in a real Redis, beyond the contract: a server that restarts, is unavailable, or has other data."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from redis import Redis

from bettong.edges.redis_store import Claim, Granted, Held, RedisLeases, RedisStore, Settling
from bettong.edges.redis_store.leases import ENDED_KEPT_MS, STREAM_KEPT_MS
from bettong.errors import StoreError
from bettong.identifiers import SequenceNumber
from bettong.local.redis_server import RedisServer
from tests.waiting import eventually

LONG_MS = 60_000
GRANTED = Granted(SequenceNumber(0))


def claim(token: str, client: str = "", *, stream: str = "orders/feed", log: str = "log-1") -> Claim:
    return Claim(
        stream=stream, token=token, client=client, instance="sender-1", peer=f"peer of {token}", log=log
    )


@pytest.fixture
def store(redis_server: RedisServer, unique_name: Callable[..., str]) -> Iterator[RedisStore]:
    """The leases of an application that Redis has known for long."""
    with RedisStore(redis_server.url, unique_name()) as store:
        first = RedisLeases(store, lease_ms=1)
        eventually(lambda: first.acquire(claim("first", stream="orders/first")) == GRANTED)
        with Redis.from_url(redis_server.url) as client:
            client.hset(store.key("epoch"), "since", 0)
        yield store


@pytest.fixture
def client(redis_server: RedisServer) -> Iterator[Redis]:
    """A client for changes that others may make to the server."""
    with Redis.from_url(redis_server.url) as client:
        yield client


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[RedisServer]:
    """A server that a test may kill; it then loses all data."""
    with RedisServer(tmp_path) as server:
        yield server


def test_a_stream_goes_by_itself_when_nobody_has_fed_it_for_long(
    store: RedisStore, client: Redis, redis_server: RedisServer
) -> None:
    leases = RedisLeases(store, lease_ms=LONG_MS)

    def kept_ms() -> int:
        return int(client.pttl(store.key("stream", "orders/feed")))

    leases.acquire(claim("one"))
    assert STREAM_KEPT_MS - 10_000 < kept_ms() <= STREAM_KEPT_MS
    leases.release(claim("one"), SequenceNumber(7), ended=True)
    assert ENDED_KEPT_MS - 10_000 < kept_ms() <= ENDED_KEPT_MS
    leases.release(claim("one"), SequenceNumber(8))
    assert kept_ms() <= ENDED_KEPT_MS, "carried out twice, or of a session that came late"
    leases.acquire(claim("one"))
    assert kept_ms() > STREAM_KEPT_MS - 10_000, "somebody came back all the same"


def test_a_redis_that_started_anew_gives_nothing_to_strangers_for_one_lease_time(
    own_server: RedisServer,
) -> None:
    with RedisStore(own_server.url, "app") as store:
        leases = RedisLeases(store, lease_ms=1500)
        holder, stranger = claim("holder", "a"), claim("stranger", "b")
        eventually(lambda: leases.acquire(holder) == GRANTED)
        own_server.kill()
        own_server.start()
        assert isinstance(leases.acquire(stranger), Settling)
        assert leases.renew([(holder, SequenceNumber(8))]) == [True]
        assert isinstance(leases.acquire(stranger), Held)


def test_without_redis_every_call_is_an_error_in_time(own_server: RedisServer) -> None:
    with RedisStore(own_server.url, "app") as store:
        leases = RedisLeases(store, lease_ms=LONG_MS)
        own_server.kill()
        for doing, call in (
            ("acquiring stream orders/feed", lambda: leases.acquire(claim("one"))),
            ("renewing 1 stream", lambda: leases.renew([(claim("one"), SequenceNumber(1))])),
        ):
            began = time.monotonic()
            with pytest.raises(StoreError, match=f"{doing}.* does not answer"):
                call()
            assert time.monotonic() - began < 15


def test_a_key_of_somebody_else_is_an_error_that_says_so(store: RedisStore, client: Redis) -> None:
    client.set(store.key("stream", "orders/feed"), b"of somebody else")
    with pytest.raises(StoreError, match=r"acquiring stream orders/feed.*begin with bettong"):
        RedisLeases(store, lease_ms=LONG_MS).acquire(claim("one"))
