"""Event time in a partition's worker: what moves the watermark, what it closes, and how it reaches the next stage."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong import Application
from bettong.application.plan import plan
from bettong.frames.frame import Frame, FrameKind, decode, encode, tick_record
from bettong.identifiers import Origin, SequenceNumber
from bettong.inspection.key_history import KeyHistory
from bettong.v1.snapshot_pb2 import Snapshot
from bettong.worker.output.downstream_watermarks import TICK_NS
from bettong.worker.output.framing import OutputRecord
from bettong.worker.partition import Assignment, PartitionWorker
from bettong.worker.stage_program import program
from tests.samples.event_time import (
    FIRST_OUT,
    IDLE_NS,
    LAST_OUT,
    STAGE,
    TTL_NS,
    Seen,
    Sighting,
    Visit,
    alone,
    control,
    described,
    programs,
    see,
    sender_tick,
    visits,
    workers,
)
from tests.samples.worker import FRAME_BYTES_MAX, dead_letters, fold, frames, results, tick, worker


def watermark(of: PartitionWorker) -> int:
    return Snapshot.FromString(of.snapshot()[8:]).event_clock.watermark_ns


def ticks(records: Iterable[OutputRecord]) -> list[Frame]:
    return [each for each in frames(records, STAGE) if each.kind is FrameKind.TICK]


def data_of(records: Iterable[OutputRecord]) -> list[OutputRecord]:
    return [each for each in records if each.count]


def test_duplicates_and_gaps_do_not_move_the_watermark() -> None:
    one, _ = workers()
    fold(one, [alone(50)])
    again = visits("a", 1, [Visit(1, 1, 900)], log_ns=1, watermark_ns=900)
    gap = encode(replace(decode(alone(900, number=9)), previous=SequenceNumber(8)))
    fold(one, [again, gap])
    assert (one.counters.duplicates, one.counters.gaps) == (1, 1)
    assert watermark(one) == 50


def test_a_client_that_has_opened_and_says_nothing_holds_the_watermark_until_it_is_idle() -> None:
    one, _ = workers()
    fold(one, [control(FrameKind.OPEN, "b", log_ns=5), alone(50, log_ns=6)])
    assert watermark(one) == 0
    fold(one, [alone(70, number=2, log_ns=5 + IDLE_NS)])
    assert watermark(one) == 70


@pytest.mark.parametrize("kept", [False, True])
def test_a_client_that_ends_holds_nothing_and_late_ticks_of_it_change_nothing(*, kept: bool) -> None:
    one, _ = workers()
    fold(one, [alone(50, log_ns=1), visits("b", 1, [Visit(2, 2, 20)], log_ns=2, watermark_ns=20)])
    fold(one, [sender_tick(3, a=80)])
    before = watermark(one)
    end = decode(control(FrameKind.END, "b", acknowledged=1, log_ns=4, watermark_ns=30))
    fold(one, [encode(replace(end, kept=kept))])
    assert (before, watermark(one)) == (50, 80)
    fold(one, [sender_tick(5, a=90, b=40)])
    assert watermark(one) == 90
    fold(one, [control(FrameKind.OPEN, "b", acknowledged=1, log_ns=6), sender_tick(7, a=100)])
    assert watermark(one) == 90, "it is back, and may send anything"


def test_a_client_known_by_ticks_alone_holds_nothing_after_its_end_either() -> None:
    one, _ = workers()
    fold(one, [alone(50, log_ns=1), sender_tick(2, b=20), sender_tick(3, a=80)])
    before = watermark(one)
    fold(one, [control(FrameKind.END, "b", log_ns=4, watermark_ns=30)])
    assert (before, watermark(one)) == (50, 80)


def test_when_all_clients_have_ended_the_log_clock_moves_the_watermark_on() -> None:
    one, _ = workers()
    fold(one, [alone(50, log_ns=10), control(FrameKind.END, "a", acknowledged=1, log_ns=20)])
    assert one.due_ns == 20 + TTL_NS
    fold(one, [tick(20 + TTL_NS - 1)])
    assert one.keys == 1
    fold(one, [tick(20 + TTL_NS)])
    assert one.keys == 0


def test_applied_twice_or_late_a_tick_changes_nothing() -> None:
    one, _ = workers()
    fold(one, [sender_tick(5, a=50), sender_tick(9, a=90)])
    before = watermark(one)
    fold(one, [sender_tick(5, a=50), sender_tick(9, a=90)])
    assert before == watermark(one) == 90


def test_watermarks_of_streams_that_do_not_enter_here_are_not_kept() -> None:
    one, _ = workers()
    known = {Origin("visitors/a"): 9, Origin("visits/a"): 7}
    fold(one, [tick_record("visits", 5, known)])
    clock = Snapshot.FromString(one.snapshot()[8:]).event_clock
    assert [each.origin for each in clock.origins] == ["visits/a"]


def test_frames_to_the_next_stage_carry_event_times_and_the_watermark_before_their_record() -> None:
    one, _ = workers(partitions=2)
    fold(one, [alone(40)])
    given = fold(
        one, [visits("a", 2, [Visit(who, who % 2, 50 + who) for who in range(8)], log_ns=7, watermark_ns=57)]
    )
    found = [each for each in frames(given, STAGE) if each.kind is FrameKind.DATA]
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
    found = [each for each in frames(given, STAGE) if each.kind is FrameKind.DATA]
    assert len(found) > 1
    assert max(len(record.value) for record in given) <= 2048
    times = [at for each in found for at in np.frombuffer(each.event_times, "<i8").tolist()]
    assert times == list(range(120))


def test_partitions_that_get_no_frame_get_a_tick_after_a_while() -> None:
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
    received_by = {record.partition for record in later}
    assert received_by == {0, 1, 2, 3} - data_to
    assert {each.watermarks[Origin("places/visits/0")] for each in ticks(later)} == {60}
    fold(one, [tick(log_ns + 2 * TICK_NS)])
    assert one.due_ns is not None
    assert one.due_ns > log_ns + 2 * TICK_NS, "all know, until the client is idle"
    assert ticks(fold(one, [tick(log_ns + 3 * TICK_NS)])) == []


def test_a_frame_whose_event_times_are_not_those_of_its_messages_is_a_dead_letter() -> None:
    one, two = workers()
    (frame,) = (each for each in frames(fold(one, [alone(50)]), STAGE) if each.kind is FrameKind.DATA)
    found_dead = dead_letters(fold(two, [encode(replace(frame, event_times=bytes(16)))]))
    assert [each.reason for each in found_dead] == ["16 bytes of event times for 1 messages"]


def test_without_times_a_frame_of_another_stage_counts_as_of_when_it_was_taken_in() -> None:
    one, two = workers()
    given = fold(one, [alone(50, log_ns=900)])
    (frame,) = (each for each in frames(given, STAGE) if each.kind is FrameKind.DATA)
    fold(two, [encode(replace(frame, event_times=b"", watermark_ns=900 + TTL_NS - 1))])
    assert two.keys == 1
    fold(
        two,
        [
            encode(
                replace(
                    frame,
                    sequence=SequenceNumber(frame.sequence + 1),
                    previous=SequenceNumber(0),
                    watermark_ns=900 + TTL_NS,
                )
            )
        ],
    )
    assert two.keys == 0


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


def test_a_function_gives_the_event_time_and_what_it_cannot_say_counts_as_when_it_was_taken_in() -> None:
    def time_of(visit: Visit) -> int:
        return visit.at // visit.place - 5

    one = worker(program(described(event_time=time_of).stages[0], compiled=False))
    found = [Visit(1, 2, 100), Visit(2, 0, 1), Visit(3, 1, 1)]
    given = fold(one, [visits("a", 1, found, log_ns=700, watermark_ns=45)])
    (frame,) = (each for each in frames(given, STAGE) if each.kind is FrameKind.DATA)
    assert np.frombuffer(frame.event_times, "<i8").tolist() == [45, 700, 700]


def test_a_stage_that_needs_no_time_writes_and_keeps_nothing_of_it() -> None:
    first, second = (program(stage, compiled=False) for stage in described(ttl_clock="log").stages)
    one = worker(first, partitions=2)
    given = fold(one, [alone(50), sender_tick(9 * TICK_NS, a=90)])
    assert ticks(given) == []
    assert not any(each.event_times for each in frames(given, STAGE))
    assert not Snapshot.FromString(one.snapshot()[8:]).HasField("event_clock")
    assert not second.stage.needs_time


def test_the_need_of_time_passes_through_key_by_and_idle_timeouts_do_not() -> None:
    first, second = described().stages
    assert [each.idle_timeout_ns for each in (*first.inputs, *second.inputs)] == [IDLE_NS, None]
    assert first.needs_time
    assert second.needs_time
    assert [output.needs_time for output in first.outputs] == [False, True]


def test_without_event_time_or_ttl_nothing_is_ever_due() -> None:
    app = Application("meters")
    app.source("visits", schema=Visit, key="who").stateful(see, state=Seen).sink("out")
    (stage,) = plan(app).stages
    one = worker(program(stage, compiled=False))
    fold(one, [alone(50, log_ns=9)])
    assert one.due_ns is None


def test_the_history_of_a_key_is_shown_in_a_stage_that_needs_time_too() -> None:
    of = KeyHistory(programs()[0], Assignment("meters", 0, 1, FRAME_BYTES_MAX), 1, {})
    found = [Visit(2, 3, 5), Visit(1, 3, 6), Visit(2, 4, 7), Visit(1, 4, 8)]
    events = of.fold(0, visits("a", 1, found, log_ns=1, watermark_ns=8))
    assert [[step.after for step in event.steps] for event in events] == [[{"count": 1}], [{"count": 2}]]
    assert [[target for target, _ in event.outputs] for event in events] == [["sightings", "places"]] * 2
