"""Time passes where no record comes, under both schedules."""

from __future__ import annotations

from random import Random

import pytest

from tests.samples.worker import tick
from tests.simulation.idle_partition import LATE_S_MAX, TTL_S, MicroBatch, Resident, Schedule, World, fresh

both = pytest.mark.parametrize("schedule", [Resident, MicroBatch])


@both
def test_a_state_ends_in_an_idle_partition_within_a_second_of_its_time(schedule: type[Schedule]) -> None:
    world = World(schedule)
    world.send(1)
    world.pass_time(TTL_S - 0.2)
    assert (world.run.worker.keys, len(world.log.records)) == (1, 1)
    world.pass_time(TTL_S + LATE_S_MAX)
    assert (world.run.worker.keys, world.run.worker.counters.expired) == (0, 1)
    world.pass_time(TTL_S + 600)
    assert len(world.log.records) == 2, "nothing is due any more, and nothing is written"


@both
@pytest.mark.parametrize("seed", range(5))
def test_whatever_comes_in_between_states_end_in_time_and_ticks_are_few(
    schedule: type[Schedule], seed: int
) -> None:
    world, chance = World(schedule), Random(seed)
    last_s: dict[int, float] = {}
    for _ in range(60):
        keys = chance.sample(range(200), chance.randint(1, 20))
        world.send(*keys)
        last_s |= dict.fromkeys(keys, world.now_s)
        pause_s = chance.choice([0.05, 0.5, 1.5, 20, 90])
        world.pass_time(world.now_s + pause_s)
        if pause_s < 1:
            continue  # a batch may be at work
        alive = sum(each + TTL_S > world.now_s for each in last_s.values())
        late = sum(each + TTL_S + schedule.late_s_max > world.now_s for each in last_s.values())
        assert alive <= world.run.worker.keys <= late
    world.pass_time(world.now_s + TTL_S + schedule.late_s_max)
    assert world.run.worker.keys == 0
    assert 0 < world.log.ticks <= world.run.worker.counters.expired
    assert world.log.ticks <= 5 * world.now_s


@both
def test_many_states_that_end_one_after_the_other_cost_five_ticks_a_second_at_most(
    schedule: type[Schedule],
) -> None:
    world = World(schedule)
    for key in range(500):
        world.send(key)
        world.pass_time(world.now_s + 0.02)
    ended_s = world.now_s + TTL_S + schedule.late_s_max
    world.pass_time(ended_s)
    assert world.run.worker.keys == 0
    assert 5 < world.log.ticks <= 5 * (ended_s - TTL_S)


@both
def test_a_machine_whose_clock_runs_ahead_ends_nothing_early(schedule: type[Schedule]) -> None:
    world = World(schedule)
    world.machine_ahead_s = 30 * 3600
    world.send(1)
    world.pass_time(TTL_S - 0.2)
    assert world.log.ticks == 0
    world.pass_time(TTL_S + LATE_S_MAX)
    assert world.run.worker.keys == 0
    assert world.run.worker.now_ns <= world.true_ns(), "what comes next lives as long as it should"


@both
def test_a_log_that_is_away_for_long_holds_one_tick_when_it_is_back(schedule: type[Schedule]) -> None:
    world = World(schedule)
    world.send(1)
    world.pass_time(TTL_S - 0.2)
    world.log.away = True
    world.pass_time(TTL_S + 600)
    assert (world.run.worker.keys, world.log.ticks) == (1, 0)
    world.log.away = False
    world.log.answer()
    world.pass_time(TTL_S + 600 + LATE_S_MAX)
    assert (world.run.worker.keys, world.log.ticks) == (0, 1)


@both
def test_without_a_time_to_live_nothing_is_ever_written(schedule: type[Schedule]) -> None:
    world = World(schedule, ttl=None)
    world.send(1)
    world.pass_time(100.0)
    assert (world.run.worker.keys, len(world.log.records)) == (1, 1)


def test_a_replay_of_the_log_ends_the_same_states_at_the_same_records() -> None:
    world, keys = World(Resident), []
    for key in range(20):
        world.send(key)
        world.pass_time(world.now_s + 7)
        keys.append((world.run.worker.next_offset, world.run.worker.keys))
    again, folded = fresh(), {}
    for offset, value in enumerate(world.log.records):
        again.fold(offset, value)
        folded[again.next_offset] = again.keys
    assert [(offset, folded[offset]) for offset, _ in keys] == keys
    assert again.snapshot() == world.run.worker.snapshot()


def test_a_tick_of_the_past_is_harmless() -> None:
    of = fresh()
    of.fold(0, tick(5000))
    of.fold(1, tick(1))
    assert of.now_ns == 5000
