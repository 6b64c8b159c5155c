"""TICKs that the driver writes under the micro-batch schedule: what it can lose, and how it goes on."""

from __future__ import annotations

import pytest

from bettong import metrics
from bettong.errors import LogUnavailableError, StoreUnavailableError
from bettong_processor.progress import Idle
from tests.simulation.idle_partition import (
    BEGIN_NS,
    LATE_S_MAX,
    OWN,
    PARTITION,
    SECOND_NS,
    STAGES,
    TOPIC,
    TTL_S,
    MicroBatch,
    World,
)


def batches() -> tuple[World, MicroBatch]:
    world = World(MicroBatch)
    assert isinstance(world.run, MicroBatch)
    return world, world.run


def test_where_reports_were_lost_one_tick_asks_for_them_again() -> None:
    world, run = batches()
    world.send(1)
    world.pass_time(10.0)
    run.reported.clear()
    world.pass_time(11.5)
    assert (world.log.ticks, run.worker.keys) == (1, 1)
    assert run.reported[OWN][metrics.DUE.name] == str(BEGIN_NS + TTL_S * SECOND_NS)
    world.pass_time(TTL_S + LATE_S_MAX)
    assert (world.log.ticks, run.worker.keys) == (2, 0)


def test_a_report_of_an_older_offset_is_taken_for_none() -> None:
    """Redis was away when the last batch was reported: what it holds is of the batch before."""
    world, run = batches()
    world.send(1)
    world.pass_time(5.0)
    before = dict(run.reported)
    world.send(2)
    world.pass_time(6.5)
    run.reported = before
    assert run.progress.idle() == {PARTITION: Idle(2, BEGIN_NS + TTL_S * SECOND_NS, is_reported=True)}
    run.progress.check()
    assert run.progress.idle() == {PARTITION: Idle(2, None, is_reported=False)}


def test_a_partition_that_is_behind_is_not_idle() -> None:
    world, run = batches()
    world.pass_time(2.0)
    world.send(1)
    run.progress.check()
    assert run.progress.idle() == {}
    assert world.log.ticks == 0


def test_where_no_record_ever_came_a_tick_is_written_once_if_stages_wait_for_the_partition() -> None:
    world, run = batches()
    world.pass_time(2.0)
    assert run.progress.idle() == {PARTITION: Idle(0, None, is_reported=False)}
    assert world.log.ticks == 0
    run.ticking = run.ticking_of(STAGES, awaited=[TOPIC])
    world.pass_time(6.0)
    assert world.log.ticks == 1, "then it has reported what is due"


def test_while_redis_does_not_tell_the_time_no_tick_is_written() -> None:
    world, run = batches()

    def away() -> int:
        raise StoreUnavailableError("away")

    world.send(1)
    world.pass_time(1.0)
    true_ns, run.redis_ns = run.redis_ns, away
    world.pass_time(TTL_S + 60)
    assert world.log.ticks == 0
    run.redis_ns = true_ns
    world.pass_time(TTL_S + 60 + LATE_S_MAX)
    assert (world.log.ticks, run.worker.keys) == (1, 0)


def test_a_writer_that_has_failed_is_replaced() -> None:
    world, run = batches()
    world.send(1)
    world.pass_time(TTL_S - 0.2)
    world.log.fail()
    with pytest.raises(LogUnavailableError):
        world.pass_time(TTL_S + 1)
    assert world.log.ticks == 0
    run.ticking.close()
    world.log.failure = None
    world.pass_time(TTL_S + 1 + LATE_S_MAX)
    assert (world.log.ticks, run.worker.keys) == (1, 0)


def test_a_stage_where_nothing_is_ever_due_gets_none() -> None:
    world, run = batches()
    run.ticking = run.ticking_of({})
    world.send(1)
    world.pass_time(TTL_S + 5)
    assert (world.log.ticks, run.worker.keys) == (0, 1)
