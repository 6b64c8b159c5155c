"""Timers fire when their clock reaches them: at the same records and in one order, in every mode, after every crash."""

from __future__ import annotations

import io
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import bettong
from bettong import NEVER, Application
from bettong.application.plan import plan
from bettong.cli.check import tree
from bettong.errors import PoisonError
from bettong.worker.output.framing import OutputRecord
from bettong.worker.stage_program import program
from tests.samples.timers import (
    CLEAR,
    CLOSE,
    COUNT,
    FAIL,
    FORMS,
    OUT,
    SET,
    Kept,
    Meaning,
    Note,
    Rang,
    described,
    fresh,
    rang,
    tick,
    value_of,
)
from tests.samples.worker import data, dead_letters, fold, python, results, worker
from tests.simulation.twins import compiled_twin

every_speed = pytest.mark.parametrize("how", FORMS)
NOTES = st.lists(
    st.builds(
        Note, st.integers(1, 4), st.sampled_from([SET, SET, CLOSE, CLEAR, FAIL, COUNT]), st.integers(-5, 90)
    ),
    max_size=6,
)
RECORDS = st.lists(st.tuples(st.integers(0, 25), st.integers(0, 25), NOTES), max_size=15)


def shown(at_ns: int) -> int | None:
    return at_ns if at_ns != NEVER else None


def reported(records: list[OutputRecord]) -> list[tuple[str, str]]:
    return [(each.reason, each.message.decode()) for each in dead_letters(records)]


@pytest.mark.parametrize(
    ("how", "deletes"), [*((how, False) for how in FORMS), ("python", True), ("compiled", True)]
)
@given(records=RECORDS, is_marked=st.booleans())
def test_timers_fire_as_a_queue_of_them_would(
    how: str,
    deletes: bool,  # noqa: FBT001 - pytest fills it in
    records: list[tuple[int, int, list[Note]]],
    is_marked: bool,  # noqa: FBT001 - hypothesis fills it in
) -> None:
    """`is_marked`: a worker has died there, and timers fire one by one."""
    one, meaning, clock_ns, watermark_ns = fresh(how, deletes=deletes), Meaning(deletes), 0, 1
    given_, dead = list[Rang](), list[tuple[str, str]]()
    for number, (forward_ns, event_ns, notes) in enumerate(records, 1):
        clock_ns += forward_ns
        watermark_ns += event_ns
        meaning.record(clock_ns, watermark_ns, notes)
        one.progress.mark = (lambda _: None) if is_marked else None
        found = fold(one, [value_of(number, clock_ns, watermark_ns, notes)])
        given_ += rang(found)
        dead += reported(found)
    assert given_ == meaning.results
    assert dead == meaning.dead_letters
    states = {
        key: {"count": kept.count, "ring": shown(kept.ring), "close": shown(kept.close)}
        for key, kept in meaning.states.items()
    }
    assert dict(one.tables["alarms"].items()) == states
    assert one.counters.dead_letters == len(dead)
    assert one.counters.results == len(given_)


@every_speed
def test_a_timer_fires_at_the_first_record_at_which_the_log_clock_is_there(how: str) -> None:
    one = fresh(how)
    assert rang(fold(one, [data("in/x", 1, [Note(1, SET, 104)], ingest_ns=50), tick(103)])) == []
    assert one.tables["alarms"].state_of(1) == {"count": 1, "ring": 104, "close": None}
    assert rang(fold(one, [tick(104)])) == [Rang(1, 104, 2, 1)]
    assert rang(fold(one, [tick(104), tick(1000)])) == []
    assert one.tables["alarms"].state_of(1) == {"count": 2, "ring": None, "close": None}


@every_speed
def test_a_timer_of_event_time_fires_behind_the_record_that_moves_the_watermark(how: str) -> None:
    one = fresh(how)
    first = [Note(1, CLOSE, 100), Note(2, CLOSE, 103)]
    assert rang(fold(one, [data("in/x", 1, first, ingest_ns=500, watermark_ns=99), tick(900, 99)])) == []
    found = fold(one, [data("in/x", 2, [Note(1, COUNT, 0)], ingest_ns=900, watermark_ns=102)])
    assert rang(found) == [Rang(1, 100, 102, 2), Rang(1, 100, 103, 1), Rang(1, 98, 104, 1)]
    assert [each.key for each in rang(fold(one, [tick(900, 103)]))] == [2, 2]


@every_speed
def test_what_fires_by_the_clock_comes_before_the_record_that_moves_it(how: str) -> None:
    one = fresh(how)
    fold(one, [data("in/x", 1, [Note(1, SET, 60)], ingest_ns=50)])
    # 60 fires, then 58, which it set; then the message sets 64, which has passed, and fires after it.
    found = fold(one, [data("in/x", 2, [Note(1, SET, 64)], ingest_ns=70)])
    assert [(each.at, each.count) for each in rang(found)] == [(60, 2), (58, 3), (64, 5)]


@every_speed
def test_of_several_timers_of_a_key_each_sees_what_the_one_before_has_done(how: str) -> None:
    one = fresh(how)
    notes = [Note(1, CLOSE, 63), Note(1, SET, 68), Note(2, SET, 64)]
    # `close` sets `ring` from 68 to 63.
    found = rang(fold(one, [data("in/x", 1, notes, ingest_ns=70, watermark_ns=70)]))
    assert [(each.key, each.at, each.which) for each in found] == [
        (1, 63, 2),
        (1, 63, 1),
        (2, 64, 1),
    ]


@every_speed
@pytest.mark.parametrize("on_error", ["dead-letter", "skip", "stop"])
def test_what_a_timers_function_raises_is_as_on_error_says(how: str, on_error: str) -> None:
    one = fresh(how, on_error=on_error)
    notes = [Note(3, SET, 9), Note(1, SET, 6), Note(2, SET, 11), Note(4, SET, 14)]
    fold(one, [data("in/x", 1, notes)])
    if on_error == "stop":
        with pytest.raises(
            PoisonError, match="cannot process a timer that fired: ValueError: one"
        ) as stopped:
            fold(one, [tick(12)])
        assert '{"key":1,"timer":"ring","at":6}' in str(stopped.value)
        assert stopped.value.computation == "alarms"
        return
    found = fold(one, [tick(12)])
    assert [each.key for each in rang(found)] == [3]
    assert one.counters.skipped == (2 if on_error == "skip" else 0)
    found_dead = dead_letters(found)
    if on_error == "dead-letter":
        assert [each.message for each in found_dead] == [
            b'{"key":1,"timer":"ring","at":6}',
            b'{"key":2,"timer":"ring","at":11}',
        ]
        assert all(each.fired and each.computation == "alarms" for each in found_dead)
        assert {each.reason for each in found_dead} == {"ValueError: one"}
    else:
        assert found_dead == []
    # What the function had set before it raised stays set.
    assert one.tables["alarms"].state_of(1) == {"count": 2, "ring": 13, "close": None}
    assert [each.key for each in rang(fold(one, [tick(13)]))] == [1]


def test_where_a_worker_dies_in_a_timers_function_no_message_is_to_blame() -> None:
    """Each message is marked before it is taken, and left out when it kills: timers are not counted as messages."""
    one, marks = fresh("python"), list[tuple[str, int | None]]()
    fold(one, [data("in/x", 1, [Note(1, SET, 8), Note(2, SET, 9)])])
    one.progress.mark = lambda at: marks.append((at.computation, at.message))
    fold(one, [tick(20)])
    assert set(marks) == {("alarms", None), ("out", None), ("", None)}
    fold(one, [data("in/x", 2, [Note(3, COUNT, 0)])])
    assert ("alarms", 0) in marks


@every_speed
def test_what_a_message_had_set_before_it_raised_fires(how: str) -> None:
    one = fresh(how)
    found = fold(one, [data("in/x", 1, [Note(1, FAIL, 8)], ingest_ns=3), tick(8)])
    assert [each.reason for each in dead_letters(found)] == ["ValueError: fail"]
    assert rang(found) == [Rang(1, 8, 2, 1)]


@every_speed
def test_a_firing_renews_no_state(how: str) -> None:
    one = worker(program(described(how, ttl=timedelta(microseconds=1)).stages[0], compiled=True))
    fold(one, [data("in/x", 1, [Note(1, SET, 909), Note(2, SET, 1009)], ingest_ns=10)])
    assert len(rang(fold(one, [tick(909)]))) == 1
    assert one.keys == 2
    # Timers due before the end of their state fire, and then the state ends.
    assert [each.at for each in rang(fold(one, [tick(1010)]))] == [1009]
    assert (one.keys, one.counters.expired) == (0, 2)


@dataclass
class Word:
    key: str
    at: int


@dataclass
class Reply:
    key: str
    text: str


@dataclass
class Held:
    words: int = 0
    wrong: bettong.LogTimer = NEVER


def listen(word: Word, held: Held) -> Reply | None:
    held.words += 1
    wrong: Any = {1: 1.5, 2: None, 3: 2**63}.get(word.at, word.at)
    held.wrong = wrong
    return Reply(word.key, "heard")


def speak(fired: bettong.Fired[str], held: Held) -> Reply | None:
    return Reply(fired.key, f"{held.words} by {fired.at}")


def test_a_timer_of_python_that_is_no_time_fails_its_message() -> None:
    app = Application("meters")
    app.source("in", schema=Word, key="key").stateful(listen, state=Held, timers={"wrong": speak}).sink("out")
    one = worker(python(app))
    words = [Word("a", 1), Word("a", 2), Word("ä", 3), Word("ä", 50), Word("b", 50)]
    found = fold(one, [data("in/x", 1, words)])
    assert [each.text for each in results(found, OUT, Reply)] == ["heard", "heard"]
    assert [each.reason.split(" is no")[0] for each in dead_letters(found)] == [
        "ValueError: field 'wrong': 1.5",
        "ValueError: field 'wrong': None",
        "ValueError: field 'wrong': 9223372036854775808",
    ]
    assert results(fold(one, [tick(50)]), OUT, Reply) == [Reply("b", "1 by 50"), Reply("ä", "2 by 50")]
    again_ = worker(one.program)
    again_.restore(one.snapshot())
    assert again_.tables["listen"].state_of("a") == {"words": 2, "wrong": None}


def later(rang_: Rang, kept: Kept) -> None:
    kept.count += 1
    kept.close = rang_.at


def shut(fired: bettong.Fired[int], kept: Kept) -> Rang | None:
    return Rang(fired.key, fired.at, kept.count, 9)


def unheard(fired: bettong.Fired[int], kept: Kept) -> None:
    kept.count = -1


@pytest.mark.parametrize("first", ["python", "compiled", "vectorized"])
@pytest.mark.parametrize("second", ["python", "compiled"])
def test_what_fires_passes_what_follows_and_sets_timers_there_in_the_same_record(
    first: str, second: str
) -> None:
    function, on_ring, on_close, *_ = FORMS[first]
    following: list[Any] = [
        compiled_twin(each) if second == "compiled" else each for each in (later, shut, unheard)
    ]
    app = Application("meters")
    app.source("in", schema=Note, key="key").stateful(
        function, state=Kept, timers={"ring": on_ring, "close": on_close}, name="alarms"
    ).stateful(
        following[0], state=Kept, timers={"close": following[1], "ring": following[2]}, name="behind"
    ).sink("out")
    one = worker(program(plan(app).stages[0], compiled=True))
    fold(one, [data("in/x", 1, [Note(2, SET, 8), Note(1, SET, 9), Note(1, CLOSE, 4)])])
    # By the log clock 8 and 9 ring, and move `close` behind; by the watermark 4 does, rings, and moves it back twice.
    assert [(each.key, each.at, each.count) for each in rang(fold(one, [tick(20)]))] == [(1, 4, 3), (2, 8, 1)]


def test_the_graph_shows_timers() -> None:
    text = io.StringIO()
    Console(width=200, file=text).print(tree(described("python")))
    assert (
        "state Kept, timer ring by log clock calls ring, timer close by event time calls close"
        in text.getvalue()
    )
