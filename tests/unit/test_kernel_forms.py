"""Compiled functions of every form mean what they mean as Python: map, filter, flat_map, stateful."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from types import ModuleType
from typing import Annotated, Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bettong
from bettong import Application, ApplicationError, Width
from bettong.application.plan import plan
from bettong.worker.stage_program import StageProgram, program
from tests.worker_samples import data, fold, letters, results, worker

OUT = "meters.sink.out"


@dataclass
class Number:
    name: Annotated[str, Width(4)]
    value: bettong.i32


@dataclass
class Part:
    name: Annotated[str, Width(4)]
    value: bettong.u8
    half: bettong.f32 = 0.5
    tag: Annotated[str, Width(2)] = "ok"


@dataclass
class Sum:
    total: int = 0
    last: Annotated[str, Width(4)] = ""


@bettong.compiled
def halved(number: Number) -> Part:
    return Part(number.name, 100 // number.value, number.value / 2)


@bettong.compiled
def wanted(number: Number) -> bool:
    if number.name == "ooo":
        raise ValueError("not this name")
    return 100 // number.value > 3


@bettong.compiled
def counted_down(number: Number) -> Iterator[Part]:
    for value in range(number.value, -1, -1):
        if value == 50:
            raise ValueError("half-way")
        yield Part(number.name, value, value / 4)


@bettong.compiled
def both(number: Number) -> list[Part]:
    return [Part(number.name, number.value), Part(number.name, number.value - 1, tag="2")]


@bettong.compiled
def steps(number: Number, kept: Sum) -> list[Part]:
    """Changes its state between results, and goes on after one that does not fit."""
    found = []
    for step in range(number.value):
        if step == 40:
            raise ValueError("half-way")
        kept.total += 1
        found.append(Part(kept.last, kept.total))
    kept.last = number.name
    return found


@bettong.compiled
def listed(number: Number) -> list[Part]:
    """Makes results in nested code, of names that only nested code uses."""
    tag: Callable[[str], str] = lambda name: "ab" if name == "a" else "c"  # noqa: E731
    return [Part(number.name, value, tag=tag(number.name)) for value in range(number.value)]


FORMS = {
    "map": halved,
    "filter": wanted,
    "flat_map": counted_down,
    "list": both,
    "comprehension": listed,
    "stateful": steps,
}


@pytest.fixture(scope="module", params=FORMS)
def programs(request: pytest.FixtureRequest) -> tuple[StageProgram, StageProgram]:
    """A computation compiled, and as plain Python."""
    app = Application("meters")
    source = app.source("in", schema=Number, key="name")
    form: str = request.param
    made: Any = {
        "map": source.map,
        "filter": source.filter,
        "stateful": lambda function: source.stateful(function, state=Sum),
    }.get(form, source.flat_map)
    made(FORMS[form]).sink("out")
    (stage,) = plan(app).stages
    return program(stage, compiled=True), program(stage, compiled=False)


NUMBER = st.builds(
    Number, st.sampled_from(["a", "äö", "ooo"]), st.sampled_from([-3, 0, 1, 2, 5, 30, 49, 60, 300, 700])
)


def outcome(
    of: StageProgram, frames: list[list[Number]]
) -> tuple[list[Any], list[list[tuple[int, str, str]]]]:
    one, found, dead = worker(of), [], []
    for sequence, numbers in enumerate(frames, 1):
        records = fold(one, [data("in/a", sequence, numbers)])
        found += results(records, OUT, of.stage.exits[0].schema.message)
        told = [(each.index, each.computation, each.reason.partition(":")[0]) for each in letters(records)]
        dead.append(sorted((index, computation, "") for index, computation, _ in told))
    return found, dead


def test_compiled_and_python_give_the_same(programs: tuple[StageProgram, StageProgram]) -> None:
    compiled, python = programs
    assert compiled.kernels
    assert not python.kernels

    @settings(max_examples=60)
    @given(st.lists(st.lists(NUMBER, min_size=1, max_size=6), min_size=1, max_size=3))
    def check(frames: list[list[Number]]) -> None:
        assert outcome(compiled, frames) == outcome(python, frames)

    check()


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


class Name(Enum):
    A = "a"


@bettong.compiled
def by_text_of_an_enum(number: Number) -> bool:
    return bool(number.name == Name.A.value)


MEMBER = Name.A


@bettong.compiled
def by_text_of_a_member(number: Number) -> bool:
    return bool(number.name == MEMBER.value)


@bettong.compiled
def by_text_of_an_argument(number: Number, name: Name = Name.A) -> bool:
    return bool(number.name == name.value)


@bettong.compiled
def by_text_of_a_default(number: Number) -> bool:
    return number.name == Pair("b").second


@bettong.compiled
def by_names_of_arguments(number: Number) -> bool:
    part = Part(name=number.name, value=1)
    return part.name in ("name", "value")


@pytest.mark.parametrize(
    ("function", "what"),
    [
        (by_names_of_arguments, r"\('name', 'value'\) are both names and text"),
        (by_text_of_an_enum, "the enum Name has text"),
        (by_text_of_a_member, "the enum Name has text"),
        (by_text_of_an_argument, "the enum Name has text"),
        (by_text_of_a_default, "the named tuple Pair has text"),
    ],
)
def test_text_that_would_equal_no_other_is_refused(function: Callable[[Number], bool], what: str) -> None:
    app = Application("meters")
    app.source("in", schema=Number).filter(function).sink("out")
    line = function.__code__.co_firstlineno
    with pytest.raises(ApplicationError, match=rf"'{function.__name__}' \({__file__}:{line}\) .* {what}"):
        program(plan(app).stages[0], compiled=True)


@bettong.compiled
def many(number: Number, kept: Sum) -> list[Number]:
    found = []
    for _ in range(number.value):
        kept.total += 1
        found.append(Number(number.name, kept.total))
    return found


@bettong.compiled
def yielding(number: Number, kept: Sum) -> Iterator[Number]:
    kept.total += number.value
    yield number


def test_a_generator_with_a_state_is_refused_because_it_would_change_a_copy() -> None:
    app = Application("meters")
    app.source("in", schema=Number, key="name").stateful(yielding, state=Sum).sink("out")
    line = yielding.__code__.co_firstlineno
    with pytest.raises(ApplicationError, match=rf"'yielding' \({__file__}:{line}\) cannot .* return a list"):
        program(plan(app).stages[0], compiled=True)


def test_more_results_than_there_is_room_for_at_first_are_made_in_several_runs() -> None:
    app = Application("meters")
    app.source("in", schema=Number, key="name").stateful(many, state=Sum).sink("out")
    of = worker(program(plan(app).stages[0], compiled=True))
    frames = [
        data("in/a", 1, [Number("a", 3000), Number("b", 2), Number("a", 4000)]),
        data("in/a", 2, [Number("a", 1)]),
    ]
    found = results(fold(of, frames), OUT, Number)
    assert [each.value for each in found if each.name == "a"] == list(range(1, 7002))
    assert [each.value for each in found if each.name == "b"] == [1, 2]
    assert of.folds["many"].state_of("a") == {"total": 7001, "last": ""}


@dataclass
class Loose:
    text: str


@bettong.compiled
def loosened(number: Number) -> Loose:
    return Loose(number.name)


@bettong.compiled
def misspelt(number: Number) -> Part:
    doubled = number.value * 2
    return Part(number.nam, doubled)  # type: ignore[attr-defined]


def test_a_function_without_state_that_cannot_be_compiled_is_refused_with_its_line() -> None:
    app = Application("meters")
    app.source("in", schema=Number).map(misspelt).sink("out")
    line = misspelt.__code__.co_firstlineno + 3
    with pytest.raises(
        ApplicationError, match=rf"'misspelt' \({__file__}:{line}\) cannot be compiled: .*'nam'"
    ):
        program(plan(app).stages[0], compiled=True)


@bettong.compiled
def mixed(number: Number) -> list[Part]:
    return [Part(number.name, 1), Part("text", 2)]


def test_results_of_different_types_in_one_list_are_refused() -> None:
    app = Application("meters")
    app.source("in", schema=Number).flat_map(mixed).sink("out")
    with pytest.raises(ApplicationError, match=rf"'mixed' \({__file__}:\d+\) .* its results differ in type"):
        program(plan(app).stages[0], compiled=True)


def test_a_message_of_a_varying_width_is_refused_by_the_name_of_the_computation() -> None:
    app = Application("meters")
    app.source("in", schema=Number).map(loosened).sink("out")
    with pytest.raises(ApplicationError, match="compiled 'loosened': Loose: text has no fixed width"):
        program(plan(app).stages[0], compiled=True)
