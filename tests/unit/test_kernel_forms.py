"""Compiled functions of every form behave as in Python: map, filter, flat_map, stateful."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bettong
from bettong import Application, ApplicationError, Width
from bettong.application.plan import plan
from bettong.testing import run
from bettong.worker.stage_program import StageProgram, program
from tests.samples.worker import data, dead_letters, fold, results, worker

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
        found += results(records, OUT, of.stage.outputs[0].schema.message)
        reported = [
            (each.index, each.computation, each.reason.partition(":")[0]) for each in dead_letters(records)
        ]
        dead.append(sorted((index, computation, "") for index, computation, _ in reported))
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
    assert of.tables["many"].state_of("a") == {"total": 7001, "last": ""}


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
def noted(number: Number, kept: Sum) -> Part | None:
    if number.value < 0:
        return None
    kept.total += number.value
    return None


@bettong.compiled
def noted_at_once(number: Number, kept: Sum) -> Part | None:  # type: ignore[return]
    kept.total += number.value  # and returns nothing


@pytest.mark.parametrize("function", [noted, noted_at_once])
def test_a_function_that_never_has_a_result_changes_its_state(function: Any) -> None:
    app = Application("meters")
    app.source("in", schema=Number, key="name").stateful(function, state=Sum).sink("out")
    outcome = run(app, [("in", [Number("a", 2), Number("b", 5), Number("a", 3)])], compiled=True)
    assert outcome.outputs == {"out": []}
    kept = outcome.states[function.__name__]
    assert {name: state["total"] for name, state in kept.items()} == {"a": 5, "b": 5}


@bettong.compiled
def mixed(number: Number) -> list[Part]:
    return [Part(number.name, 1), Part("text", 2), Part("a" if number.value else "bb", 3)]


def test_a_list_may_hold_results_of_texts_of_all_kinds() -> None:
    app = Application("meters")
    app.source("in", schema=Number).flat_map(mixed).sink("out")
    of = worker(program(plan(app).stages[0], compiled=True))
    found = results(fold(of, [data("in/a", 1, [Number("äö", 0)])]), OUT, Part)
    assert found == mixed(Number("äö", 0))


@bettong.compiled
def of_two_classes(number: Number) -> list[Part]:
    return [Part(number.name, 1), number]  # type: ignore[list-item]


def test_results_of_different_types_in_one_list_are_refused() -> None:
    app = Application("meters")
    app.source("in", schema=Number).flat_map(of_two_classes).sink("out")
    expected = rf"'of_two_classes' \({__file__}:\d+\) .* its results differ in type"
    with pytest.raises(ApplicationError, match=expected):
        program(plan(app).stages[0], compiled=True)


def test_a_message_of_a_varying_width_is_refused_by_the_name_of_the_computation() -> None:
    app = Application("meters")
    app.source("in", schema=Number).map(loosened).sink("out")
    with pytest.raises(ApplicationError, match="compiled 'loosened': Loose: text has no fixed width"):
        program(plan(app).stages[0], compiled=True)
