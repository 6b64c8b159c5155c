"""Our extensions of Numba: text behaves as a str, messages are made as in Python, and other users are unaffected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, NamedTuple

import numba
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bettong
from bettong import Application, Width
from bettong.application.plan import plan
from bettong.worker.stage_program import StageProgram, program
from tests.samples.worker import data, dead_letters, fold, results, worker

OUT = "meters.sink.out"


@dataclass
class Pair:
    one: Annotated[str, Width(8)]
    other: Annotated[str, Width(5)]
    number: int


@dataclass
class Found:
    """What came of a pair: 20 truths as bits, a number, and text."""

    truths: int
    number: int
    text: Annotated[str, Width(12)] = "none"


@dataclass(order=True)
class _Ranked:
    rank: int
    _name: Annotated[str, Width(4)] = "äx"


class Tag(StrEnum):
    A = "a"


class Limits(NamedTuple):
    name: str
    least: str = "b"


@bettong.compiled
def compared(pair: Pair) -> Found:
    known = pair.one in ("a", "äö", "much too long", pair.other)
    truths = [
        pair.one == pair.other,
        pair.one != pair.other,
        pair.one < pair.other,
        pair.one >= pair.other,
        pair.one <= "äb",
        "b" > pair.other,  # noqa: SIM300 - a str before text
        pair.other in pair.one,
        "ö" in pair.one,
        pair.one in "xäöy",
        pair.one.startswith("ä"),
        bool(pair.one),
        not pair.other,
        pair.one == Tag.A,
        pair.one == b"a",  # type: ignore[comparison-overlap]
        pair.one == "a\0",
        (pair.one, 1) == ("a", 1),
        _Ranked(pair.number, pair.other) == _Ranked(3, "a"),
        _Ranked(pair.number, pair.other) < _Ranked(3),
        pair.one > Limits("a").least,
        pair.one in {"a", "äö"},
    ]
    number = len(pair.one) + (ord(pair.other[0]) if pair.other else 0) + pair.one.find("ö")
    return Found(
        sum([1 << index for index in range(20) if truths[index]]), number, "known" if known else pair.other
    )


@bettong.compiled
def made(pair: Pair) -> Found:
    """Text that is made; from 3 on it may be too long."""
    if pair.number == 0:
        return Found(0, 0, text=pair.one[1:] + pair.other)
    if pair.number == 1:
        return Found(0, 0, f"{pair.one}-{pair.number}")
    if pair.number == 2:
        return Found(0, 0, pair.one.upper().strip("A"))
    if pair.number == 3:
        return Found(0, 0, pair.one + pair.other)
    if pair.number == 4:
        raise ValueError("no " + pair.one)
    if pair.number == 5:
        raise ValueError(pair.one, pair.number)
    if pair.number == 6:
        return Found(0, 0, "x" * len(pair.one) + chr(0xDFFE + pair.number * 0x400))
    name = pair.one if pair.number > 8 else "x" if pair.number > 7 else "ä€😀"
    return Found(0, 0, name)


WORDS = st.text("aäbö€😀", max_size=8)
PAIRS = st.builds(
    Pair,
    WORDS.filter(lambda word: len(word.encode()) <= 8),
    WORDS.filter(lambda word: len(word.encode()) <= 5),
    st.integers(0, 9),
)


@pytest.fixture(scope="module", params=[compared, made], ids=["compared", "made"])
def programs(request: pytest.FixtureRequest) -> tuple[StageProgram, StageProgram]:
    """A computation compiled, and as plain Python."""
    app = Application("meters")
    app.source("in", schema=Pair, key="one").map(request.param).sink("out")
    (stage,) = plan(app).stages
    return program(stage, compiled=True), program(stage, compiled=False)


def outcome(of: StageProgram, pairs: list[Pair]) -> tuple[list[Found], list[tuple[int, str]]]:
    """Results, and dead letters: of what does not fit the index alone, of what is raised the reason as well."""
    records = fold(worker(of), [data("in/a", 1, pairs)])
    reported = [(each.index, each.reason if "no " in each.reason else "") for each in dead_letters(records)]
    return results(records, OUT, Found), reported


def test_text_does_what_a_str_does(programs: tuple[StageProgram, StageProgram]) -> None:
    compiled, python = programs

    @settings(max_examples=150)
    @given(st.lists(PAIRS, min_size=1, max_size=20))
    def check(pairs: list[Pair]) -> None:
        assert outcome(compiled, pairs) == outcome(python, pairs)

    check()


@dataclass
class Kept:
    last: Annotated[str, Width(4)] = "none"


@bettong.compiled
def remembered(pair: Pair, kept: Kept) -> Found:
    before = len(kept.last)
    kept.last = pair.other if pair.number else str(pair.number)
    return Found(0, before, kept.last)


def test_text_that_is_too_long_for_a_state_is_a_dead_letter_and_changes_nothing() -> None:
    app = Application("meters")
    app.source("in", schema=Pair, key="one").stateful(remembered, state=Kept).sink("out")
    of = worker(program(plan(app).stages[0], compiled=True))
    pairs = [Pair("a", "ab", 1), Pair("a", "abcde", 1), Pair("a", "", 0), Pair("a", "ä", 1)]
    records = fold(of, [data("in/a", 1, pairs)])
    assert [(each.index, each.reason) for each in dead_letters(records)] == [
        (1, "ValueError: text longer than 4 bytes")
    ]
    assert [each.number for each in results(records, OUT, Found)] == [4, 2, 1]
    assert of.tables["remembered"].state_of("a") == {"last": "ä"}


def twice(value: int) -> int:
    return 2 * value


@numba.njit
def asks_for_a_function(value: Any) -> Any:
    return twice(value)


@numba.njit
def asks_for_a_message(value: Any) -> Any:
    return _Ranked(value).rank


@numba.njit
def asks_for_text(value: Any) -> Any:
    return str(value / 2)


@bettong.compiled
def doubled(pair: Pair) -> Pair:
    return Pair(pair.one, pair.other, twice(pair.number))


@pytest.mark.parametrize("asks", [asks_for_a_function, asks_for_a_message])
def test_whoever_uses_numba_beside_bettong_finds_it_as_it_is(asks: Any) -> None:
    program(_stage_of(doubled), compiled=True)
    with pytest.raises(numba.TypingError, match="Untyped global name"):
        asks(1)
    assert asks_for_text(1) == "<object type:float64>"


def test_the_users_function_stays_what_it_is() -> None:
    code, names, held = doubled.__code__, dict(doubled.__globals__), dict(vars(doubled))
    program(_stage_of(doubled), compiled=True)
    assert doubled.__code__ is code
    assert doubled.__globals__ == names
    assert vars(doubled) == held


def in_python_alone(value: int) -> int:
    return int(f"{value:d}")


@numba.extending.overload(in_python_alone, strict=False)
def _in_python_alone(value: Any) -> Any:
    return lambda value: value + 100


@bettong.compiled
def by_an_overload(pair: Pair) -> Pair:
    return Pair(pair.one, pair.other, in_python_alone(pair.number))


def test_an_overload_of_the_users_comes_first() -> None:
    of = worker(program(_stage_of(by_an_overload), compiled=True))
    records = fold(of, [data("in/a", 1, [Pair("a", "b", 1)])])
    assert [each.number for each in results(records, OUT, Pair)] == [101]


def _stage_of(function: Callable[[Pair], Pair]) -> Any:
    app = Application("meters")
    app.source("in", schema=Pair, key="one").map(function).sink("out")
    return plan(app).stages[0]
