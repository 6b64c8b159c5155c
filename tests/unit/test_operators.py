"""map, filter and flat_map in a worker: what raises is one message's dead letter, and the next one goes on."""

from __future__ import annotations

import gc
import itertools
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bettong
from bettong import Application
from bettong.v1.frame_pb2 import DeadLetter
from bettong.worker.batch import Batch
from bettong.worker.output.framing import OutputRecord
from tests.samples.worker import data, dead_letters, fold, python, results, worker


@dataclass
class Number:
    number: int


@dataclass
class Byte:
    byte: bettong.u8


OUT = "meters.sink.out"


def halved(number: Number) -> Number:
    if number.number % 2:
        raise ValueError(f"{number.number} is odd")
    return Number(number.number // 2)


def as_byte(number: Number) -> Byte:
    return Byte(number.number)


def even(number: Number) -> bool:
    if number.number == 7:
        raise KeyError(7)
    return number.number % 2 == 0


def downwards(number: Number) -> Iterator[Number]:
    """Fails half-way for multiples of five."""
    for each in range(number.number, 0, -1):
        if number.number % 5 == 0 and each == number.number // 2:
            raise RuntimeError("half-way")
        yield Number(each)


def one_object(number: Number) -> Iterator[Number]:
    found = Number(0)
    for found.number in range(number.number):
        yield found


def twice(number: Number) -> Iterator[Number]:
    yield from itertools.repeat(number, 2)


@pytest.mark.parametrize(("function", "expected"), [(one_object, [0, 1, 2, 0, 1]), (twice, [3, 3, 2, 2])])
def test_an_object_that_is_yielded_again_is_what_it_was_each_time(
    function: Callable[..., Any], expected: list[int]
) -> None:
    one = worker(python(application(lambda source: source.flat_map(function))))
    records = fold(one, [data("in/a", 1, [Number(3), Number(2)])])
    assert [each.number for each in results(records, OUT, Number)] == expected


def leaving(number: Number) -> Number:
    if number.number == 1:
        sys.exit(3)
    return number


def leaving_filter(number: Number) -> bool:
    return bool(leaving(number))


def leaving_flat_map(number: Number) -> list[Number]:
    return [leaving(number)]


@pytest.mark.parametrize(
    "build",
    [
        lambda source: source.map(leaving),
        lambda source: source.filter(leaving_filter),
        lambda source: source.flat_map(leaving_flat_map),
    ],
    ids=["map", "filter", "flat_map"],
)
def test_a_function_that_would_end_the_process_leads_to_a_dead_letter(
    build: Callable[[bettong.Stream[Any]], bettong.Stream[Any]],
) -> None:
    records = fold(worker(python(application(build))), [data("in/a", 1, [Number(1), Number(2)])])
    assert [each.reason for each in dead_letters(records)] == ["SystemExit: 3"]
    assert [each.number for each in results(records, OUT, Number)] == [2]


def application(build: Callable[[bettong.Stream[Any]], bettong.Stream[Any]]) -> Application:
    app = Application("meters")
    build(app.source("in", schema=Number)).sink("out")
    return app


@pytest.mark.parametrize(
    "build",
    [
        lambda source: source.map(leaving),
        lambda source: source.filter(leaving_filter),
        lambda source: source.flat_map(leaving_flat_map),
    ],
    ids=["map", "filter", "flat_map"],
)
def test_a_message_that_fails_keeps_nothing_of_its_frame_in_memory(
    build: Callable[[bettong.Stream[Any]], bettong.Stream[Any]],
) -> None:
    """An exception that is kept holds the frames of the call, and they the columns: a cycle that waits for `gc`."""
    of = worker(python(application(build)))
    gc.disable()
    try:
        before = batches()
        fold(of, [data("in/a", 1, [Number(1), Number(2)])])
        assert batches() == before
    finally:
        gc.enable()


def batches() -> int:
    """How many there are, garbage that waits for `gc` included."""
    return sum(type(each) is Batch for each in gc.get_objects())


def run(app: Application, numbers: list[int]) -> list[OutputRecord]:
    """Folds one frame of numbers, if there are any."""
    frame = [data("in/a", 7, [Number(each) for each in numbers], previous=0)] if numbers else []
    return fold(worker(python(app)), frame)


def indexes(found: list[DeadLetter]) -> list[int]:
    assert all((each.origin, each.sequence) == ("in/a", 7) for each in found)
    return [each.index for each in found]


NUMBERS = st.lists(st.integers(0, 12), max_size=12)


@given(NUMBERS)
def test_a_map_that_raises_makes_a_dead_letter_of_that_message(numbers: list[int]) -> None:
    records = run(application(lambda stream: stream.map(halved)), numbers)
    assert results(records, OUT, Number) == [Number(each // 2) for each in numbers if each % 2 == 0]
    found = dead_letters(records)
    assert indexes(found) == [index for index, each in enumerate(numbers) if each % 2]
    assert [each.reason for each in found] == [f"ValueError: {each} is odd" for each in numbers if each % 2]
    assert {each.computation for each in found} <= {"halved"}
    assert [each.message for each in found] == [
        f'{{"number":{each}}}'.encode() for each in numbers if each % 2
    ]


@given(NUMBERS)
def test_a_filter_keeps_what_is_true_and_may_raise(numbers: list[int]) -> None:
    records = run(application(lambda stream: stream.filter(even)), numbers)
    assert results(records, OUT, Number) == [Number(each) for each in numbers if each % 2 == 0]
    assert indexes(dead_letters(records)) == [index for index, each in enumerate(numbers) if each == 7]


@given(NUMBERS)
def test_a_flat_map_that_raises_half_way_gives_none_of_that_message(numbers: list[int]) -> None:
    records = run(application(lambda stream: stream.flat_map(downwards)), numbers)
    fine = [each for each in numbers if each % 5 or not each]
    assert results(records, OUT, Number) == [Number(down) for each in fine for down in range(each, 0, -1)]
    assert indexes(dead_letters(records)) == [
        index for index, each in enumerate(numbers) if each % 5 == 0 and each
    ]


@given(NUMBERS)
def test_indexes_are_those_of_the_frame_behind_any_chain(numbers: list[int]) -> None:
    """Each result of each computation still knows which message of the frame it comes from."""

    def build(stream: bettong.Stream[Any]) -> bettong.Stream[Any]:
        return stream.filter(even).flat_map(downwards).map(halved)

    records = run(application(build), numbers)
    found = dead_letters(records)
    expected = []
    for index, each in enumerate(numbers):
        if each == 7:
            expected.append((index, "even"))
        elif each % 2 == 0 and each and each % 5 == 0:
            expected.append((index, "downwards"))
        elif each % 2 == 0:
            expected += [(index, "halved") for down in range(each, 0, -1) if down % 2]
    assert sorted((each.index, each.computation) for each in found) == sorted(expected)


@pytest.mark.parametrize("between", [False, True], ids=["sink", "map first"])
def test_a_result_that_does_not_fit_its_schema_is_a_dead_letter(between: bool) -> None:  # noqa: FBT001
    def build(stream: bettong.Stream[Any]) -> bettong.Stream[Any]:
        return (stream.filter(even) if between else stream).map(as_byte)

    records = run(application(build), [4, 300, 6, -2])
    assert results(records, OUT, Byte) == [Byte(4), Byte(6)]
    found = dead_letters(records)
    assert indexes(found) == [1, 3]
    assert all(each.computation == "as_byte" and "field 'byte'" in each.reason for each in found)


@pytest.mark.parametrize("wrong", [None, 7, "text", Byte(1), [Number(1)]])
def test_a_result_of_another_class_is_a_dead_letter(wrong: Any) -> None:
    def odd_result(number: Number) -> Number:
        return Number(1) if number.number else wrong

    records = run(application(lambda stream: stream.map(odd_result)), [1, 0, 1])
    assert results(records, OUT, Number) == [Number(1), Number(1)]
    (dead_letter,) = dead_letters(records)
    assert dead_letter.index == 1
    assert dead_letter.reason == f"{type(wrong).__name__} is no Number"


@pytest.mark.parametrize("wrong", [None, 7])
def test_a_flat_map_that_returns_no_iterable_is_a_dead_letter(wrong: Any) -> None:
    def broken(number: Number) -> list[Number]:
        return [number] if number.number else wrong

    records = run(application(lambda stream: stream.flat_map(broken)), [1, 0])
    assert results(records, OUT, Number) == [Number(1)]
    assert "is not iterable" in dead_letters(records)[0].reason


def test_a_long_reason_is_cut() -> None:
    def shouting(number: Number) -> Number:
        raise ValueError("x" * 100_000 + str(number))

    (dead_letter,) = dead_letters(run(application(lambda stream: stream.map(shouting)), [1]))
    assert dead_letter.reason == "ValueError: " + "x" * 988


def test_a_function_that_changes_its_message_changes_nobody_elses() -> None:
    def greedy(number: Number) -> Number:
        number.number += 100
        return Number(number.number)

    def modest(number: Number) -> Number:
        return Number(number.number)

    app = Application("meters")
    source = app.source("in", schema=Number)
    source.map(greedy).sink("first")
    source.map(modest).sink("second")
    source.sink("raw")
    records = run(app, [1, 2])
    assert results(records, "meters.sink.first", Number) == [Number(101), Number(102)]
    for sink in ("second", "raw"):
        assert results(records, f"meters.sink.{sink}", Number) == [Number(1), Number(2)]


def test_where_branches_meet_rows_go_by_message_then_by_branch() -> None:
    def left(number: Number) -> Number:
        return Number(number.number)

    def right(number: Number) -> Number:
        return Number(-number.number)

    app = Application("meters")
    source = app.source("in", schema=Number)
    source.map(left).merge(source.map(right)).map(as_number).sink("out")
    assert results(run(app, [1, 2]), OUT, Number) == [Number(1), Number(-1), Number(2), Number(-2)]


def as_number(number: Number) -> Number:
    return number
