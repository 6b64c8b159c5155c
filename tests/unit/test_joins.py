"""Joins: which pairs they make and when, which messages stay alone or are late, and that nothing is kept too long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bettong
from bettong import Application, Stream
from bettong.application.joins.joined import Joined
from bettong.application.joins.kinds import AsOf, How, JoinKind, Latest, Within
from bettong.application.plan import plan
from bettong.frames.columns import Columns
from bettong.frames.frame import decode
from bettong.schema.schema import schema_of
from bettong.worker.partition import PartitionWorker
from bettong.worker.stage_program import StageProgram, program
from tests.samples import joins as of
from tests.samples.joins import (
    LATE,
    OUT,
    US,
    Event,
    Make,
    Pair,
    as_of,
    event,
    in_window,
    joined,
    lates,
    latest,
    pairs,
    record,
    us,
    within,
)
from tests.samples.timers import tick as tick_of
from tests.samples.worker import data, dead_letters, fold, python, results, worker
from tests.simulation.frame_contents import event_times_in
from tests.simulation.key_joins import KeyJoin, join_streams, key_join

HOWS = ["inner", "left", "right", "outer"]


def ready(make: Make, **more: Any) -> StageProgram:
    return python(joined(make, **more))


def fresh(make: Make, **more: Any) -> PartitionWorker:
    return worker(ready(make, **more))


STEPS = st.lists(
    st.tuples(st.integers(1, 2), st.booleans(), st.integers(-14, 20), st.integers(-9, 9)),
    min_size=1,
    max_size=40,
)
KINDS = st.one_of(
    st.tuples(
        st.builds(lambda lower, size: Within(lower, lower + size), st.integers(-6, 6), st.integers(0, 9)),
        st.sampled_from(HOWS),
    ),
    st.tuples(st.builds(AsOf, st.sampled_from([None, 0, 3, 8])), st.sampled_from(HOWS[:2])),
    st.tuples(st.just(Latest()), st.sampled_from(HOWS[:2])),
)


@settings(max_examples=400)
@given(drawn=KINDS, steps=STEPS, crashes=st.sets(st.integers(0, 39)))
def test_joins_are_what_their_semantics_say(
    drawn: tuple[JoinKind, How], steps: list[tuple[int, bool, int, int]], crashes: set[int]
) -> None:
    """Each message in its own record; an advancing watermark; workers restored in between."""
    kind, how = drawn
    of_stage = ready(any_join(kind, how))
    one = worker(of_stage)
    keys: dict[int, KeyJoin] = {}
    lates_so_far = watermark_ns = 0
    for number, (key, is_right, ahead_ns, forward_ns) in enumerate(steps, 1):
        mine = Event(key, is_right, max(0, watermark_ns + ahead_ns), number)
        of_key = keys.setdefault(key, key_join(kind, how, watermark_ns))
        is_late, expected = of_key.take(is_right, mine.at, number)
        lates_so_far += is_late
        watermark_ns = max(watermark_ns, watermark_ns + forward_ns)
        fired = []
        for key_, each in keys.items():
            each.watermark_ns = watermark_ns
            while (due := each.due()) is not None:
                fired.append((due.due_ns, key_, (due.left, due.right)))
        expected += [pair for _, _, pair in sorted(fired, key=lambda each: each[:2])]
        found = fold(one, [data("in/x", number, [mine], watermark_ns=watermark_ns)])
        numbers = [tuple(-1 if each is None else each for each in pair) for pair in expected]
        made = [each for each in numbers if not of.fails(Pair(0, *each))]
        assert pairs(found) == [each for each in made if not of.is_nothing(Pair(0, *each))]
        assert len(dead_letters(found)) == len(numbers) - len(made)
        assert lates(found) == [number] * is_late
        assert one.counters.late == lates_so_far
        assert one.keys == sum(each.is_known for each in keys.values())
        if number in crashes:
            saved = one.snapshot()
            one = worker(of_stage)
            one.restore(saved)
            assert one.snapshot() == saved
    fold(one, [tick_of(1, watermark_ns + 1000)])
    for each in keys.values():
        each.watermark_ns = watermark_ns + 1000
        while each.due():
            pass
    assert one.keys == sum(each.is_known for each in keys.values())


def any_join(kind: JoinKind, how: How) -> Make:
    """Bounds of any number of ns, which an application cannot give."""
    return lambda left, right, combine, **more: join_streams(left, right, combine, kind, how, **more)


ROWS: dict[str, tuple[Make, str, list[tuple[int, int]]]] = {
    "both ends are included": (within(-2, 3, "inner"), "l10:1 r8:2 r13:3 r7:4 r14:5", [(1, 2), (1, 3)]),
    "each pair once, with the later one": (within(0, 5, "inner"), "r12:1 l10:2 l11:3", [(2, 1), (3, 1)]),
    "partners go in the log's order": (
        within(-9, 9, "inner"),
        "r15:1 r11:2 r13:3 l12:4",
        [(4, 1), (4, 2), (4, 3)],
    ),
    "the newest in the log's order": (latest("inner"), "l1:9 r20:1 l2:2 r10:3 l3:4", [(2, 1), (4, 3)]),
    "without one, where how is left": (latest("left"), "l1:8 r20:1 l2:2", [(8, -1), (2, 1)]),
}


@pytest.mark.parametrize("row", ROWS)
def test_pairs_that_messages_make(row: str) -> None:
    """The output for messages `SIDE TIME : VALUE`, in one frame and in a frame each."""
    make, text, expected = ROWS[row]
    events = [
        event(1, each[0], int(at), int(value))
        for each in text.split()
        for at, _, value in [each[1:].partition(":")]
    ]
    assert pairs(fold(fresh(make), [record(1, events, 0)])) == expected
    apart = [record(number, [each], 0) for number, each in enumerate(events, 1)]
    assert pairs(fold(fresh(make), apart)) == expected


def test_whoever_stays_alone_comes_when_the_watermark_is_past_its_last_possible_partner() -> None:
    one = fresh(within(-2, 3, "outer"))
    log = [event(1, "l", 10, 1), event(2, "r", 10, 2), event(3, "l", 10, 3), event(3, "r", 9, 4)]
    assert pairs(fold(one, [record(1, log, 10)])) == [(3, 4)]
    # The right one of key 2 could be partner of a left one at 7 to 12.
    assert pairs(fold(one, [tick_of(1, 12 * US)])) == []
    assert pairs(fold(one, [tick_of(1, 12 * US + 1)])) == [(-1, 2)]
    assert pairs(fold(one, [tick_of(1, 13 * US)])) == []
    assert one.keys == 2
    assert pairs(fold(one, [tick_of(1, 13 * US + 1)])) == [(1, -1)]
    assert one.keys == 0


def test_a_message_is_late_only_where_nothing_that_could_be_its_partner_may_be_kept() -> None:
    one = fresh(within(0, 5, "left"))
    fold(one, [record(1, [event(1, "l", 16, 1), event(1, "r", 18, 8)], 20)])
    # The one at 16 is kept until 21: a right one at 16 is its partner, though older than the watermark.
    assert pairs(fold(one, [record(2, [event(1, "r", 16, 2)], 20)])) == [(1, 2)]
    # A left one at 15 could have a right one at 20, which would be kept.
    found = fold(one, [record(3, [event(1, "l", 15, 3), event(1, "l", 14, 4), event(1, "r", 14, 5)], 20)])
    assert pairs(found) == []
    assert lates(found) == [4, 5]
    assert one.counters.late == 2
    assert pairs(fold(one, [tick_of(1, 99 * US)])) == [(3, -1)]


def test_a_value_of_a_table_is_deleted_by_its_own_message_and_ends_when_no_newer_one_comes() -> None:
    one = fresh(latest("left", delete_when="gone", ttl=us(5)))
    assert pairs(fold(one, [record(1, [event(1, "r", 1, 1), event(1, "l", 1, 2)], 0, ingest_ns=0)])) == [
        (2, 1)
    ]
    gone = [event(1, "r", 1, 3, gone=True), event(1, "l", 1, 4)]
    assert pairs(fold(one, [record(2, gone, 0, ingest_ns=1 * US)])) == [(4, -1)]
    assert (one.keys, one.counters.deleted) == (0, 1)
    fold(one, [record(3, [event(1, "r", 1, 5)], 0, ingest_ns=2 * US)])
    # A lookup does not extend its life.
    assert pairs(fold(one, [record(4, [event(1, "l", 1, 6)], 0, ingest_ns=7 * US - 1)])) == [(6, 5)]
    assert pairs(fold(one, [record(5, [event(1, "l", 1, 8)], 0, ingest_ns=7 * US)])) == [(8, -1)]
    assert (one.keys, one.counters.expired) == (0, 1)


def test_a_version_at_the_message_s_own_time_counts_whichever_comes_first() -> None:
    one = fresh(as_of(None, "inner"))
    log = [event(1, "r", 5, 1), event(1, "l", 10, 2), event(1, "r", 10, 3), event(1, "r", 11, 4)]
    assert pairs(fold(one, [record(1, log, 10)])) == []
    assert pairs(fold(one, [tick_of(1, 10 * US + 1)])) == [(2, 3)]
    # The last version at or before the watermark is kept, and those after it.
    (state,) = [one.tables["pairs"].state_of(1)]
    assert [version[0] for version in state["versions"]] == [10 * US, 11 * US]


def test_a_version_that_is_too_old_is_none() -> None:
    one = fresh(as_of(3, "left"))
    log = [event(1, "r", 5, 1), event(1, "l", 8, 2), event(1, "l", 9, 3)]
    assert pairs(fold(one, [record(1, log, 99)])) == [(2, 1), (3, -1)]
    assert one.keys == 0


def test_versions_of_a_key_that_nobody_asks_for_do_not_pile_up() -> None:
    one = fresh(as_of(None, "inner"))
    fold(one, [record(1, [event(1, "r", at, at) for at in range(1, 1000)], 999)])
    assert len(one.tables["pairs"].state_of(1)["versions"]) == 1
    for number in range(2, 50):
        fold(one, [record(number, [event(1, "r", 1000 + number, number)], 1000 + number)])
        assert len(one.tables["pairs"].state_of(1)["versions"]) <= 2


def test_messages_of_a_busy_key_do_not_pile_up() -> None:
    """Past messages are dropped once in the time for which a message is kept."""
    one = fresh(within(-5, 5, "inner"))
    for number in range(1, 300):
        fold(one, [record(number, [event(1, "rl"[number % 2], number, number)], number)])
        state = one.tables["pairs"].state_of(1)
        assert len(state["left"]) + len(state["right"]) <= 13


WINDOWS = {
    "tumbling": bettong.tumbling(us(10)),
    "sliding": bettong.sliding(us(10), us(5)),
    "sessions": bettong.sessions(us(4)),
}


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("name", WINDOWS)
def test_pairs_of_a_window_come_when_it_is_over(name: str, how: str) -> None:
    """Key 1 has both sides in a window, key 2 only the left one, key 3 only the right one."""
    one = fresh(in_window(WINDOWS[name], how))
    log = [
        *(event(1, "l", 11, 1), event(1, "r", 13, 2), event(1, "l", 12, 3), event(1, "r", 14, 8)),
        *(event(2, "l", 12, 4), event(3, "r", 12, 6), event(1, "r", 29, 9)),
    ]
    assert pairs(fold(one, [record(1, log, 14)])) == []
    found = [
        (each.key, each.left, each.right) for each in results(fold(one, [tick_of(1, 21 * US)]), OUT, Pair)
    ]
    expected = [(1, 1, 2), (1, 1, 8), (1, 3, 2), (1, 3, 8)]
    expected += [(2, 4, -1)] * (how in ("left", "outer")) + [(3, -1, 6)] * (how in ("right", "outer"))
    if name == "sliding":
        # The windows from 5 to 15, and from 10 to 20.
        expected = [*expected, *expected]
    order = sorted if name == "sessions" else list
    expected = [each for each in expected if not of.fails(Pair(*each)) and not of.is_nothing(Pair(*each))]
    assert order(found) == order(expected)
    late = fold(one, [record(2, [event(1, "l", 3, 7), event(1, "r", 4, 11)], 21)])
    assert (lates(late), one.counters.late) == ([7, 11], 2)


RESTORED = {
    "within": within(-9, 9, "outer"),
    "as-of": as_of(3, "left"),
    "latest": latest("left", delete_when="gone"),
    **{name: in_window(window, "outer") for name, window in WINDOWS.items()},
}


@pytest.mark.parametrize("name", RESTORED)
def test_states_are_taken_over_where_the_application_is_described_anew(name: str) -> None:
    """As a restarted process does: nothing saved may refer to objects of the previous one."""
    make = RESTORED[name]
    first, second = fresh(make), fresh(make)
    log = [event(1, "l", 11, 1), event(1, "r", 13, 2)]
    fold(first, [record(1, log, 11)])
    second.restore(first.snapshot())
    later = [record(2, [event(1, "l", 14, 4)], 12), tick_of(1, 99 * US)]
    expected = pairs(fold(first, later))
    assert expected
    assert pairs(fold(second, later)) == expected


def test_a_pair_that_fails_is_a_dead_letter_of_its_message_and_the_others_are_made() -> None:
    one = fresh(within(-9, 9, "left"))
    log = [event(1, "l", 1, 1), event(1, "l", 1, of.UNLUCKY), event(1, "l", 1, 4), event(1, "r", 1, 1)]
    found = fold(one, [record(1, log, 1)])
    assert pairs(found) == [(1, 1), (4, 1)]
    (dead,) = dead_letters(found)
    assert (dead.computation, dead.index, dead.reason) == ("pairs", 3, "ValueError: 13 and 1")
    # A message alone has failed by the time it was due.
    fold(one, [record(2, [event(2, "l", 1, of.UNLUCKY)], 1)])
    (dead,) = dead_letters(fold(one, [tick_of(1, 99 * US)]))
    assert (dead.fired, dead.message) == (True, b'{"key":2,"timer":"due","at":10001}')


def test_on_error_stop_ends_with_the_first_pair_that_fails() -> None:
    one = fresh(within(-9, 9, "inner"), on_error="stop")
    fold(one, [record(1, [event(1, "l", 1, of.UNLUCKY)], 1)])
    with pytest.raises(bettong.BettongError, match="13 and 1"):
        fold(one, [record(2, [event(1, "r", 1, 1)], 1)])


def test_a_stream_is_joined_with_itself() -> None:
    """Each message is of both sides, of the left one first."""
    app = Application("meters")
    events = app.source("in", schema=Event, key="key", event_time="at")
    events.join_within(events, us(1), us(5), both, name="pairs").sink("out")
    one = worker(python(app))
    log = [event(1, "l", 1, 1), event(1, "l", 4, 2), event(1, "l", 4, 3), event(1, "l", 6, 4)]
    assert pairs(fold(one, [record(1, log, 1)])) == [(1, 2), (1, 3), (1, 4), (2, 4), (3, 4)]


def both(left: Event, right: Event) -> Pair:
    return Pair(left.key, left.value, right.value)


def test_two_sources_meet_in_one_stage_and_come_apart_as_late_messages() -> None:
    app = Application("meters")
    left = app.source("lefts", schema=Event, key="key", event_time="at")
    right = app.source("rights", schema=Event, key="key", event_time="at")
    node = left.join_within(right, us(-1), us(1), both, name="pairs")
    node.sink("out")
    node.late_right.sink("late")
    one = worker(python(app))
    found = fold(
        one,
        [
            data("lefts/x", 1, [event(1, "l", 9, 1)], watermark_ns=9 * US),
            data("rights/x", 1, [event(1, "r", 10, 2)], watermark_ns=9 * US),
            data("rights/x", 2, [event(1, "r", 2, 3)], watermark_ns=9 * US),
            data("lefts/x", 2, [event(1, "l", 2, 4)], watermark_ns=9 * US),
        ],
    )
    assert pairs(found) == [(1, 2)]
    assert [each.value for each in results(found, LATE, Event)] == [3]
    assert one.counters.late == 2


def test_a_result_has_an_event_time_for_what_is_behind() -> None:
    """For a message alone it is that of the last possible partner, or its own if that is later."""
    for make, expected in (
        (within(-2, 3, "outer"), [13, 14, 13]),
        (within(4, 5, "outer"), [15, 16, 11]),
        (within(-5, -4, "outer"), [10, 11, 16]),
        (as_of(None, "left"), [10, 11]),
        (in_window(bettong.tumbling(us(10)), "outer"), [20, 20, 20]),
    ):
        app = joined(make, late=False)
        (node,) = [Stream[Pair](app, each) for each in app.nodes.values() if isinstance(each, Joined)]
        node.key_by("key", name="next").join_within(
            node.key_by("key", name="too"), us(0), us(1), either
        ).sink("far")
        one = worker(program(plan(app).stages[0], compiled=False))
        log = [event(1, "l", 10, 1), event(2, "l", 11, 2), event(3, "r", 11, 3)]
        found = [*fold(one, [record(1, log, 11)]), *fold(one, [tick_of(1, 99 * US)])]
        rekeyed = [each for each in found if decode(each.value).stream == "next"]
        times = {
            message.key: at_ns
            for each in rekeyed
            for frame in [decode(each.value)]
            if frame.columns is not None
            for message, at_ns in zip(
                Columns.of_payload(schema_of(Pair), frame.columns).messages(),
                event_times_in(frame),
                strict=True,
            )
        }
        shown = [at * US - (at == 20) for at in expected]
        assert [times[key] for key in sorted(times)] == shown, make


def either(left: Pair, right: Pair) -> Pair:
    return Pair(left.key, left.left, right.right)


@dataclass
class Tally:
    count: int = 0


@bettong.vectorized
def tally(pair: Pair, kept: Tally, keys: bettong.RowIndexes) -> Pair:
    counts: Any = kept.count
    np.add.at(counts, keys, 1)
    return Pair(pair.key, counts[keys], pair.right)


def test_what_time_makes_reaches_a_state_over_columns_by_a_key_of_several_fields() -> None:
    app = Application("meters")
    events = app.source("in", schema=Event, key=("key", "value"), event_time="at")
    events.join_as_of(events, both, name="pairs").stateful(tally, state=Tally).sink("out")
    one = worker(python(app))
    log = [event(1, "l", 1, 5), event(1, "l", 2, 5), event(2, "l", 1, 5)]
    found = results(fold(one, [record(1, log, 99)]), OUT, Pair)
    assert sorted((each.key, each.left) for each in found) == [(1, 2), (1, 2), (2, 1)]
    assert one.tables["tally"].state_of((1, 5)) == {"count": 2}
