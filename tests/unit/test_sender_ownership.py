"""A sender's leases, held in memory: callers that go away, and a keeper of leases that is slow or away."""

import asyncio
import itertools
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress

import pytest
import structlog

from bettong.edges.redis_store import Answer, Claim, Settling
from bettong.edges.redis_store.leases import ENDED_KEPT_MS
from bettong.errors import LogError, LogUnavailableError, StoreError
from bettong.identifiers import Origin, SequenceNumber
from bettong.ingest.refusal import Code, Refusal
from bettong_sender.ownership import _CALLS_MAX, Leases, Ownership
from tests.simulation.lease_model import MemoryLeases

LEASE_MS = 60_000
TOKENS = itertools.count()


class Held:
    """A session that tells how it was ended."""

    log = "log-1"

    def __init__(self, origin: str = "orders/feed", acknowledged: int = 0, claimed: int = 0) -> None:
        self.origin = Origin(origin)
        self.acknowledged = SequenceNumber(acknowledged)
        self.claimed = SequenceNumber(claimed)
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

    def notice_restart(self) -> None:
        self._wait()

    def acquire(self, claim: Claim) -> Answer:
        answer = self.kept.acquire(claim)
        self._wait()
        return answer

    def skip_settling(self, epoch: str) -> None:
        self._wait()
        self.kept.skip_settling(epoch)

    def renew(self, claims: Sequence[tuple[Claim, int]]) -> list[bool]:
        self._wait()
        return self.kept.renew(claims)

    def release(self, claim: Claim, acknowledged: int, *, exact: bool = False, ended: bool = False) -> None:
        self._wait()
        self.kept.release(claim, acknowledged, exact=exact, ended=ended)

    def _wait(self) -> None:
        self.asked.set()
        assert self.answers.wait(30)
        if self.away:
            raise StoreError("Redis at nowhere does not answer")


def ownership(leases: Leases, log_is_new: Callable[[], bool] = lambda: False) -> Ownership:
    return Ownership(
        leases,
        instance="pod-1",
        lease_s=LEASE_MS / 1000,
        new_token=lambda: f"token-{next(TOKENS)}",
        log_is_new=log_is_new,
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


def test_a_stream_is_given_back_before_the_holder_learns_it_and_with_what_it_has_reached() -> None:
    async def scenario() -> None:
        owners = ownership(SlowLeases())
        assert await once_held(owners, Held(acknowledged=7), "a") == 0
        assert await once_held(owners, Held(), "b") == 7

    run(scenario)


def test_a_stream_that_has_ended_is_given_back_as_one_that_is_soon_forgotten() -> None:
    async def scenario() -> None:
        now_ms = [0.0]
        kept = MemoryLeases(lease_ms=LEASE_MS, clock_ms=lambda: now_ms[0])
        kept.grow_old()
        owners = ownership(kept)
        async with owners.hold(Held("orders/ended", 7), client="a", peer="peer") as lease:
            lease.ended = True
        await once_held(owners, Held("orders/other", 7), "a")
        now_ms[0] += ENDED_KEPT_MS + 1
        assert [await once_held(owners, Held(name), "a") for name in ("orders/ended", "orders/other")] == [
            0,
            7,
        ]

    run(scenario)


def test_who_claims_more_than_was_ever_acknowledged_is_refused_and_nobody_else_is() -> None:
    async def scenario() -> None:
        owners, far = ownership(SlowLeases()), 2**63
        assert await once_held(owners, Held(acknowledged=7), "a") == 0
        for _ in range(2):
            with pytest.raises(Refusal) as caught:
                await once_held(owners, Held(claimed=far), "b")
            assert caught.value.code is Code.INVALID_ARGUMENT
            assert str(caught.value) == (
                "stream 'orders/feed': Hello.acknowledged is 9223372036854775808, more than was ever acknowledged, 7;"
                " send 0 and continue after Welcome.acknowledged"
            )
        assert await once_held(owners, Held(acknowledged=9, claimed=7), "c") == 7
        assert await once_held(owners, Held(), "d") == 9

    run(scenario)


def test_a_claim_that_nobody_can_check_is_neither_refused_nor_stored() -> None:
    async def scenario() -> None:
        owners, far = ownership(SlowLeases()), 2**63
        for _ in range(2):
            assert await once_held(owners, Held(claimed=far), "liar") == 0
        assert await once_held(owners, Held(acknowledged=4, claimed=3), "a") == 0
        assert await once_held(owners, Held(claimed=4), "b") == 4

    run(scenario)


def test_a_stranger_who_claims_nothing_does_not_spoil_the_stream_of_a_client_whose_sender_was_killed() -> (
    None
):
    async def scenario() -> None:
        leases = SlowLeases()
        dead, others, first = ownership(leases), ownership(leases), Held()
        killed = dead.hold(first, client="a", peer="1")
        await killed.__aenter__()
        first.acknowledged = SequenceNumber(100)
        await dead._renew()
        first.acknowledged = SequenceNumber(150)  # told, and never stored
        leases.kept.let_run_out()
        for _ in range(2):
            assert await once_held(others, Held(acknowledged=100), "b") == 100
        assert await once_held(others, Held(acknowledged=150, claimed=150), "a") == 100

    run(scenario)


def test_a_client_whose_sender_was_killed_makes_its_stream_exact_again() -> None:
    async def scenario() -> None:
        leases = SlowLeases()
        dead, others, first = ownership(leases), ownership(leases), Held()
        killed = dead.hold(first, client="a", peer="1")
        await killed.__aenter__()
        first.acknowledged = SequenceNumber(150)
        assert await once_held(others, Held(claimed=150), "a") == 0, "it ends before it resends"
        assert await once_held(others, Held(claimed=150, acknowledged=160), "a") == 0
        with pytest.raises(Refusal, match="more than was ever acknowledged, 160"):
            await once_held(others, Held(claimed=161), "b")

    run(scenario)


def test_the_receipts_of_a_session_that_was_taken_over_are_no_lie() -> None:
    async def scenario() -> None:
        leases, older = SlowLeases(), Held()
        owners, others = ownership(leases), ownership(leases)
        first = owners.hold(older, client="a", peer="1")
        await first.__aenter__()
        older.acknowledged = SequenceNumber(5)
        assert await once_held(others, Held(claimed=5), "a") == 0
        assert await once_held(others, Held(claimed=5), "a") == 0
        assert await once_held(owners, Held(claimed=5), "a") == 5, "the same sender knows"
        await first.__aexit__(None, None, None)
        assert await once_held(others, Held(claimed=5), "a") == 5

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
        await owners.await_released(30)
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
        with pytest.raises(
            Refusal, match="unknown now whether another client feeds it: Redis at nowhere"
        ) as refused:
            await once_held(owners, Held(), "a")
        assert refused.value.code is Code.UNAVAILABLE
        await owners._renew()
        leases.asked.clear()
        with pytest.raises(Refusal, match="is unknown now whether another client feeds it: Redis at nowhere"):
            await once_held(owners, Held(), "a")
        assert not leases.asked.is_set()
        leases.away = False
        await owners._renew()
        assert await once_held(owners, Held(), "a") == 0

    run(scenario)


async def _opened() -> None:
    """The opening is durable."""


def test_while_nothing_was_ever_appended_a_redis_that_started_anew_holds_up_nobody() -> None:
    asked = []

    def log_is_new() -> bool:
        asked.append(1)
        return True

    async def scenario() -> None:
        leases = SlowLeases()
        leases.kept.forget()
        owners = ownership(leases, log_is_new)
        both = [once_held(owners, Held(f"orders/{name}"), name) for name in ("a", "b")]
        assert await asyncio.wait_for(asyncio.gather(*both), 10) == [0, 0]
        assert len(asked) == 1

    run(scenario)


@pytest.mark.parametrize("fault", [None, LogUnavailableError("Kafka is away")])
def test_when_something_was_appended_or_nobody_knows_it_settles(fault: LogError | None) -> None:
    asked = threading.Event()

    def log_is_new() -> bool:
        asked.set()
        if fault is not None:
            raise fault
        return False

    async def scenario() -> None:
        leases = SlowLeases()
        leases.kept.forget()
        waiting = asyncio.create_task(once_held(ownership(leases, log_is_new), Held(), "a"))
        assert await asyncio.to_thread(asked.wait, 10)
        stranger = Claim(
            stream="orders/other",
            token=f"t-{next(TOKENS)}",
            client="b",
            instance="pod-2",
            peer="peer",
            log="log-1",
        )
        assert isinstance(leases.kept.acquire(stranger), Settling)
        assert not waiting.done()
        waiting.cancel()
        await asyncio.wait((waiting,))

    run(scenario)


def test_a_session_from_before_redis_started_anew_is_not_welcomed_when_its_stream_was_given_away() -> None:
    """Acquired, then Redis forgets it, another sender finds the log new, and gives the stream to another client."""

    async def scenario() -> None:
        leases = SlowLeases()
        owners, others = ownership(leases), ownership(leases, lambda: True)
        holder = Held()
        async with owners.hold(holder, client="a", peer="peer") as lease:
            leases.kept.forget()
            async with others.hold(Held(), client="b", peer="peer") as other:
                with pytest.raises(Refusal, match="is another session's"):
                    await owners.confirm(lease, _opened)
                await others.confirm(other, _opened)
        assert holder.failure is not None

    run(scenario)


def test_only_the_first_sessions_of_a_sender_are_confirmed() -> None:
    async def scenario() -> None:
        owners = ownership(SlowLeases())
        async with owners.hold(Held("orders/a"), client="a", peer="peer") as lease:
            await owners.confirm(lease, _opened)
        async with owners.hold(Held("orders/b"), client="b", peer="peer") as later:
            await owners.confirm(later, asyncio.Event().wait)  # type: ignore[arg-type] # it would wait for ever

    run(scenario)


def test_sessions_that_are_confirmed_together_call_redis_in_turns_and_not_while_it_is_away() -> None:
    async def scenario() -> None:
        leases = SlowLeases()
        owners = ownership(leases)
        async with AsyncExitStack() as held:
            early = [
                await held.enter_async_context(owners.hold(Held(f"orders/{each}"), client="a", peer="peer"))
                for each in range(_CALLS_MAX + 3)
            ]
            leases.answers.clear()
            confirming = [asyncio.create_task(owners.confirm(each, _opened)) for each in early]
            for _ in range(3):
                await asyncio.sleep(0)
            calls = sum(thread.name == "lease" for thread in threading.enumerate())
            leases.answers.set()
            await asyncio.gather(*confirming)
            assert calls == _CALLS_MAX
            leases.away = True
            await owners._renew()
            leases.asked.clear()
            with pytest.raises(Refusal, match="is unknown now whether another client feeds it"):
                await owners.confirm(early[0], _opened)
            assert not leases.asked.is_set()
            leases.away = False
            await owners._renew()

    run(scenario)
