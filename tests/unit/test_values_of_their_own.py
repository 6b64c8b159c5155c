"""What a function does to a list, a dict or an object after it gave it away is seen by nobody else.

Each application keeps something that can change in its state, gives it, and changes it at the next message. All
messages come in one frame, for that is where shared objects show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, TypedDict

import pytest

import bettong
from bettong import Application, Stream
from bettong.application.decoders import each
from bettong.frames.fitting import fitting
from bettong.schema.copying import copier_of
from bettong.schema.record_classes import record_class_of
from bettong.schema.schema import schema_of
from bettong.testing import run, watermark
from tests.samples.kind_cases import KindCase
from tests.samples.kinds import KINDS
from tests.samples.worker import data, fold, python, results, worker

OUT = "meters.sink.out"


@dataclass
class Number:
    key: str
    number: int


@dataclass
class Point:
    x: int
    tags: list[str] = field(default_factory=list)


class Label(TypedDict):
    text: str


@dataclass(frozen=True)
class Fixed:
    x: int


@dataclass
class Everything:
    """A field of each kind that can change."""

    number: int
    numbers: list[int]
    lists: list[list[int]]
    named: dict[str, int]
    point: Point
    points: list[Point]
    by_name: dict[str, Point]
    label: Label
    maybe: list[int] | None
    anything: bettong.Json


def everything() -> Everything:
    return Everything(0, [], [[]], {}, Point(0), [Point(0)], {"a": Point(0)}, {"text": ""}, [], {"in": []})


def changed(one: Everything, number: int) -> Everything:
    """The same object, with each thing in it changed."""
    one.number = number
    one.numbers.append(number)
    one.lists[0].append(number)
    one.named[str(number)] = number
    one.point.x = number
    one.point.tags.append(str(number))
    one.points[0].tags.append(str(number))
    one.by_name["a"].x = number
    one.label["text"] += str(number)
    assert one.maybe is not None
    one.maybe.append(number)
    one.anything["in"].append({"n": [number]})
    return one


EXPECTED = [
    Everything(
        numbers[-1],
        numbers,
        [numbers],
        {str(each): each for each in numbers},
        Point(numbers[-1], texts),
        [Point(0, texts)],
        {"a": Point(numbers[-1])},
        {"text": "".join(texts)},
        numbers,
        {"in": [{"n": [each]} for each in numbers]},
    )
    for numbers in ([1], [1, 2], [1, 2, 3])
    for texts in [[str(each) for each in numbers]]
]


@dataclass
class Kept:
    one: Any = field(default_factory=everything)


def keep(message: Number, kept: Kept) -> Everything:
    return changed(kept.one, message.number)


def keep_all(message: Number, kept: Kept) -> Iterator[Everything]:
    yield changed(kept.one, message.number)


_REUSED: list[Everything] = []


def reuse(message: Number) -> Everything:
    """One object for each message, made anew at the first one."""
    if message.number == 1:
        _REUSED[:] = [everything()]
    return changed(_REUSED[0], message.number)


def repeat(message: Number) -> Iterator[Everything]:
    """One object for all results of a message."""
    one = everything()
    for number in range(1, message.number + 1):
        yield changed(one, number)


def results_of(
    described: Callable[[Stream[Number]], Stream[Any]], numbers: list[int], result: type[Any] = Everything
) -> list[Any]:
    """What comes out when these numbers come in one frame."""
    app = Application("meters")
    described(app.source("in", schema=Number, key="key")).sink("out")
    one = worker(python(app))
    records = fold(one, [data("in/a", 1, [Number("k", number) for number in numbers])])
    return results(records, OUT, result)


@pytest.mark.parametrize("function", [keep, keep_all])
def test_a_result_does_not_change_with_the_state_that_it_shares(function: Callable[..., Any]) -> None:
    assert results_of(lambda source: source.stateful(function, state=Kept), [1, 2, 3]) == EXPECTED


def test_an_object_that_a_function_gives_again_was_read_each_time() -> None:
    assert results_of(lambda source: source.map(reuse), [1, 2, 3]) == EXPECTED
    assert results_of(lambda source: source.flat_map(repeat), [3]) == EXPECTED


@dataclass
class Only:
    numbers: list[int]


def only(message: Number, kept: Kept) -> Only:
    kept.one.numbers.append(message.number)
    return Only(kept.one.numbers)


def test_a_result_of_one_field_is_its_own_too() -> None:
    found = results_of(lambda source: source.stateful(only, state=Kept), [1, 2], Only)
    assert found == [Only([1]), Only([1, 2])]


def spoil(one: Everything) -> bool:
    changed(one, 99)
    return True


def sums(one: Everything) -> Number:
    return Number("k", sum(one.numbers) + one.point.x + len(one.anything["in"]))


def test_what_a_function_does_to_its_message_a_sibling_does_not_see() -> None:
    app = Application("meters")
    source = app.source("in", schema=Everything)
    source.filter(spoil).sink("spoilt")
    source.map(sums).sink("out")
    both = source.filter(spoil, name="first").map(sums, name="then")
    both.sink("behind")
    records = fold(worker(python(app)), [data("in/a", 1, EXPECTED)])
    expected = [Number("k", each) for each in (1 + 1 + 1, 3 + 2 + 2, 6 + 3 + 3)]
    assert results(records, OUT, Number) == expected
    assert results(records, "meters.sink.behind", Number) == expected
    assert results(records, "meters.sink.spoilt", Everything) == EXPECTED


def combine_and_spoil(left: Number, right: Point) -> Everything:
    """Gives what it was given, and spoils it."""
    result = replace(everything(), number=left.number, point=Point(right.x, list(right.tags)))
    left.number = -1
    right.x = -1
    right.tags.append("spoilt")
    return result


Join = Callable[[Stream[Number], Stream[Point]], Stream[Everything]]
JOINS: dict[str, Join] = {
    "within": lambda left, right: left.join_within(
        right, -timedelta(seconds=9), timedelta(seconds=9), combine_and_spoil
    ),
    "latest": lambda left, right: left.join_latest(right, combine_and_spoil),
    "as of": lambda left, right: left.join_as_of(right, combine_and_spoil),
    "window": lambda left, right: left.join_window(
        right, bettong.tumbling(timedelta(seconds=9)), combine_and_spoil
    ),
}


@pytest.mark.parametrize("join", JOINS.values(), ids=JOINS)
def test_what_a_join_does_to_its_messages_other_pairs_do_not_see(join: Join) -> None:
    app = Application("meters")
    numbers = app.source("numbers", schema=Number, key="key", event_time=lambda _: 10**9)
    points = app.source("points", schema=Point, key=lambda _: "k", event_time=lambda _: 10**9)
    join(numbers, points).sink("out")
    three = [Number("k", 1), Number("k", 2), Number("k", 3)]
    inputs: list[Any] = [("points", Point(5, ["t"])), ("numbers", three), ("points", Point(5, ["t"]))]
    if join is not JOINS["latest"]:
        inputs += [watermark(10**12, source="numbers"), watermark(10**12, source="points")]
    found = run(app, inputs).outputs["out"]
    assert {each.number for each in found} == {1, 2, 3}
    assert {(each.point.x, *each.point.tags) for each in found} == {(5, "t")}


_DECODED = Only([])


def decode_into_one(row: bytes) -> Only:
    _DECODED.numbers.append(row[0])
    return _DECODED


def test_a_decoder_may_give_one_object_again() -> None:
    _DECODED.numbers.clear()
    schema = schema_of(Only)
    decoded = each(decode_into_one).decode(schema, [b"\x01", b"\x02"])
    columns, _ = fitting(schema, decoded.messages or [])
    assert list(columns.messages()) == [Only([1]), Only([1, 2])]


@pytest.mark.parametrize("case", KINDS.values(), ids=KINDS)
def test_a_copy_of_a_value_is_equal_and_what_does_not_fit_is_refused_all_the_same(case: KindCase) -> None:
    (_, one) = case.schema.fields
    copied = one.copier() or (lambda value: value)
    values = [value for value, _ in case.values]
    assert list(map(copied, values)) == values
    refused = [value for value, _ in case.unfit]
    for value in refused:
        _, reasons = fitting(case.schema, case.messages([copied(value)]))
        assert list(reasons) == [0], value


def test_what_cannot_change_is_not_copied() -> None:
    for message in (Fixed, Number, Point):
        schema = schema_of(message)
        copied = copier_of(record_class_of(message), schema.fields)
        assert (copied is None) == (message is Fixed)
    assert not schema_of(Number).changing
    assert schema_of(Everything).changing == set(range(1, 10))
