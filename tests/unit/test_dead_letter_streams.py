"""`Stream.dead_letters`: what a computation could not process, as a stream that others follow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bettong
from bettong import Application, DeadLetter
from bettong.application.plan import plan
from bettong.frames.dead_letter_id import DeadLetterId
from bettong.inspection.dead_letters import Found
from bettong.inspection.retry import Resend, decide
from bettong.testing import run
from bettong.worker.stage_program import StageProgram, program
from tests.samples.application import refused
from tests.samples.worker import data, dead_letters, fold, results, worker


@dataclass
class Number:
    key: bettong.u8
    value: bettong.i32


@dataclass
class Half:
    value: bettong.i32


@dataclass
class Kept:
    count: int = 0


@dataclass
class Failures:
    count: int
    last: str


def half(number: Number) -> Half:
    if number.value < 0:
        raise ValueError("negative")
    return Half(number.value // 2)


@bettong.compiled
def half_compiled(number: Number) -> Half:
    if number.value < 0:
        raise ValueError("negative")
    return Half(number.value // 2)


@bettong.vectorized
def half_vectorized(numbers: Number) -> Half:
    if np.any(numbers.value < 0):
        raise ValueError("negative")
    return Half(numbers.value // 2)


def count(dead: DeadLetter, kept: Kept) -> Failures:
    kept.count += 1
    return Failures(kept.count, dead.message)


def ready(function: Any) -> StageProgram:
    app = Application("meters")
    halves = app.source("in", schema=Number, key="key").map(function, name="half")
    halves.sink("out")
    halves.dead_letters.sink("refused")
    halves.dead_letters.stateful(count, state=Kept).sink("counts")
    (stage,) = plan(app).stages
    return program(stage, compiled=True)


@pytest.fixture(scope="module", params=[half, half_compiled, half_vectorized], ids=lambda each: each.__name__)
def of(request: pytest.FixtureRequest) -> StageProgram:
    return ready(request.param)


def test_what_a_function_refuses_goes_on_with_its_key(of: StageProgram) -> None:
    frame = [Number(1, 4), Number(1, -1), Number(2, -3), Number(1, -5), Number(2, 6)]
    records = fold(worker(of), [data("in/a", 1, frame)])
    assert [each.value for each in results(records, "meters.sink.out", Half)] == [2, 3]
    reasons = results(records, "meters.sink.refused", DeadLetter)
    assert reasons == [
        DeadLetter("half", "ValueError: negative", f'{{"key":{key},"value":{value}}}')
        for key, value in [(1, -1), (2, -3), (1, -5)]
    ]
    assert [each.count for each in results(records, "meters.sink.counts", Failures)] == [1, 1, 2]
    sink = [(each.computation, each.reason, each.message.decode()) for each in dead_letters(records)]
    assert sink == [(each.computation, each.reason, each.message) for each in reasons]


@given(values=st.lists(st.integers(-5, 5)), cuts=st.lists(st.booleans(), min_size=50, max_size=50))
def test_dead_letters_are_the_same_however_messages_are_cut_into_frames(
    of: StageProgram, values: list[int], cuts: list[bool]
) -> None:
    frames: list[list[Number]] = [[]]
    for value, ends in zip(values, cuts, strict=False):
        frames[-1].append(Number(value % 2, value))
        if ends:
            frames.append([])
    log = [data("in/a", at, frame) for at, frame in enumerate(filter(None, frames), 1)]
    found = results(fold(worker(of), log), "meters.sink.counts", Failures)
    assert [each.last for each in found] == [
        f'{{"key":{value % 2},"value":{value}}}' for value in values if value < 0
    ]


@dataclass
class Small:
    value: bettong.u8


def from_one(number: Number) -> Iterator[Number]:
    """Of 3: 300, -1 and 300 again, twice."""
    for value in (300, -1, 300) * (number.value - 1):
        yield Number(number.key, value)


def small(number: Number) -> Small:
    if number.value < 0:
        raise ValueError("negative")
    return Small(number.value)


@bettong.compiled
def small_compiled(number: Number) -> Small:
    if number.value < 0:
        raise ValueError("negative")
    return Small(number.value)


@bettong.vectorized
def small_vectorized(numbers: Number) -> Small:
    if np.any(numbers.value < 0):
        raise ValueError("negative")
    return Small(numbers.value)


@pytest.mark.parametrize(
    "function", [small, small_compiled, small_vectorized], ids=lambda each: each.__name__
)
def test_what_is_refused_of_one_message_goes_on_in_the_order_in_which_it_came(function: Any) -> None:
    app = Application("meters")
    smaller = app.source("in", schema=Number, key="key").flat_map(from_one).map(function, name="small")
    smaller.sink("out")
    smaller.dead_letters.sink("refused")
    (stage,) = plan(app).stages
    records = fold(worker(program(stage, compiled=True)), [data("in/a", 1, [Number(1, 3)])])
    reasons = [each.reason for each in results(records, "meters.sink.refused", DeadLetter)]
    assert ["field" in each for each in reasons] == [True, False, True, True, False, True]
    assert [each.reason for each in dead_letters(records)] == reasons


def small_of(left: Number, right: Number) -> Small:
    return small(right)


def test_what_is_refused_of_the_pairs_of_one_message_goes_on_in_their_order() -> None:
    app = Application("meters")
    lefts, rights = (
        app.source(name, schema=Number, key="key", event_time=at) for name in ("lefts", "rights")
    )
    joined = lefts.join_within(rights, timedelta(0), timedelta(seconds=1), small_of, name="small")
    joined.sink("out")
    joined.dead_letters.sink("refused")
    came = [("rights", Number(1, value)) for value in (300, -1, 300)]
    outcome = run(app, [*came, ("lefts", Number(1, 0))])
    reasons = [each.reason for each in outcome.outputs["refused"]]
    assert ["field" in each for each in reasons] == [True, False, True]
    assert [each.reason for each in outcome.dead_letters] == reasons


def at(number: Number) -> int:
    return 10**18


def test_a_dead_letter_that_is_a_stream_is_retried_like_any_other() -> None:
    app = Application("meters")
    halves = app.source("in", schema=Number, key="key").map(half)
    halves.sink("out")
    halves.dead_letters.sink("refused")
    planned = plan(app)
    (stage,) = planned.stages
    (dead,) = dead_letters(fold(worker(program(stage, compiled=False)), [data("in/a", 1, [Number(1, -1)])]))
    found = Found(DeadLetterId(0, 0, 0), 0, dead)
    assert isinstance(decide(planned, found, None, repeat=False, now_ns=0), Resend)


def test_a_stream_of_dead_letters_is_one_however_often_it_is_asked_for() -> None:
    halves = Application("meters").source("in", schema=Number, key="key").map(half)
    assert halves.dead_letters == halves.dead_letters
    assert halves.dead_letters.name == "half-dead-letters"


def test_what_has_no_dead_letters_says_so() -> None:
    numbers = Application("meters").source("in", schema=Number, key="key")
    with refused("dead_letters of 'in'", "only map, filter,", "in the sink dead-letters"):
        _ = numbers.dead_letters
    with refused("dead_letters of 'half'", "on_error='skip'"):
        _ = numbers.map(half, on_error="skip").dead_letters
    with refused("dead_letters of 'again-dead-letters'"):
        _ = numbers.map(half, name="again").dead_letters.dead_letters
