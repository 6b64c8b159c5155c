"""Aggregates of fields: what they can read, and which fields of a result can hold that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import make_dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, TypedDict

import pytest

import bettong
from bettong import Application, ApplicationError
from bettong.schema.schema import schema_of
from bettong.testing import run, watermark
from tests.samples.kinds import KINDS

# By name: the annotation of a field, and values of it.
FIELDS: Mapping[str, tuple[Any, list[Any]]] = {
    "int": (int, [3]),
    "float": (float, [2.5]),
    "bool": (bool, [True]),
    "text": (str, ["a"]),
    "bytes": (bytes, [b"a"]),
    **{name: (kind.annotation, [value for value, _ in kind.values]) for name, kind in KINDS.items()},
}
TOTALS: Mapping[str, Any] = {"Sum": bettong.Sum, "Mean": bettong.Mean, "First": bettong.First}


def results(read: Any, value: Any, held: Any, aggregate: str = "First", of: Any = "value") -> list[Any]:
    """The results, where an aggregate reads a value of a field annotated `read` for one annotated `held`."""
    message = make_dataclass("Message", [("key", str), ("value", read)])
    result = make_dataclass("Result", [("total", held)])
    app = Application("meters")
    source: bettong.Stream[Any] = app.source("in", schema=message, key="key")
    aggregation: Any = bettong.aggregate(result, total=TOTALS[aggregate](of))
    source.window(bettong.tumbling(timedelta(1)), aggregation, name="days").sink("out")
    given = [("in", message("a", value)), watermark(datetime(2030, 1, 1, tzinfo=UTC))]
    return list(run(app, given).outputs["out"])


@pytest.mark.parametrize("read", FIELDS)
def test_no_field_is_refused_that_holds_what_is_read(read: str) -> None:
    annotation, values = FIELDS[read]
    refused = []
    for held, (of_result, _) in FIELDS.items():
        if schema_of(make_dataclass("Result", [("total", of_result)])).fields[0].nullable:
            continue
        try:
            results(annotation, values[0], of_result)
        except ApplicationError:
            refused.append(held)
            # A function says nothing of its result, so the value gets as far as the field.
            assert results(annotation, values[0], of_result, of=lambda message: message.value) == [], held
    assert refused or read == "json" or read.endswith("enum")


@pytest.mark.parametrize(
    ("aggregate", "read", "held", "complaint"),
    [
        ("First", "float", int, "First('value'): Message.value is float, and the result's field is int"),
        ("First", "text", int, "Message.value is text, and the result's field is int, which cannot hold it"),
        ("First", "text", bytes, "annotate both alike, or give a function that converts"),
        ("First", "datetime", int, "Message.value is datetime, and the result's field is int"),
        ("First", "datetime", int | None, "Message.value is datetime, and the result's field is int"),
        ("Sum", "float", int, "Sum('value'): Message.value is float, and the result's field is int"),
        ("Sum", "text", str, "Sum('value'): value is text, expected int, float, bool, decimal, "),
        (
            "Sum",
            "datetime",
            datetime,
            "Sum('value'): value is datetime, expected int, float, bool, decimal, ",
        ),
        (
            "Mean",
            "timedelta",
            float,
            "Mean('value'): value is timedelta, expected int, float, bool, decimal, ",
        ),
        ("Sum", "bool", bool, "Sum('value'): Message.value is bool, and the result's field is bool"),
        ("Mean", "text", float, "Mean('value'): value is text, expected int, float"),
    ],
)
def test_a_field_that_cannot_hold_what_is_read_is_refused_by_name(
    aggregate: str, read: str, held: Any, complaint: str
) -> None:
    annotation, values = FIELDS[read]
    with pytest.raises(ApplicationError) as refused:
        results(annotation, values[0], held, aggregate)
    assert "window 'days': total" in str(refused.value)
    assert complaint in str(refused.value)


class Named(TypedDict):
    name: str


class Label(bytes, Enum):
    A = b"a"


@pytest.mark.parametrize(
    ("read", "value", "held"),
    [
        (Named, Named(name="a"), dict[str, str]),
        (dict[str, str], {"name": "a"}, Named),
        (Label, Label.A, bytes),
    ],
    ids=["object", "dict", "enum"],
)
def test_a_value_is_taken_by_a_field_of_another_kind_that_holds_it(read: Any, value: Any, held: Any) -> None:
    (found,) = results(read, value, held)
    assert found.total == value


@pytest.mark.parametrize("of", ["value", len, 3])
def test_a_count_of_values_is_refused_with_what_counts_them(of: Any) -> None:
    with pytest.raises(ApplicationError, match=r"Count\(.*\): it counts messages.*where=.*Distinct\("):
        bettong.Count(of)


@pytest.mark.parametrize("name", ["int", "float", "decimal", "timedelta"])
def test_a_sum_of_no_value_is_nothing_of_the_kind_of_its_field(name: str) -> None:
    annotation, (value, *_) = FIELDS[name]
    message = make_dataclass("Message", [("key", str), ("value", annotation), ("counts", bool)])
    result = make_dataclass("Result", [("total", annotation)])
    app = Application("meters")
    source: bettong.Stream[Any] = app.source("in", schema=message, key="key")
    aggregation: Any = bettong.aggregate(result, total=bettong.Sum("value", where="counts"))
    source.window(bettong.tumbling(timedelta(1)), aggregation, name="days").sink("out")
    given = [("in", message("a", value, counts=False)), watermark(datetime(2030, 1, 1, tzinfo=UTC))]
    ran = run(app, given)
    assert (list(ran.outputs["out"]), ran.dead_letters) == ([result(value - value)], [])
