"""States that live by event time, and timers beside them: over crashes, in two stages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest
import structlog

import bettong
from bettong import Application
from bettong.application.plan import plan
from bettong.edges.directory_snapshots import DirectorySnapshots
from bettong.frames.frame import FrameKind
from bettong.identifiers import PartitionId
from bettong.worker.output.downstream_watermarks import TICK_NS
from bettong.worker.stage_program import program
from bettong_processor.programs import Programs
from bettong_processor.restoring import Restoring, WorkerLimits
from tests.samples.application import refused
from tests.samples.event_time import (
    FIRST_OUT,
    IDLE_NS,
    STAGE,
    TTL,
    TTL_NS,
    Seen,
    Sighting,
    Speed,
    Visit,
    alone,
    control,
    described,
    fill,
    programs,
    see,
    sender_tick,
    visits,
    workers,
)
from tests.samples.worker import FRAME_BYTES_MAX, fold, results, tick, worker
from tests.simulation.twins import compiled_twin

SILENT = structlog.wrap_logger(structlog.ReturnLogger(), processors=[])
every_speed = pytest.mark.parametrize("speed", ["python", "compiled"])


@every_speed
@pytest.mark.parametrize(("watermark_ns", "expected"), [(TTL_NS + 49, 3), (TTL_NS + 50, 1)])
def test_a_state_ends_when_the_watermark_is_its_time_to_live_past_the_newest_message_of_the_key(
    speed: Speed, watermark_ns: int, expected: int
) -> None:
    one, _ = workers(speed)
    fold(one, [visits("a", 1, [Visit(1, 1, 50), Visit(1, 1, 20)], log_ns=5, watermark_ns=20)])
    fold(one, [visits("a", 2, [Visit(2, 1, watermark_ns)], log_ns=5, watermark_ns=watermark_ns)])
    given = fold(one, [visits("a", 3, [Visit(1, 1, watermark_ns)], log_ns=5, watermark_ns=watermark_ns)])
    assert results(given, FIRST_OUT, Sighting)[0].count == expected
    assert one.counters.expired == (expected == 1)


@every_speed
def test_a_state_that_ends_by_event_time_does_not_end_by_the_log_clock(speed: Speed) -> None:
    one, _ = workers(speed)
    fold(one, [alone(50), tick(IDLE_NS // 2)])
    assert one.keys == 1


def test_a_state_of_a_message_that_is_late_has_its_own_time_and_ends_with_the_record() -> None:
    one, _ = workers()
    fold(one, [alone(10_000), alone(20, who=2, number=2)])
    assert [key for key, _ in one.tables["seen"].items()] == [1]


@dataclass
class Chance:
    """Records of three clients, and their restarts."""

    random: Random
    log_ns: int = 0

    def records(self, count: int) -> Iterator[bytes]:
        numbers, newest = dict.fromkeys("abc", 0), dict.fromkeys("abc", 0)
        sent: list[bytes] = []
        for _ in range(count):
            chance = self.random
            self.log_ns += chance.choice([0, 300, 90_000_000, TICK_NS, IDLE_NS])
            client, kind = chance.choice("abc"), chance.random()
            if kind < 0.1 and sent:
                yield chance.choice(sent)
            elif kind < 0.2:
                which = chance.choice([FrameKind.OPEN, FrameKind.END])
                yield control(which, client, acknowledged=numbers[client], log_ns=self.log_ns)
            elif kind < 0.35:
                yield sender_tick(self.log_ns, **{client: newest[client]})
            else:
                numbers[client] += 1
                newest[client] += chance.choice([0, 200, 900, 3000])
                found = [
                    Visit(chance.randrange(9), chance.randrange(5), max(newest[client] - late, 0))
                    for late in chance.choices([0, 100, 700], k=chance.randint(1, 4))
                ]
                number, at_ns = numbers[client], newest[client]
                sent.append(visits(client, number, found, log_ns=self.log_ns, watermark_ns=at_ns))
                yield sent[-1]


@every_speed
@pytest.mark.parametrize("seed", range(4))
def test_a_crash_at_any_record_changes_neither_results_nor_states_in_both_stages(
    tmp_path: Path, speed: Speed, seed: int
) -> None:
    log = list(Chance(Random(seed)).records(60))
    stages = dict(zip(("visits", "places"), programs(speed), strict=True))
    restoring = Restoring(Programs(described(speed), stages), WorkerLimits(1, FRAME_BYTES_MAX), SILENT)
    expired = []
    for name, stage in stages.items():
        straight, outputs, states = worker(stage), [], []
        for value in log:
            outputs.append(fold(straight, [value]))
            states.append(straight.snapshot())
        expired.append(straight.counters.expired)
        chance, crashed = Random(seed), worker(stage)
        store = DirectorySnapshots(tmp_path)
        for offset, value in enumerate(log):
            assert fold(crashed, [value]) == outputs[offset]
            if chance.random() < 0.4:
                store.save(PartitionId(name, 0), *crashed.increment())
            crashed = restoring.newest(store, PartitionId(name, 0))
            for again in range(crashed.next_offset, offset + 1):
                assert fold(crashed, [log[again]]) == outputs[again]
            assert crashed.snapshot() == states[offset]
        log = [record.value for given in outputs for record in given if record.topic == STAGE]
    assert min(expired) > 5, expired


@pytest.mark.parametrize("clock", ["watermark", None, 1])
def test_a_clock_that_is_none_is_refused_where_it_is_given(clock: Any) -> None:
    with refused("stateful 'seen'", f"ttl_clock={clock!r}", '"log" or "event"'):
        described(ttl_clock=clock)


def test_a_clock_without_a_time_to_live_is_refused() -> None:
    source = Application("meters").source("visits", schema=Visit, key="who")
    with refused("ttl_clock='event' without a ttl"):
        source.stateful(see, state=Seen, ttl_clock="event")


@dataclass
class Watched:
    until: bettong.LogTimer = bettong.NEVER
    seen: bettong.Timer = bettong.NEVER


def watch(visit: Visit, watched: Watched) -> None:
    watched.until = watched.seen = visit.at + visit.place


def lost(fired: bettong.Fired[int], watched: Watched) -> Sighting:
    return Sighting(fired.key, 0, fired.at)


@every_speed
@pytest.mark.parametrize("ttl_clock", ["log", "event"])
@pytest.mark.parametrize(("at_ns", "fires"), [(TTL_NS, True), (TTL_NS + 1, False)])
def test_a_timer_beyond_the_end_of_its_state_does_not_fire_however_far_the_clock_goes_at_once(
    speed: Speed, ttl_clock: Any, at_ns: int, *, fires: bool
) -> None:
    handlers = (watch, lost) if speed == "python" else (compiled_twin(watch), compiled_twin(lost))
    app = Application("meters")
    source = app.source("visits", schema=Visit, key="who", event_time="at")
    source.stateful(
        handlers[0],
        state=Watched,
        timers={"until": handlers[1], "seen": handlers[1]},
        ttl=TTL,
        ttl_clock=ttl_clock,
        name="watch",
    ).sink("sightings")
    one = worker(program(plan(app).stages[0], compiled=True))
    # The time of the other clock is out of reach: it does not decide anything here.
    fold(one, [visits("a", 1, [Visit(1, at_ns, 0)], log_ns=0, watermark_ns=0)])
    moved = tick(2 * TTL_NS) if ttl_clock == "log" else sender_tick(0, a=2 * TTL_NS)
    given = results(fold(one, [moved]), FIRST_OUT, Sighting)
    assert [each.count for each in given] == [at_ns] * fires
    assert one.keys == 0


def test_what_fires_finds_the_states_behind_it_at_the_new_log_clock() -> None:
    app = Application("meters")
    source = app.source("visits", schema=Visit, key="who")
    firing = source.stateful(watch, state=Watched, timers={"until": lost, "seen": lost}, name="watch")
    firing.stateful(fill, state=Seen, ttl=TTL, name="busy").sink("sightings")
    one = worker(program(plan(app).stages[0], compiled=False))
    fold(one, [visits("a", 1, [Visit(1, 0, 7)], log_ns=0, watermark_ns=0)])
    assert one.due_ns == 7
    fold(one, [tick(5 * TTL_NS)])
    assert one.tables["busy"].state_of(1) == {"count": 1}
    assert one.due_ns == 6 * TTL_NS
    fold(one, [tick(6 * TTL_NS)])
    assert one.tables["busy"].state_of(1) is None
