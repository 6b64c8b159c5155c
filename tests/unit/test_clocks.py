"""Of this machine's clock and Redis' one, a wrong one does little harm."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import CapturingLogger

from bettong.clocks import CarriedClock, CheckedClock
from bettong.errors import StoreUnavailableError
from bettong.frames.frame import decode
from bettong.identifiers import NO_SEQUENCE
from bettong.ingest.refusal import Code, Refusal
from bettong.v1.ingest_pb2 import Hello
from bettong_sender.ingest_clock import IngestClock
from bettong_sender.intake import Intake, Limits
from bettong_sender.status import SenderStatus
from bettong_sender.tick_writer import TickWriter
from tests.samples.sender import route
from tests.unit.test_sender_intake import SilentLog

S_NS = 1_000_000_000
HOUR_NS = 3600 * S_NS
NOW_NS = 500_000 * HOUR_NS


@pytest.mark.parametrize(
    ("machine_h", "redis_h", "carried_h"),
    [(0, 0, 0), (30, 0, 0), (0, 30, 0), (-30, 0, -30), (0, -30, -30), (30, 30, 30)],
)
def test_a_clock_that_runs_ahead_moves_nothing_unless_both_do(
    machine_h: int, redis_h: int, carried_h: int
) -> None:
    clock = CheckedClock(lambda: NOW_NS + machine_h * HOUR_NS, CapturingLogger())  # type: ignore[arg-type]
    assert clock.now_ns(NOW_NS + redis_h * HOUR_NS) == NOW_NS + carried_h * HOUR_NS


def test_clocks_that_differ_are_reported_once_until_they_agree_again() -> None:
    log, machine_ns = CapturingLogger(), [NOW_NS]
    clock = CheckedClock(lambda: machine_ns[0], log)  # type: ignore[arg-type]
    for differs_s, reported in ((0, 0), (59, 0), (61, 1), (7200, 1), (1, 1), (-61, 2)):
        machine_ns[0] = NOW_NS + differs_s * 1_000_000_000
        clock.now_ns(NOW_NS)
        assert len(log.calls) == reported
    assert [call.kwargs for call in log.calls] == [{"machine_ahead_s": 61}, {"machine_ahead_s": -61}]


def test_a_clock_that_is_ahead_by_less_than_a_second_counts_as_it_is() -> None:
    clock = CheckedClock(lambda: NOW_NS + S_NS, CapturingLogger())  # type: ignore[arg-type]
    assert clock.now_ns(NOW_NS) == NOW_NS + S_NS
    assert clock.now_ns(NOW_NS - 1) == NOW_NS - 1


def test_what_was_heard_is_carried_on() -> None:
    passed = [0]
    of = CarriedClock(lambda: passed[0])
    assert of.now_ns is None
    of.hear(NOW_NS)
    passed[0] += 5
    assert of.now_ns == NOW_NS + 5


class World:
    """A machine, and Redis, which may be away."""

    def __init__(self) -> None:
        self.machine_ns = self.redis_ns = NOW_NS
        self.passed_ns = 0
        self.is_away = False
        redis = CarriedClock(lambda: self.passed_ns)
        self.clock = IngestClock(lambda: self.machine_ns, self.ask, CapturingLogger(), redis)  # type: ignore[arg-type]

    def ask(self) -> int:
        if self.is_away:
            raise StoreUnavailableError("away")
        return self.redis_ns + self.passed_ns

    def pass_time(self, ns: int) -> None:
        self.passed_ns += ns
        self.machine_ns += ns


def test_records_are_stamped_as_ever_when_a_senders_clock_jumps_ahead() -> None:
    world = World()
    asyncio.run(world.clock.ask())
    world.machine_ns += 30 * HOUR_NS
    world.pass_time(7)
    assert world.clock.now_ns() == NOW_NS + 7
    world.is_away = True
    asyncio.run(world.clock.ask())
    world.pass_time(7)
    assert world.clock.now_ns() == NOW_NS + 14, "also while Redis is away"


def test_a_senders_clock_that_is_behind_counts_as_it_is() -> None:
    world = World()
    asyncio.run(world.clock.ask())
    world.machine_ns -= 30 * HOUR_NS
    assert world.clock.now_ns() == NOW_NS - 30 * HOUR_NS


def test_no_record_is_stamped_before_the_first_answer_of_redis() -> None:
    """A log clock never goes back: one record of a machine that is 30 hours ahead would move it for good."""

    async def conversation() -> tuple[Refusal, list[bytes], int]:
        world = World()
        world.is_away = True
        world.machine_ns += 30 * HOUR_NS
        limits = Limits(credits=4, sessions_max=8, buffer_bytes_max=1 << 20)
        routes = {"orders": route()}
        intake = Intake("shop", routes, limits, SenderStatus(since_s=1), clock=world.clock.now_ns)
        intake.use(log := SilentLog(), {})
        hello = Hello(source="orders", stream="kafka.trades.0")
        await world.clock.ask()
        with pytest.raises(Refusal) as caught:
            await intake.open_external(hello, "topic trades").open(NO_SEQUENCE)
        refused, before = caught.value, list(log.values)
        await TickWriter(intake, 0.0).tick()
        world.is_away = False
        await world.clock.ask()
        await intake.open_external(hello, "topic trades").open(NO_SEQUENCE)
        intake.close()
        return refused, before, decode(log.values[0]).ingest_ns

    refused, before, ingest_ns = asyncio.run(conversation())
    assert refused.code is Code.UNAVAILABLE
    assert str(refused) == (
        "the sender has not heard of Redis' clock since it started, and stamps no record by its own alone; it asks"
        " every second: connect again in a while, and see that Redis answers (BETTONG_REDIS)"
    )
    assert before == []
    assert ingest_ns == NOW_NS
