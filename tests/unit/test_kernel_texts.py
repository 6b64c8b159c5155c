"""Text in compiled functions is compared as in Python wherever it stands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, StrEnum
from types import ModuleType
from typing import Annotated, Any, NamedTuple

import numba
import numpy as np
import pytest

import bettong
from bettong import Application, Width
from bettong.application.plan import plan
from bettong.worker.stage_program import program
from tests.samples.worker import data, fold, results, worker

OUT = "meters.sink.out"


@dataclass
class Number:
    name: Annotated[str, Width(4)]
    value: bettong.i32


@dataclass
class Part:
    name: Annotated[str, Width(4)]
    value: bettong.u8


NAMES = ("a", "bb")
ARRAY = np.array(["bb", "a"])


class Pair(NamedTuple):
    first: str
    second: str = "x"


PAIR = Pair("a")
limits = ModuleType("limits")
limits.__dict__.update(inner=ModuleType("limits.inner"), same=lambda name, other="a": name == other)
limits.inner.__dict__["NAME"] = "a"


def text_in_a_comprehension(number: Number) -> bool:
    return len([each for each in range(3) if number.name == "a"]) == 3


def text_in_a_comprehension_in_a_comprehension(number: Number) -> bool:
    return sum([sum([each for each in range(3) if number.name == "a"]) for _ in range(2)]) == 6


def text_in_a_lambda(number: Number) -> bool:
    same: Callable[..., bool] = lambda name, other="a": name == other  # noqa: E731
    return same(number.name)


def text_in_an_inner_function(number: Number) -> bool:
    def same(name: str) -> bool:
        return name in ("a", "ooo")

    return same(number.name)


def text_of_a_tuple_one_by_one(number: Number) -> bool:
    for name in ("a", "x"):  # noqa: SIM110 - Numba has no `any`
        if number.name == name:
            return True
    return False


def text_of_a_tuple_taken_apart(number: Number) -> bool:
    first, second = "a", "bb"
    return number.name == first or number.name == second  # noqa: PLR1714 - each by itself


def text_of_a_tuple_of_the_module(number: Number) -> bool:
    return number.name in NAMES


def text_of_a_named_tuple(number: Number) -> bool:
    return number.name == PAIR.first


def text_of_an_array(number: Number) -> bool:
    return bool(number.name == ARRAY[1])


def text_of_a_module_of_a_module(number: Number) -> bool:
    return bool(number.name == limits.inner.NAME)


def text_of_a_default(number: Number) -> bool:
    return bool(limits.same(number.name))


class side(Enum):  # noqa: N801 - named as a variable of the function below
    A = "x"


def text_beside_a_variable_named_as_an_enum_of_text(number: Number) -> bool:
    side = "a"
    same: Callable[[str], bool] = lambda name: name == side  # noqa: E731
    return same(number.name)


class Name(Enum):
    A = "a"


def by_text_of_an_enum(number: Number) -> bool:
    return bool(number.name == Name.A.value)


MEMBER = Name.A


def by_text_of_a_member(number: Number) -> bool:
    return bool(number.name == MEMBER.value)


def by_text_of_an_argument(number: Number, name: Name = Name.A) -> bool:
    return bool(number.name == name.value)


def by_text_of_a_default(number: Number) -> bool:
    return number.name != Pair("b").first and number.name in ("bb", Pair("b").second)


def by_text_in_a_tuple_of_an_enum(number: Number) -> bool:
    return bool(number.name == Ranked.A.value[0])


class Ranked(Enum):
    A = ("a", 1)


class Named(StrEnum):
    A = "a"


def by_a_member_that_is_text(number: Number) -> bool:
    return number.name == Named.A and number.name != Name.A  # type: ignore[comparison-overlap]


@numba.njit
def same_as_a(name: Any) -> Any:
    return name == "a"


@numba.njit
def same_as_pair(name: Any) -> Any:
    return name == limits.inner.NAME


@numba.njit
def same_by_another(name: Any) -> Any:
    return same_as_pair(name)


def by_text_of_a_users_own(number: Number) -> bool:
    return bool(same_as_a(number.name))


def by_text_of_a_users_own_that_another_calls(number: Number) -> bool:
    return bool(same_by_another(number.name))


def by_names_of_arguments(number: Number) -> bool:
    part = Part(name=number.name, value=1)
    return part.name not in ("name", "value", "a")


def by_text_in_a_set(number: Number) -> bool:
    return number.name in {"bb", "value"}


def by_text_in_a_dict(number: Number) -> bool:
    return {"a": 1, "bb": 2, "ooo": 3}[number.name] > 1


TEXTS = [
    text_beside_a_variable_named_as_an_enum_of_text,
    text_in_a_comprehension,
    text_in_a_comprehension_in_a_comprehension,
    text_in_a_lambda,
    text_in_an_inner_function,
    text_of_a_tuple_one_by_one,
    text_of_a_tuple_taken_apart,
    text_of_a_tuple_of_the_module,
    text_of_a_named_tuple,
    text_of_an_array,
    text_of_a_module_of_a_module,
    text_of_a_default,
    by_text_of_an_enum,
    by_text_of_a_member,
    by_a_member_that_is_text,
    by_text_of_an_argument,
    by_text_of_a_default,
    by_text_in_a_tuple_of_an_enum,
    by_text_of_a_users_own,
    by_text_of_a_users_own_that_another_calls,
    by_names_of_arguments,
    by_text_in_a_set,
    by_text_in_a_dict,
]


@pytest.mark.parametrize("function", TEXTS, ids=lambda function: function.__name__)
def test_text_is_compared_as_in_python_wherever_it_stands(function: Callable[[Number], bool]) -> None:
    app = Application("meters")
    app.source("in", schema=Number, key="name").filter(bettong.compiled(function)).sink("out")
    (stage,) = plan(app).stages
    numbers = [Number(name, value) for value, name in enumerate(["a", "bb", "ooo", "a"])]
    kept = results(fold(worker(program(stage, compiled=True)), [data("in/a", 1, numbers)]), OUT, Number)
    assert kept == list(filter(function, numbers))
    assert 0 < len(kept) < len(numbers)


@numba.njit
def halved_down(value: Any) -> Any:
    """Text that is compared with nothing."""
    if value < 0:
        raise ValueError("below zero")
    return value if value < 2 else halved_down(value // 2)


def by_a_users_own(number: Number) -> bool:
    def is_one(value: int, _: str = "a") -> bool:
        return bool(halved_down(value) == 1)

    return is_one(number.value)


def test_a_function_that_the_user_compiled_may_raise_in_words_and_call_itself() -> None:
    app = Application("meters")
    app.source("in", schema=Number, key="name").filter(bettong.compiled(by_a_users_own)).sink("out")
    (stage,) = plan(app).stages
    numbers = [Number("a", value) for value in range(3)]
    kept = results(fold(worker(program(stage, compiled=True)), [data("in/a", 1, numbers)]), OUT, Number)
    assert kept == numbers[1:]
