"""Numbers of `bettong.u64` in compiled functions: as in plain Python, or an error that says why not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pytest

import bettong
from bettong import Application, Width
from bettong.application.plan import plan
from bettong.worker.stage_program import program
from tests.samples.worker import data, dead_letters, fold, results, worker

OUT = "meters.sink.out"
LARGEST = 2**64 - 1
NUMBERS = [0, 1, 2**62, 2**63 - 1, 2**63, LARGEST - 2, LARGEST]


@dataclass
class Item:
    number: bettong.u64
    change: int


@dataclass
class Made:
    number: bettong.u64
    text: Annotated[str, Width(24)] = ""
    double: float = 0.0
    narrow: int = 0


def given_on(item: Item) -> Made:
    return Made(item.number, double=item.number, narrow=item.change)


def given_on_by_a_branch(item: Item) -> Made:
    made = Made(item.number)
    if item.change > 0:
        made = Made(item.number, "more")
    return made


def divided(item: Item) -> Made:
    return Made(item.number, double=item.number / 2.0)


def asked_whether_it_is_any(item: Item) -> Made:
    return Made(item.number, "some" if item.number else "none")


def as_an_unsigned_of_numpy(item: Item) -> Made:
    return Made(np.uint64(item.number))  # type: ignore[arg-type]


def all_of_which_may_fit(item: Item) -> Iterator[Made]:
    for change in (0, item.change):
        yield Made(item.number, narrow=change)
        yield Made(change)


ALIKE = [
    given_on,
    given_on_by_a_branch,
    divided,
    asked_whether_it_is_any,
    as_an_unsigned_of_numpy,
    all_of_which_may_fit,
]


def changed(item: Item) -> Made:
    return Made(item.number + item.change)


def compared(item: Item) -> Made:
    return Made(0, "large" if item.number > 2**62 else "small")


def looked_up(item: Item) -> Made:
    return Made((1, 2, 3)[item.number % 3], f"{item.number}", narrow=max(item.number, 5))


def of_one_or_the_other(item: Item) -> Made:
    return Made(item.number if item.change else 7)


def for_a_field_with_a_sign(item: Item) -> Made:
    return Made(0, narrow=item.number)


LIMITED = [changed, compared, looked_up, of_one_or_the_other, for_a_field_with_a_sign]


def outcomes(function: Callable[..., Any], items: list[Item]) -> list[tuple[list[Made], Any]]:
    """Results and dead letters, in plain Python and compiled."""
    app = Application("meters")
    source = app.source("in", schema=Item, key="change")
    form: Any = source.flat_map if function is all_of_which_may_fit else source.map
    form(bettong.compiled(function), name="made").sink("out")
    found = []
    for compiled in (False, True):
        records = fold(worker(program(plan(app).stages[0], compiled=compiled)), [data("in/a", 1, items)])
        failures = [(each.index, each.reason) for each in dead_letters(records)]
        found.append((results(records, OUT, Made), failures))
    return found


@pytest.mark.parametrize("function", ALIKE)
def test_unsigned_numbers_are_those_of_plain_python(function: Callable[..., Any]) -> None:
    items = [Item(number, change) for number in NUMBERS for change in (5, 0, -1)]
    (expected, refused), (found, reasons) = outcomes(function, items)
    assert found == expected
    assert [index for index, _ in reasons] == [index for index, _ in refused]
    assert len(refused) == (len(NUMBERS) if function is all_of_which_may_fit else 0)
    assert all(reason == "field 'number': not an integer of type uint64" for _, reason in reasons)


@pytest.mark.parametrize("function", LIMITED)
def test_an_unsigned_number_beyond_those_with_a_sign_is_a_dead_letter_that_says_so(
    function: Callable[..., Any],
) -> None:
    # One less than 2**63 may outgrow 64 bits, as integers of compiled code do.
    items = [Item(number, change) for number in NUMBERS if number != 2**63 - 1 for change in (2, -2)]
    _, (found, reasons) = outcomes(function, items)
    made = {index: function(item) for index, item in enumerate(items) if item.number < 2**63}
    assert found == [each for each in made.values() if each.number >= 0]
    large = [index for index in range(len(items)) if index not in made]
    assert large == [index for index, reason in reasons if "2**63" in reason or "type int64" in reason]
    negative = [index for index, each in made.items() if each.number < 0]
    assert negative == [index for index, reason in reasons if "uint64" in reason]
    assert len(reasons) == len(large) + len(negative)
