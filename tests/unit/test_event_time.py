"""Event time in a partition's worker: what moves the watermark, what it ends, and how the next stage learns of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

import bettong
from bettong import Application
from bettong.application.plan import plan
from bettong.edges.directory_snapshots import DirectorySnapshots
from bettong.frames.frame import Frame, Kind, decode, encode
from bettong.v1.snapshot_pb2 import Snapshot
from bettong.worker.output.framing import OutputRecord
from bettong.worker.output.told import TICK_NS
from bettong.worker.partition import PartitionWorker
from bettong.worker.stage_program import program
from bettong_processor.programs import Programs
from bettong_processor.restoring import Limits, Restoring
from tests.samples.application import refused
from tests.samples.event_time import (
    IDLE_NS,
    TTL,
    TTL_NS,
    Seen,
    Sighting,
    Speed,
    Visit,
    control,
    described,
    programs,
    see,
    told,
    visits,
    workers,
)
from tests.samples.worker import FRAME_BYTES_MAX, dead_letters, fold, frames, results, tick, worker
from tests.simulation.twins import compiled_twin

FIRST_OUT, STAGE, LAST_OUT = "meters.sink.sightings", "meters.stage.places", "meters.sink.places-seen"
SILENT = structlog.wrap_logger(structlog.ReturnLogger(), processors=[])
every_speed = pytest.mark.parametrize("speed", ["python", "compiled"])


def watermark(of: PartitionWorker) -> int:
    return Snapshot.FromString(of.snapshot()[8:]).event_clock.watermark_ns


def ticks(records: Iterable[OutputRecord]) -> list[Frame]:
    return [each for each in frames(records, STAGE) if each.kind is Kind.TICK]


def data_of(records: Iterable[OutputRecord]) -> list[OutputRecord]:
    return [each for each in records if each.count]


def alone(at_ns: int, *, who: int = 1, place: int = 1, number: int = 1, log_ns: int = 0) -> bytes:
    """One visit of client `a`, whose watermark is its time."""
    return visits("a", number, [Visit(who, place, at_ns)], log_ns=log_ns, watermark_ns=at_ns)


@every_speed
@pytest.mark.parametrize(("watermark_ns", "expected"), [(TTL_NS - 1 + 50, 2), (TTL_NS + 50, 1)])
def test_a_state_ends_when_the_watermark_is_its_time_to_live_past_the_newest_message_of_the_key(
    speed: Speed, watermark_ns: int, expected: int
) -> None:
    one, _ = workers(speed)
    fold(one, [visits("a", 1, [Visit(1, 1, 50), Visit(1, 1, 20)], log_ns=5, watermark_ns=20)])
    fold(one, [visits("a", 2, [Visit(2, 1, watermark_ns)], log_ns=5, watermark_ns=watermark_ns)])
    given = fold(one, [visits("a", 3, [Visit(1, 1, watermark_ns)], log_ns=5, watermark_ns=watermark_ns)])
    assert results(given, FIRST_OUT, Sighting)[0].count == expected + (expected > 1)
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


def test_duplicates_and_gaps_do_not_move_the_watermark() -> None:
    one, _ = workers()
    fold(one, [alone(50)])
    again = visits("a", 1, [Visit(1, 1, 900)], log_ns=1, watermark_ns=900)
    gap = encode(replace(decode(alone(900, number=9)), previous=8))
    fold(one, [again, gap])
    assert (one.counters.duplicates, one.counters.gaps) == (1, 1)
    assert watermark(one) == 50


def test_a_client_that_has_opened_and_says_nothing_holds_the_watermark_until_it_is_idle() -> None:
    one, _ = workers()
    fold(one, [control(Kind.OPEN, "b", log_ns=5), alone(50, log_ns=6)])
    assert watermark(one) == 0
    fold(one, [alone(70, number=2, log_ns=5 + IDLE_NS)])
    assert watermark(one) == 70


def test_a_client_that_ends_holds_nothing_and_late_ticks_of_it_change_nothing() -> None:
    one, _ = workers()
    fold(one, [alone(50, log_ns=1), visits("b", 1, [Visit(2, 2, 20)], log_ns=2, watermark_ns=20)])
    fold(one, [told(3, a=80)])
    before = watermark(one)
    fold(one, [control(Kind.END, "b", acknowledged=1, log_ns=4, watermark_ns=30)])
    assert (before, watermark(one)) == (50, 80)
    fold(one, [told(5, a=90, b=40)])
    assert watermark(one) == 90
    fold(one, [control(Kind.OPEN, "b", acknowledged=1, log_ns=6), told(7, a=100)])
    assert watermark(one) == 90, "it is back, and may send anything"


def test_when_all_clients_have_ended_the_log_clock_moves_the_watermark_on() -> None:
    one, _ = workers()
    fold(one, [alone(50, log_ns=10), control(Kind.END, "a", acknowledged=1, log_ns=20)])
    assert one.due_ns == 20 + TTL_NS
    fold(one, [tick(20 + TTL_NS - 1)])
    assert one.keys == 1
    fold(one, [tick(20 + TTL_NS)])
    assert one.keys == 0


def test_applied_twice_or_late_a_tick_changes_nothing() -> None:
    one, _ = workers()
    fold(one, [told(5, a=50), told(9, a=90)])
    before = watermark(one)
    fold(one, [told(5, a=50), told(9, a=90)])
    assert before == watermark(one) == 90


def test_watermarks_of_streams_that_do_not_enter_here_are_not_kept() -> None:
    one, _ = workers()
    fold(one, [encode(replace(decode(told(5, a=50)), watermarks={"visitors/a": 9, "visits/a": 7}))])
    clock = Snapshot.FromString(one.snapshot()[8:]).event_clock
    assert [each.origin for each in clock.origins] == ["visits/a"]


def test_frames_to_the_next_stage_tell_event_times_and_the_watermark_before_their_record() -> None:
    one, _ = workers(partitions=2)
    fold(one, [alone(40)])
    given = fold(
        one, [visits("a", 2, [Visit(who, who % 2, 50 + who) for who in range(8)], log_ns=7, watermark_ns=57)]
    )
    found = [each for each in frames(given, STAGE) if each.kind is Kind.DATA]
    assert {each.watermark_ns for each in found} == {40}
    times = [at for each in found for at in np.frombuffer(each.event_times, "<i8").tolist()]
    assert times == [50 + each.who for each in results(data_of(given), STAGE, Sighting)]
    assert sorted(times) == list(range(50, 58))
    assert [each.event_times for each in frames(given, FIRST_OUT)] == [b""]


def test_a_large_result_frame_is_halved_with_its_event_times_within_the_limit() -> None:
    first, _ = programs()
    one = worker(first, frame_bytes_max=2048)
    many = [Visit(who, 1, who) for who in range(120)]
    given = fold(one, [visits("a", 1, many, log_ns=1, watermark_ns=1)])
    found = [each for each in frames(given, STAGE) if each.kind is Kind.DATA]
    assert len(found) > 1
    assert max(len(record.value) for record in given) <= 2048
    times = [at for each in found for at in np.frombuffer(each.event_times, "<i8").tolist()]
    assert times == list(range(120))


def test_partitions_that_get_no_frame_are_told_by_a_tick_after_a_while() -> None:
    one, _ = workers(partitions=4)
    log_ns = 10 * TICK_NS
    first = fold(one, [alone(50, log_ns=log_ns)])
    data_to = {record.partition for record in first if record.topic == STAGE and record.count}
    assert {record.partition for record in first if record.topic == STAGE} == {0, 1, 2, 3}
    assert {tuple(each.watermarks.items()) for each in ticks(first)} == {(("places/visits/0", 50),)}
    assert all(each.origin == "places/tick" and each.ingest_ns == log_ns for each in ticks(first))
    assert one.due_ns == log_ns + TICK_NS, "who got the frame knows the watermark before it"
    soon = fold(one, [alone(60, number=2, log_ns=log_ns + TICK_NS - 1)])
    assert ticks(soon) == []
    later = fold(one, [tick(log_ns + TICK_NS)])
    told_to = {record.partition for record in later}
    assert told_to == {0, 1, 2, 3} - data_to
    assert {each.watermarks["places/visits/0"] for each in ticks(later)} == {60}
    fold(one, [tick(log_ns + 2 * TICK_NS)])
    assert one.due_ns is not None
    assert one.due_ns > log_ns + 2 * TICK_NS, "all know, until the client is idle"
    assert ticks(fold(one, [tick(log_ns + 9 * TICK_NS)])) == []


def test_a_frame_whose_event_times_are_not_those_of_its_messages_is_a_dead_letter() -> None:
    one, two = workers()
    (frame,) = (each for each in frames(fold(one, [alone(50)]), STAGE) if each.kind is Kind.DATA)
    letters = dead_letters(fold(two, [encode(replace(frame, event_times=bytes(16)))]))
    assert [each.reason for each in letters] == ["16 bytes of event times for 1 messages"]


def test_without_times_a_frame_of_another_stage_counts_as_of_when_it_was_taken_in() -> None:
    one, two = workers()
    given = fold(one, [alone(50, log_ns=900)])
    (frame,) = (each for each in frames(given, STAGE) if each.kind is Kind.DATA)
    fold(two, [encode(replace(frame, event_times=b"", watermark_ns=900 + TTL_NS - 1))])
    assert two.keys == 1
    fold(two, [encode(replace(frame, sequence=frame.sequence + 1, previous=0, watermark_ns=900 + TTL_NS))])
    assert two.keys == 0


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
                which = chance.choice([Kind.OPEN, Kind.END])
                yield control(which, client, acknowledged=numbers[client], log_ns=self.log_ns)
            elif kind < 0.35:
                yield told(self.log_ns, **{client: newest[client]})
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
    restoring = Restoring(Programs(described(speed), stages), Limits(1, FRAME_BYTES_MAX), SILENT)
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
                store.save(name, 0, *crashed.increment())
            crashed = restoring.newest(store, name, 0)
            for again in range(crashed.next_offset, offset + 1):
                assert fold(crashed, [log[again]]) == outputs[again]
            assert crashed.snapshot() == states[offset]
        log = [record.value for given in outputs for record in given if record.topic == STAGE]
    assert min(expired) > 5, expired


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(0, TTL_NS - 1)), min_size=1),
    st.data(),
)
def test_within_the_time_to_live_results_do_not_depend_on_how_messages_were_cut_into_frames(
    messages: list[tuple[int, int, int]], data: Any
) -> None:
    found = [Visit(*each) for each in messages]
    cuts = data.draw(st.lists(st.integers(0, len(found)), max_size=6).map(sorted))
    seen = []
    for bounds in ([0, len(found)], [0, *cuts, len(found)]):
        one, two = workers()
        parts = [found[start:stop] for start, stop in pairwise(bounds) if start < stop]
        given_one, given_two, newest = [], [], 0
        for number, part in enumerate(parts, 1):
            newest = max(newest, *(each.at for each in part))
            records = fold(one, [visits("a", number, part, log_ns=number, watermark_ns=newest)])
            given_one += results(records, FIRST_OUT, Sighting)
            given_two += fold(two, [each.value for each in records if each.topic == STAGE])
        fold(two, [each.value for each in fold(one, [tick(2 * TICK_NS)]) if each.topic == STAGE])
        seen.append((given_one, results(given_two, LAST_OUT, Sighting), watermark(one), watermark(two)))
    assert seen[0] == seen[1]
    assert seen[0][2] == seen[0][3] == max(each.at for each in found)


def test_a_function_gives_the_event_time_and_what_it_cannot_tell_counts_as_when_it_was_taken_in() -> None:
    def time_of(visit: Visit) -> int:
        return visit.at // visit.place - 5

    one = worker(program(described(event_time=time_of).stages[0], compiled=False))
    found = [Visit(1, 2, 100), Visit(2, 0, 1), Visit(3, 1, 1)]
    given = fold(one, [visits("a", 1, found, log_ns=700, watermark_ns=45)])
    (frame,) = (each for each in frames(given, STAGE) if each.kind is Kind.DATA)
    assert np.frombuffer(frame.event_times, "<i8").tolist() == [45, 700, 700]


def test_a_stage_that_needs_no_time_writes_and_keeps_nothing_of_it() -> None:
    first, second = (program(stage, compiled=False) for stage in described(ttl_clock="log").stages)
    one = worker(first, partitions=2)
    given = fold(one, [alone(50), told(9 * TICK_NS, a=90)])
    assert ticks(given) == []
    assert not any(each.event_times for each in frames(given, STAGE))
    assert not Snapshot.FromString(one.snapshot()[8:]).HasField("event_clock")
    assert not second.stage.needs_time


def test_idle_timeouts_and_the_need_of_time_pass_through_key_by() -> None:
    first, second = described().stages
    assert [each.idle_timeout_ns for each in (*first.inputs, *second.inputs)] == [IDLE_NS, IDLE_NS]
    assert first.needs_time
    assert second.needs_time
    assert [output.needs_time for output in first.outputs] == [False, True]


@pytest.mark.parametrize("clock", ["watermark", None, 1])
def test_a_clock_that_is_none_is_refused_where_it_is_given(clock: Any) -> None:
    with refused("stateful 'seen'", f"ttl_clock={clock!r}", '"log" or "event"'):
        described(ttl_clock=clock)


def test_a_clock_without_a_time_to_live_is_refused() -> None:
    source = Application("meters").source("visits", schema=Visit, key="who")
    with refused("ttl_clock='event' without a ttl"):
        source.stateful(see, state=Seen, ttl_clock="event")


def test_without_event_time_or_ttl_nothing_is_ever_due() -> None:
    app = Application("meters")
    app.source("visits", schema=Visit, key="who").stateful(see, state=Seen).sink("out")
    (stage,) = plan(app).stages
    one = worker(program(stage, compiled=False))
    fold(one, [alone(50, log_ns=9)])
    assert one.due_ns is None


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
    moved = tick(2 * TTL_NS) if ttl_clock == "log" else told(0, a=2 * TTL_NS)
    given = results(fold(one, [moved]), FIRST_OUT, Sighting)
    assert [each.count for each in given] == [at_ns] * fires
    assert one.keys == 0
