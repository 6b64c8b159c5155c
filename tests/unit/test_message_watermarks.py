"""Whether a message is late: by the messages before it in its origin, however these were batched into frames."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong import Application
from bettong.application.on_error import OnError
from bettong.application.plan import Stage, plan
from bettong.delivery import DeliveryTable
from bettong.errors import FrameError, PoisonError
from bettong.frames.columns import Columns
from bettong.frames.frame import Frame, FrameKind, decode, encode
from bettong.frames.times import decode_times, encode_times
from bettong.identifiers import Origin, SequenceNumber
from bettong.worker import stage_run
from bettong.worker.batch import Batch
from bettong.worker.event_clock import EventClock
from bettong.worker.event_times import EventTimes
from bettong.worker.exclusions import Excluded, Exclusion
from bettong.worker.message_watermarks import MessageWatermarks, own_watermarks
from bettong.worker.operators.stateful import StatefulOperator
from bettong.worker.output.framing import OutputRecord
from bettong.worker.stage_program import StageProgram, program
from bettong.worker.watermark_steps import watermark_steps
from tests.samples.lateness import (
    FAILS,
    GAP_NS,
    OUT,
    PLACES,
    Client,
    Episode,
    Reading,
    Seen,
    decoded,
    end,
    end_of_place,
    judging,
    look,
    note,
    own_before,
    readings_in,
)
from tests.samples.worker import dead_letters, fold, frames, results, worker

times = st.lists(st.integers(0, 60), min_size=1, max_size=24)
boundaries = st.lists(st.integers(0, 24), max_size=6)


def parts_of(readings: list[Reading], bounds: list[int]) -> list[list[Reading]]:
    rows = sorted({0, len(readings), *(each for each in bounds if each < len(readings))})
    return [readings[start:stop] for start, stop in pairwise(rows)]


def judged(clock: EventClock, frame: Frame) -> list[int]:
    """The watermark before each message of a frame, which the clock passes."""
    clock.pass_time(frame.ingest_ns)
    found: list[int] = clock.before_messages(frame, frame.count).of_messages(np.arange(frame.count)).tolist()
    clock.pass_record(frame, DeliveryTable(), is_taken=frame.kind is FrameKind.DATA)
    return found


@given(times, boundaries, st.sampled_from([1, 3, 16]), st.sampled_from([0, 4]), st.integers(0, 5))
def test_a_late_message_is_judged_by_all_messages_before_it_in_its_origin(
    at: list[int], bounds: list[int], partitions: int, out_of_order_ns: int, spread: int
) -> None:
    of = judging(out_of_order_ns)
    client = Client(of, partitions)
    readings = [Reading(number, number * spread % 7, each) for number, each in enumerate(at)]
    expected = own_before(at, out_of_order_ns)
    clocks = [EventClock(of.stages[0], (), 1) for _ in range(partitions)]
    seen = 0
    for part in parts_of(readings, bounds):
        for partition, frame in decoded(client.send(part)):
            watermarks = judged(clocks[partition], frame)
            messages = readings_in(frame)
            late = [message.at < expected[message.number] for message in messages]
            assert bool(frame.message_watermarks) == any(late), "a column, only where it is needed"
            for message, watermark_ns, is_late in zip(messages, watermarks, late, strict=True):
                assert watermark_ns == expected[message.number] if is_late else watermark_ns <= message.at
            seen += len(messages)
    assert seen == len(at)


blocks = st.lists(st.tuples(st.sampled_from("abc"), times, st.integers(0, 3)), min_size=1, max_size=6)


@given(blocks)
def test_between_several_origins_the_order_of_the_log_decides_and_not_how_frames_were_cut(
    found: list[tuple[str, list[int], int]],
) -> None:
    of = judging(0, idle_ns=2000)

    def late(*, one_by_one: bool) -> list[tuple[int, int]]:
        clients = {name: Client(of, 1, name) for name in "abc"}
        clock, now_ns, number = EventClock(of.stages[0], (), 1), 1000, 0
        verdicts = []
        for name, at, passed in found:
            now_ns += passed * 1000
            readings = [Reading(number + index, 1, each) for index, each in enumerate(at)]
            number += len(at)
            for part in [[each] for each in readings] if one_by_one else [readings]:
                for _, frame in decoded(clients[name].send(part, now_ns)):
                    watermarks = judged(clock, frame)
                    verdicts += [
                        (message.number, watermark_ns)
                        for message, watermark_ns in zip(readings_in(frame), watermarks, strict=True)
                        if message.at < watermark_ns
                    ]
        return verdicts

    assert late(one_by_one=False) == late(one_by_one=True)


def test_the_slowest_other_origin_holds_back_what_a_message_is_judged_by() -> None:
    of = judging()
    clock, slow, fast = EventClock(of.stages[0], (), 1), Client(of, 1, "slow"), Client(of, 1, "fast")
    sent = [
        *fast.send([Reading(1, 1, 1)]),
        *slow.send([Reading(2, 1, 100)]),
        *fast.send([Reading(3, 1, 50), Reading(4, 1, 200), Reading(5, 1, 150), Reading(6, 1, 60)]),
    ]
    assert [judged(clock, frame) for _, frame in decoded(sent)][-1] == [1, 50, 100, 100]


def programs() -> tuple[StageProgram, StageProgram]:
    first, second = (program(stage, compiled=False) for stage in judging().stages)
    return first, second


PROGRAMS = programs()


def folded(parts: Iterable[list[Reading]], of: StageProgram = PROGRAMS[0]) -> list[OutputRecord]:
    client, one = Client(judging(), 1), worker(of)
    return fold(one, [value for part in parts for _, value in client.send(part)])


def looking(at: list[int], sensors: int) -> list[Reading]:
    """Readings of which those look that are late."""
    return [
        Reading(number + 1, number % sensors, each, looks=each < before)
        for number, (each, before) in enumerate(zip(at, own_before(at), strict=True))
    ]


def seen_by_readings(records: Iterable[OutputRecord]) -> list[Seen]:
    return [each for each in results(records, OUT, Seen) if each.looks]


@given(times, boundaries, st.integers(1, 3))
def test_late_messages_find_fired_what_was_due_before_them_however_messages_were_cut(
    at: list[int], bounds: list[int], sensors: int
) -> None:
    readings = looking(at, sensors)
    one_by_one = seen_by_readings(folded([each] for each in readings))
    assert seen_by_readings(folded([readings])) == one_by_one
    assert seen_by_readings(folded(parts_of(readings, bounds))) == one_by_one


def bounded() -> AbstractContextManager[object]:
    """A computation with a lower bound of the timers that its rows set."""
    return patch.object(StatefulOperator, "soonest_due", lambda _, times_ns: times_ns + GAP_NS)


@given(times, boundaries, st.integers(1, 3))
def test_a_bound_of_what_rows_make_due_saves_stops_and_changes_no_byte(
    at: list[int], bounds: list[int], sensors: int
) -> None:
    parts = parts_of(looking(at, sensors), bounds)
    with patch("bettong.worker.stage_run.run", wraps=stage_run.run) as often:
        straight = folded(parts)
    with patch("bettong.worker.stage_run.run", wraps=stage_run.run) as seldom, bounded():
        assert folded(parts) == straight
    assert seldom.call_count <= often.call_count


def test_messages_that_are_late_by_less_than_what_is_due_cut_no_frame() -> None:
    readings = looking([at + (-4 if at % 2 else 4) for at in range(100, 200)], 1)
    assert sum(each.looks for each in readings) > 40
    cuts_found = []
    for bound in (None, lambda times_ns: times_ns + 1000):
        batch = Batch.of_frame(
            judging().stages[0].inputs[0], Columns.of_messages(judging().sources[0].schema, readings)
        ).at(EventTimes.of(np.array([each.at for each in readings])))
        own = np.array(own_before([each.at for each in readings]))
        found = watermark_steps(batch.judged_by(MessageWatermarks(0, own)), 0, [bound or (lambda _: None)])
        cuts_found.append([cut for cut in found if cut.soonest_ns <= cut.watermark_ns])
    assert len(cuts_found[0]) > 40
    assert cuts_found[1] == []


def test_what_fires_within_a_frame_leaves_between_its_messages() -> None:
    records = folded(
        [
            [
                Reading(1, 1, 0),
                Reading(2, 1, 3),
                Reading(3, 2, 50),
                Reading(4, 1, 1, looks=True),
                Reading(5, 3, 70),
                Reading(6, 2, 55, looks=True),
            ]
        ]
    )
    assert [(each.number, each.at, each.ended) for each in results(records, OUT, Seen)] == [
        (1, 0, 0),
        (2, 3, 0),
        (3, 50, 0),
        (0, 13, 1),
        (4, 1, 1),
        (5, 70, 0),
        (0, 60, 1),
        (6, 55, 1),
    ]


@given(times, boundaries)
def test_the_next_stage_judges_messages_as_this_one_and_nothing_late_that_time_made(
    at: list[int], bounds: list[int]
) -> None:
    readings = looking(at, 3)
    expected = dict(zip(range(1, len(at) + 1), own_before(at), strict=True))
    found = []
    for cut in ([[each] for each in readings], [readings], parts_of(readings, bounds)):
        clock, late = EventClock(judging().stages[1], (), 1), []
        for frame in frames(folded(cut), PLACES):
            if frame.kind is not FrameKind.DATA:
                clock.pass_time(frame.ingest_ns)
                clock.pass_record(frame, DeliveryTable(), is_taken=False)
                continue
            own = decode_times(frame.event_times, frame.count, "event times").tolist()
            for message, at_ns, watermark_ns in zip(
                results([OutputRecord(PLACES, 0, encode(frame), frame.count)], PLACES, Seen),
                own,
                judged(clock, frame),
                strict=True,
            ):
                if message.looks:
                    assert watermark_ns == expected[message.number] > at_ns
                    late.append(message.number)
                else:
                    assert watermark_ns <= at_ns
        found.append(late)
    assert sorted(found[0]) == [each.number for each in readings if each.looks]
    assert found[0] == found[1] == found[2]


def chain(parts: Iterable[list[Reading]]) -> list[Seen]:
    two = worker(PROGRAMS[1])
    values = [record.value for record in folded(parts) if record.topic == PLACES]
    return results(fold(two, values), "meters.sink.places-seen", Seen)


@given(times, boundaries)
def test_late_messages_find_fired_what_was_due_before_them_in_the_next_stage_too(
    at: list[int], bounds: list[int]
) -> None:
    readings = looking(at, 2)
    one_by_one = chain([each] for each in readings)
    assert chain([readings]) == one_by_one
    assert chain(parts_of(readings, bounds)) == one_by_one


@given(times, boundaries, st.data())
def test_a_worker_that_is_restored_between_records_goes_on_alike(
    at: list[int], bounds: list[int], data: Any
) -> None:
    client = Client(judging(), 1)
    values = [value for part in parts_of(looking(at, 2), bounds) for _, value in client.send(part)]
    with bounded() if data.draw(st.booleans()) else nullcontext():
        straight, crashing = worker(PROGRAMS[0]), worker(PROGRAMS[0])
        for value in values:
            assert fold(straight, [value]) == fold(crashing, [value])
            if data.draw(st.booleans()):
                saved = crashing.snapshot()
                crashing = worker(PROGRAMS[0])
                crashing.restore(saved)
        assert straight.snapshot() == crashing.snapshot()


def test_watermarks_of_another_number_of_messages_are_a_dead_letter() -> None:
    (_, _), (_, value) = Client(judging(), 1).send([Reading(1, 1, 9), Reading(2, 1, 5)])
    frame = decode(value)
    assert np.frombuffer(frame.message_watermarks, "<i8").tolist() == [0, 9]
    spoilt = encode(replace(frame, message_watermarks=bytes(17)))
    (dead_letter,) = dead_letters(fold(worker(PROGRAMS[0]), [spoilt]))
    assert dead_letter.reason == "17 bytes of watermarks for 2 messages"
    with pytest.raises(FrameError, match="8 bytes of watermarks for 2"):
        own_watermarks(replace(frame, message_watermarks=bytes(8)), 2)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=6))
def test_watermarks_that_nobody_can_have_made_hold_no_worker_up(values: list[int]) -> None:
    client = Client(judging(), 1)
    frame = decode(client.send([Reading(number + 1, 1, 20 - number) for number in range(len(values))])[-1][1])
    one = worker(PROGRAMS[0])
    fold(one, [encode(replace(frame, message_watermarks=encode_times(np.array(values))))])
    fold(one, [value for _, value in client.send([Reading(9, 1, 99)])])


def test_an_origin_that_this_stage_does_not_know_moves_nothing() -> None:
    stage: Stage = judging().stages[1]
    clock = EventClock(stage, (), 1)
    frame = Frame(
        origin=Origin("places/gone/0"),
        sequence=SequenceNumber(1),
        previous=SequenceNumber(0),
        count=2,
        message_watermarks=encode_times(np.array([7, 9])),
    )
    assert judged(clock, frame) == [0, 0]


@pytest.mark.parametrize("on_error", ["dead-letter", "stop"])
def test_a_message_that_fails_is_named_by_its_index_in_the_whole_frame(on_error: OnError) -> None:
    one = worker(program(judging(on_error=on_error).stages[0], compiled=False))
    readings = [
        Reading(1, 1, 5),
        Reading(2, 2, 50),
        Reading(3, 1, 1, looks=True),  # what was due fires before it
        Reading(4, FAILS, 60),
        Reading(5, 2, 2, looks=True),
    ]
    values = [value for _, value in Client(judging(), 1).send(readings)]
    if on_error == "stop":
        with pytest.raises(PoisonError, match="index 3"):
            fold(one, values)
        return
    records = fold(one, values)
    assert [each.index for each in dead_letters(records)] == [3]
    assert [(each.number, each.ended) for each in results(records, OUT, Seen)] == [
        (1, 0),
        (2, 0),
        (0, 1),
        (3, 1),
        (0, 1),
        (5, 1),
    ]
    assert (one.counters.frames, one.counters.messages, one.counters.results) == (1, 5, 12)


def test_messages_that_are_left_out_leave_the_others_as_they_are() -> None:
    readings = [
        Reading(1, 1, 5),
        Reading(2, 2, 50),
        Reading(3, 1, 1, looks=True),
        Reading(4, 1, 2, looks=True),
    ]
    values = [value for _, value in Client(judging(), 1).send(readings)]
    one = worker(PROGRAMS[0])
    one.exclusions = {1: Exclusion(1, (Excluded(2, 3, "episodes", "it killed a worker"),))}
    records = fold(one, values)
    numbers = [(each.number, each.ended) for each in results(records, OUT, Seen)]
    assert numbers == [(1, 0), (2, 0), (0, 1), (4, 1)]
    assert [each.index for each in dead_letters(records)] == [2]


def test_a_large_result_frame_is_halved_with_its_watermarks_within_the_limit() -> None:
    one = worker(PROGRAMS[0], frame_bytes_max=2048)
    readings = [Reading(number + 1, number % 90, 1000 - number, looks=number > 0) for number in range(200)]
    given_ = fold(one, [value for _, value in Client(judging(), 1).send(readings)])
    assert max(len(record.value) for record in given_) <= 2048
    found = [each for each in frames(given_, PLACES) if each.kind is FrameKind.DATA]
    assert len(found) > 5
    assert [len(each.message_watermarks) for each in found] == [8 * each.count for each in found]
    assert sum(each.count for each in found) == 200


def test_a_stage_judges_lateness_where_a_computation_does_or_one_behind_it() -> None:
    app = Application("shop")
    readings = app.source("readings", schema=Reading, key="sensor", event_time="at")
    first = readings.stateful(note, state=Episode, name="first", timers={"until": end})
    second = first.key_by("place", name="places").stateful(
        look, state=Episode, name="second", timers={"until": end_of_place}
    )
    second.key_by("sensor", name="sensors").sink("out")
    assert [each.judges_lateness for each in plan(app).stages] == [False, False, False]
    # As a computation says of itself.
    object.__setattr__(second.node, "judges_lateness", True)
    stages = plan(app).stages
    assert [each.judges_lateness for each in stages] == [True, True, False]
    assert [[each.judges_lateness for each in stage.outputs] for stage in stages] == [
        [True],
        [False],
        [False],
    ]
    assert [each.needs_time for each in stages] == [True, True, False]
