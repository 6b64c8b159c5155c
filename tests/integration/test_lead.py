"""Several processors and one lead, in a real Redis."""

import time
from collections.abc import Callable, Iterator

import pytest
import redis
import structlog

from bettong.edges.redis_store import RedisLead, RedisStore
from bettong.local.redis_server import RedisServer
from bettong.logs import Logger
from bettong_processor.leading import TTL_MS, Leading
from tests.waiting import eventually

LOG: Logger = structlog.get_logger()


@pytest.fixture
def store(redis_server: RedisServer, unique_name: Callable[..., str]) -> Iterator[RedisStore]:
    with RedisStore(redis_server.url, unique_name("lead")) as store:
        yield store


def leading(store: RedisStore, instance: str) -> Leading:
    return Leading(RedisLead(store, ttl_ms=TTL_MS), instance, clock=time.monotonic, log=LOG)


def test_one_leads_until_it_ends_and_only_who_is_ready_follows(store: RedisStore) -> None:
    with leading(store, "second") as second:
        with leading(store, "first") as first, leading(store, "starting") as starting:
            assert not starting.wait(1.0)
            first.ready()
            assert first.wait(10)
            second.ready()
            eventually(lambda: second.leader == starting.leader == "first", what="who leads is known")
            assert not second.leads
        assert second.wait(10), "the lead was given back"


def test_a_leader_that_is_silent_is_followed_and_hears_of_it(store: RedisStore) -> None:
    lead = RedisLead(store, ttl_ms=TTL_MS)
    begun_s = time.monotonic()
    assert lead.hold("silent/1", take=True) == "silent/1"
    with leading(store, "second") as second:
        second.ready()
        assert second.wait(10)
        assert time.monotonic() - begun_s >= 0.5 * TTL_MS / 1000
        assert lead.hold("silent/1", take=True) == second_of(store)


def test_a_leader_keeps_its_lead_when_redis_loses_everything(
    store: RedisStore, redis_server: RedisServer
) -> None:
    with leading(store, "first") as first, leading(store, "second") as second:
        first.ready()
        assert first.wait(10)
        second.ready()
        eventually(lambda: second.leader == "first", what="who leads is known")
        holder = second_of(store)
        with redis.Redis.from_url(redis_server.url, decode_responses=True) as client:
            client.delete(store.key("lead"))
            eventually(lambda: client.get(store.key("lead")), what="somebody leads again")
            assert client.get(store.key("lead")) == holder
        assert first.leads
        assert not second.leads


def test_who_folded_last_is_remembered(store: RedisStore) -> None:
    lead = RedisLead(store, ttl_ms=TTL_MS)
    assert lead.folded_last() == ""
    lead.folds("first")
    assert lead.folded_last() == "first"


def second_of(store: RedisStore) -> str:
    """Who leads, whole."""
    return RedisLead(store, ttl_ms=TTL_MS).hold("nobody", take=False)
