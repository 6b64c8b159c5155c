"""Of this machine's clock and Redis' one, a wrong one does little harm."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import CapturingLogger

from bettong.clocks import CarriedClock, CheckedClock
from bettong.errors import StoreUnavailableError
from bettong_sender.ingest_clock import IngestClock

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
    assert world.clock.now_ns() == NOW_NS, "before the first answer"
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
