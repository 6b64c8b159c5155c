"""A sender's leases, held in memory: callers that go away, and a keeper of leases that is slow or away."""

import asyncio
import itertools
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import pytest
import structlog

from bettong.edges.redis_store import Answer, Claim
from bettong.errors import StoreError
from bettong_sender.ownership import Leases, Ownership
from bettong_sender.refusal import Code, Refusal
from tests.lease_model import MemoryLeases

LEASE_MS = 60_000


class Held:
    """A session that tells how it was ended."""

    log = "log-1"

    def __init__(self, origin: str = "orders/feed", acknowledged: int = 0) -> None:
        self.origin = origin
        self.acknowledged = acknowledged
        self.failure: Refusal | None = None

    def fail(self, refusal: Refusal) -> None:
        self.failure = refusal


class SlowLeases:
    """Leases whose keeper answers when it is let, or is away."""

    def __init__(self) -> None:
        self.kept = MemoryLeases(lease_ms=LEASE_MS, clock_ms=lambda: 0.0)
        self.kept.grow_old()
        self.answers = threading.Event()
        self.answers.set()
        self.asked = threading.Event()
        self.away = False

    def look(self) -> None:
        self._wait()

    def acquire(self, claim: Claim) -> Answer:
        answer = self.kept.acquire(claim)
        self._wait()
        return answer

    def renew(self, claims: Sequence[tuple[Claim, int]]) -> list[bool]:
        self._wait()
        return self.kept.renew(claims)

    def release(self, claim: Claim, acknowledged: int) -> None:
        self._wait()
        self.kept.release(claim, acknowledged)

    def _wait(self) -> None:
        self.asked.set()
        assert self.answers.wait(30)
        if self.away:
            raise StoreError("Redis at nowhere does not answer")


def ownership(leases: Leases) -> Ownership:
    tokens = itertools.count()
    return Ownership(
        leases,
        instance="pod-1",
        lease_s=LEASE_MS / 1000,
        new_token=lambda: f"token-{next(tokens)}",
        logger=structlog.get_logger(),
    )


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(scenario(), 60)

    asyncio.run(bounded())


async def once_held(owners: Ownership, holder: Held, client: str) -> int:
    """Holds a stream and gives it back; what was known of it."""
    async with owners.hold(holder, client=client, peer="peer") as lease:
        return lease.durable


def test_a_stream_is_given_back_before_the_holder_is_told_and_with_what_it_has_reached() -> None:
    async def scenario() -> None:
        owners = ownership(SlowLeases())
        assert await once_held(owners, Held(acknowledged=7), "a") == 0
        assert await once_held(owners, Held(), "b") == 7

    run(scenario)


def test_a_caller_that_goes_away_while_redis_is_slow_leaves_no_lease_behind() -> None:
    async def scenario() -> None:
        leases = SlowLeases()
        owners = ownership(leases)
        leases.answers.clear()
        gone = asyncio.create_task(once_held(owners, Held(), "gone"))
        await asyncio.to_thread(leases.asked.wait, 30)
        gone.cancel()
        leases.answers.set()
        with suppress(asyncio.CancelledError):
            await gone
        await owners.settled(30)
        assert await once_held(owners, Held(), "next") == 0

    run(scenario)


def test_the_same_client_ends_its_older_session_at_once_and_that_one_gives_nothing_back() -> None:
    async def scenario() -> None:
        owners, older, newer = ownership(SlowLeases()), Held(), Held()
        async with owners.hold(newer, client="b", peer="other"):
            pass
        first = owners.hold(older, client="a", peer="1")
        await first.__aenter__()
        async with owners.hold(newer, client="a", peer="2"):
            assert older.failure is not None
            assert older.failure.code is Code.ABORTED
            assert "is fed from 2 now" in str(older.failure)
            await first.__aexit__(None, None, None)
            with pytest.raises(Refusal, match="is fed by another client, 2 at sender 'pod-1'") as refused:
                await once_held(owners, Held(), "b")
            assert refused.value.code is Code.ALREADY_EXISTS
            assert refused.value.metadata == {"bettong-lease-ms": str(LEASE_MS)}
        assert newer.failure is None

    run(scenario)


def test_while_redis_is_away_new_sessions_are_refused_at_once_and_later_are_not() -> None:
    async def scenario() -> None:
        leases = SlowLeases()
        owners = ownership(leases)
        leases.away = True
        with pytest.raises(Refusal, match="cannot be told now: Redis at nowhere") as refused:
            await once_held(owners, Held(), "a")
        assert refused.value.code is Code.UNAVAILABLE
        await owners._renew()
        leases.asked.clear()
        with pytest.raises(Refusal, match="cannot be told now: Redis at nowhere"):
            await once_held(owners, Held(), "a")
        assert not leases.asked.is_set()
        leases.away = False
        await owners._renew()
        assert await once_held(owners, Held(), "a") == 0

    run(scenario)
