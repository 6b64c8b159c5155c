"""A result is as it was when the function returned it, in every mode; what could change later is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pytest

import bettong
from bettong import Application, RowIndexes, Stream, Width
from bettong.frames.columns import Columns
from bettong.schema.schema import schema_of
from bettong.worker.calling.vectors import message_of, one_each_of
from tests.samples.worker import data, dead_letters, fold, python, results, worker


@dataclass
class Number:
    key: Annotated[str, Width(4)]
    value: bettong.i32


@dataclass
class Sums:
    key: Annotated[str, Width(4)]
    value: bettong.i32
    whole: int
    text: Annotated[str, Width(4)]


@dataclass
class Kept:
    total: int = 0


@dataclass
class Loose:
    text: str
    blob: bytes
    number: int
    share: bettong.f64


OUT = "meters.sink.out"
BUFFERS: dict[str, Any] = {}


def filled(name: str, values: Any, dtype: str) -> Any:
    """The beginning of one array for each name, filled again and again."""
    array = BUFFERS.setdefault(name, np.empty(64, dtype))[: len(values)]
    array[:] = values
    return array


WRAPPED: dict[str, Callable[[Any], Any]] = {
    "an array": lambda array: array,
    "a view that cannot be written": lambda array: np.broadcast_to(array, array.shape),
    "an Arrow array over it": lambda array: pa.array(array) if array.dtype.kind == "i" else array,
}


def sums_of(number: Any, rows: Any, wrap: Callable[[Any], Any]) -> Sums:
    values = np.asarray(number.value)[rows]
    if (values == 13).any():
        raise ValueError("thirteen")
    return Sums(
        wrap(filled("key", np.asarray(number.key)[rows], "S4")),
        wrap(filled("value", values, "i4")),
        wrap(filled("whole", values, "i8")),
        wrap(filled("text", np.strings.add(b"n", values.astype("S3")), "S4")),
    )


def columns(state: Kept) -> Any:
    """What a vectorized function gets: the fields are columns."""
    return state


def mapped(source: Stream[Any], name: str, wrap: Callable[[Any], Any]) -> Stream[Any]:
    @bettong.vectorized
    def function(number: Number) -> Sums:
        return sums_of(number, np.arange(len(np.asarray(number.value))), wrap)

    return source.map(function, name=name)


def is_kept(values: Any) -> Any:
    """Whether the `flat_map` below gives a result, so that row indexes differ from call to call."""
    return (values % 3 != 1) | (values == 13)


def flat_mapped(source: Stream[Any], name: str, wrap: Callable[[Any], Any]) -> Stream[Any]:
    @bettong.vectorized
    def function(number: Number) -> tuple[Sums, RowIndexes]:
        rows = filled("rows", np.flatnonzero(is_kept(np.asarray(number.value))), "i8")
        return sums_of(number, rows, wrap), rows

    return source.flat_map(function, name=name)


def folded(source: Stream[Any], name: str, wrap: Callable[[Any], Any]) -> Stream[Any]:
    @bettong.vectorized
    def function(number: Number, kept: Kept, key: RowIndexes) -> Sums:
        np.add.at(columns(kept).total, key, np.asarray(number.value))
        return sums_of(number, np.arange(len(key)), wrap)

    return source.stateful(function, state=Kept, name=name)


@pytest.mark.parametrize("wrap", WRAPPED.values(), ids=WRAPPED)
@pytest.mark.parametrize("build", [mapped, flat_mapped, folded], ids=["map", "flat_map", "stateful"])
def test_a_buffer_that_is_filled_again_and_again_gives_each_result_once(
    build: Callable[[Stream[Any], str, Callable[[Any], Any]], Stream[Any]], wrap: Callable[[Any], Any]
) -> None:
    """By calls of one frame: for the halves of a frame that holds a bad message, and for a sibling that shares it."""
    app = Application("meters")
    source = app.source("in", schema=Number, key="key")
    first = build(source, "first", wrap)
    first.sink("out")
    build(source.map(larger), "second", wrap).sink("grown")
    first.map(without_two).sink("picked")
    values = [1, 2, 13, 4, 5, 6, 7, 8]
    records = fold(worker(python(app)), [data("in/a", 1, [Number("k", each) for each in values])])
    assert [(each.index, each.computation) for each in dead_letters(records)] == [
        (1, "without_two"),
        (2, "first"),
    ]
    expected = {
        OUT: [each for each in values if each != 13],
        "meters.sink.grown": [each + 20 for each in values],
    }
    for topic, given in expected.items():
        kept = [each for each in given if build is not flat_mapped or is_kept(each)]
        assert results(records, topic, Sums) == [Sums("k", each, each, f"n{each}") for each in kept]


def without_two(sums: Sums) -> Sums:
    if sums.value == 2:
        raise ValueError("two")
    return sums


def larger(number: Number) -> Number:
    return Number(number.key, number.value + 20)


def test_columns_of_a_frame_that_are_passed_on_are_not_copied() -> None:
    """Nobody can write to them, and copying would cost as much as many a function."""
    schema = schema_of(Sums)
    payload = Columns.of_messages(schema, [Sums("k", 1, 2, "t")] * 3).payload()
    taken = Columns.of_payload(schema, payload)
    given = one_each_of(schema, message_of(taken), 3)
    assert given.columns is not None
    for column, own in zip(given.columns.columns, taken.columns, strict=True):
        assert np.shares_memory(column, own) == (column.dtype.itemsize != 4 or column.dtype.kind == "S")


PLAIN: dict[str, Any] = {"text": "t", "blob": b"b", "number": 1, "share": 0.5}


def failures_of(values: dict[str, Any], *, many: bool = False) -> list[str]:
    """The reasons of the dead letters when a function returns these for the second of three messages."""

    def one(number: Number) -> Loose:
        return Loose(**(PLAIN | (values if number.value == 1 else {})))

    def several(number: Number) -> list[Loose]:
        return [one(number), Loose(**PLAIN)]

    app = Application("meters")
    source = app.source("in", schema=Number, key="key")
    (source.flat_map(several) if many else source.map(one)).sink("out")
    records = fold(worker(python(app)), [data("in/a", 1, [Number("k", each) for each in range(3)])])
    assert len(results(records, OUT, Loose)) == (5 if many else 2)
    assert {each.index for each in dead_letters(records)} == {1}
    return [each.reason for each in dead_letters(records)]


@pytest.mark.parametrize("many", [False, True], ids=["map", "flat_map"])
@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("blob", bytearray(b"b"), "expected bytes, got bytearray"),
        ("blob", memoryview(b"b"), "expected bytes, got memoryview"),
        ("blob", "text", "expected bytes, got str"),
        ("text", bytearray(b"t"), "bytearray is no text: it can change after it was given"),
        ("number", np.array(1), "ndarray is no int: it can change after it was given"),
        ("share", np.array(0.5), "ndarray is no float: it can change after it was given"),
    ],
)
def test_a_value_that_can_change_after_it_was_given_is_refused(
    field: str, value: Any, reason: str, *, many: bool
) -> None:
    assert field in {each.name for each in fields(Loose)}
    assert failures_of({field: value}, many=many) == [f"field {field!r}: {reason}"]


@pytest.mark.parametrize(
    "text", ["text", b"bytes", bytearray(b"bytes")], ids=lambda text: type(text).__name__
)
@pytest.mark.parametrize("kind", ["flat_map", "stateful"])
def test_text_where_several_results_are_expected_is_one_mistake_not_one_a_letter(
    kind: str, text: Any
) -> None:
    def spelt(number: Number) -> list[Number]:
        return text if number.value else [number]

    def spelt_of(number: Number, kept: Kept) -> list[Number]:
        return spelt(number) if kept.total == 0 else []

    app = Application("meters")
    source = app.source("in", schema=Number, key="key")
    (source.flat_map(spelt) if kind == "flat_map" else source.stateful(spelt_of, state=Kept)).sink("out")
    records = fold(worker(python(app)), [data("in/a", 1, [Number("k", 0), Number("k", 1), Number("k", 0)])])
    assert results(records, OUT, Number) == [Number("k", 0), Number("k", 0)]
    (dead_letter,) = dead_letters(records)
    name = type(text).__name__
    assert (dead_letter.index, dead_letter.reason) == (
        1,
        f"TypeError: returned {name}, expected an iterable of Number",
    )


def thrice(number: Number) -> list[Number]:
    return [Number(number.key, number.value * step) for step in (1, 10**8, 2)]


@bettong.vectorized
def thrice_of_all(number: Number) -> tuple[Number, RowIndexes]:
    rows = np.repeat(np.arange(len(np.asarray(number.value))), 3)
    values: Any = np.asarray(number.value)[rows] * np.tile([1, 10**8, 2], len(rows) // 3)
    key: Any = np.asarray(number.key)[rows]
    return Number(key, values), rows


def thrice_kept(number: Number, kept: Kept) -> list[Number]:
    kept.total += number.value
    return thrice(number)


@bettong.vectorized
def thrice_kept_of_all(number: Number, kept: Kept, key: RowIndexes) -> tuple[Number, RowIndexes]:
    np.add.at(columns(kept).total, key, np.asarray(number.value))
    given: tuple[Number, RowIndexes] = thrice_of_all(number)
    return given


@pytest.mark.parametrize("function", [thrice, thrice_of_all, thrice_kept, thrice_kept_of_all])
def test_of_several_results_of_a_message_those_that_fit_are_results(function: Callable[..., Any]) -> None:
    app = Application("meters")
    source = app.source("in", schema=Number, key="key")
    is_stateful = "kept" in function.__name__
    stream = (
        source.stateful(function, state=Kept, name="f")
        if is_stateful
        else source.flat_map(function, name="f")
    )
    stream.sink("out")
    one = worker(python(app))
    records = fold(one, [data("in/a", 1, [Number("k", 3), Number("k", 300), Number("k", 4)])])
    assert [each.value for each in results(records, OUT, Number)] == [
        *(3, 3 * 10**8, 6),
        *(300, 600),
        *(4, 4 * 10**8, 8),
    ]
    (dead_letter,) = dead_letters(records)
    assert dead_letter.index == 1
    assert dead_letter.reason.startswith("field 'value': ")
    assert not is_stateful or one.tables["f"].state_of("k") == {"total": 307}
