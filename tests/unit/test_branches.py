"""`Stream.branch`: each message goes to the first branch whose predicate is true of it, in every speed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bettong
from bettong import Application
from bettong.application.on_error import OnError
from bettong.application.plan import plan
from bettong.errors import PoisonError
from bettong.worker.stage_program import StageProgram, program
from tests.samples.application import refused
from tests.samples.worker import data, dead_letters, fold, results, worker


@dataclass
class Number:
    value: bettong.i32


def is_even(number: Number) -> bool:
    if number.value == 13:
        raise ValueError("thirteen")
    return number.value % 2 == 0


def is_large(number: Number) -> bool:
    return number.value > 10


def is_other(_: Number) -> bool:
    return True


@bettong.compiled
def is_even_compiled(number: Number) -> bool:
    if number.value == 13:
        raise ValueError("thirteen")
    return number.value % 2 == 0


@bettong.vectorized
def is_even_vectorized(numbers: Number) -> bool:
    if np.any(numbers.value == 13):
        raise ValueError("thirteen")
    return numbers.value % 2 == 0


EVEN = [is_even, is_even_compiled, is_even_vectorized]


def divided(
    even: Callable[[Any], bool] = is_even, on_error: OnError = "dead-letter", *, compiled: bool = True
) -> StageProgram:
    app = Application("meters")
    numbers = app.source("in", schema=Number)
    for name, branch in numbers.branch(on_error=on_error, even=even, large=is_large, other=is_other).items():
        branch.sink(f"to-{name}")
    (stage,) = plan(app).stages
    return program(stage, compiled=compiled)


def given_by(of: StageProgram, frames: list[list[int]]) -> tuple[dict[str, list[int]], list[str]]:
    """What each branch gives, and who could not judge a message."""
    log = [data("in/a", at, list(map(Number, values))) for at, values in enumerate(frames, 1)]
    records = fold(worker(of), log)
    found = {
        name: [each.value for each in results(records, f"meters.sink.to-{name}", Number)]
        for name in ("even", "large", "other")
    }
    return found, [each.computation for each in dead_letters(records)]


@pytest.fixture(scope="module", params=EVEN, ids=lambda even: even.__name__)
def ready(request: pytest.FixtureRequest) -> StageProgram:
    return divided(request.param)


def test_a_message_goes_to_the_first_branch_that_takes_it(ready: StageProgram) -> None:
    found, failed = given_by(ready, [[1, 2, 11, 12, 3]])
    assert found == {"even": [2, 12], "large": [11], "other": [1, 3]}
    assert failed == []


def test_a_message_that_a_predicate_cannot_judge_goes_to_no_branch(ready: StageProgram) -> None:
    found, failed = given_by(ready, [[13, 4, 13, 15]])
    assert found == {"even": [4], "large": [15], "other": []}
    assert failed == ["even", "even"]


@given(values=st.lists(st.integers(0, 30)), cuts=st.lists(st.booleans(), min_size=40, max_size=40))
def test_branches_are_the_same_however_messages_are_cut_into_frames(
    ready: StageProgram, values: list[int], cuts: list[bool]
) -> None:
    frames: list[list[int]] = [[]]
    for value, ends in zip(values, cuts, strict=False):
        frames[-1].append(value)
        if ends:
            frames.append([])
    found, failed = given_by(ready, [frame for frame in frames if frame])
    kept = [value for value in values if value != 13]
    assert found["even"] == [value for value in kept if value % 2 == 0]
    assert found["large"] == [value for value in kept if value % 2 and value > 10]
    assert found["other"] == [value for value in kept if value % 2 and value <= 10]
    assert len(failed) == values.count(13)


def test_a_branch_that_leads_nowhere_is_named() -> None:
    app = Application("meters")
    app.source("in", schema=Number).branch(even=is_even, large=is_large)["large"].sink("to-large")
    with refused("branched 'even' leads to no sink", ".sink(...)"):
        plan(app)


def test_a_branch_keeps_the_key_and_its_results_can_be_merged_again() -> None:
    app = Application("meters")
    numbers = app.source("in", schema=Number, key="value")
    branches = numbers.branch(even=is_even, other=is_other)
    assert all(branch.keyed for branch in branches.values())
    branches["other"].merge(branches["even"]).sink("out")
    (stage,) = plan(app).stages
    records = fold(worker(program(stage, compiled=False)), [data("in/a", 1, [Number(n) for n in (1, 2, 3)])])
    assert [each.value for each in results(records, "meters.sink.out", Number)] == [1, 2, 3]


def test_a_partition_stops_at_a_message_that_a_predicate_cannot_judge() -> None:
    with pytest.raises(PoisonError) as stopped:
        given_by(divided(on_error="stop"), [[1, 2, 13, 4]])
    assert (stopped.value.computation, stopped.value.index) == ("even", 2)


def test_branches_are_checked_when_the_application_is_built() -> None:
    def no_predicate(number: Number) -> int:
        return number.value

    numbers = Application("meters").source("in", schema=Number)
    with refused("branch of 'in'", "give a predicate for each"):
        numbers.branch()
    with refused("branch 'large'", "must return bool, not int"):
        numbers.branch(large=no_predicate)  # type: ignore[arg-type] # an int is no bool
    with refused("branch 'large'", "7 is no function"):
        numbers.branch(large=7)  # type: ignore[arg-type]
    with refused("branch 'large'", "on_error='retry'"):
        numbers.branch(on_error="retry", large=is_large)  # type: ignore[arg-type]
    numbers.branch(large=is_large)
    with refused("the name 'large' is taken by a branch of 'meters'"):
        numbers.branch(large=is_large)
