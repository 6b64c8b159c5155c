"""Whole numbers that a field of floats would round: refused, whatever way they come."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any

import numpy as np
import pytest

import bettong
from bettong import Application, Width
from bettong.errors import SchemaError
from bettong.frames.columns import Columns
from bettong.schema.json_columns import ROWS_MIN, column_reader
from bettong.schema.json_objects import JsonObjects
from bettong.schema.schema import schema_of
from bettong.testing import END, run


@dataclass
class Number:
    wide: float = 0.0
    narrow: bettong.f32 = 0.0


NUMBER = schema_of(Number)
# 2**53 + 1 is the first whole number that no float of 64 bits is.
ROUNDED = [
    ("wide", 2**53 + 1, 64),
    ("wide", -(2**53) - 1, 64),
    ("narrow", 2**24 + 1, 32),
]


def test_whole_numbers_that_are_floats_are_taken() -> None:
    for number in (2**53, -(2**60), 2**53 + 2, True, 3):
        [message] = Columns.of_messages(NUMBER, [Number(wide=number)]).messages()
        assert message.wide == number


@pytest.mark.parametrize(("name", "number", "bits"), ROUNDED)
def test_others_are_refused_in_objects(name: str, number: int, bits: int) -> None:
    reason = f"field '{name}': {number} has more digits than a float of {bits} bits: make the field an int, or round"
    given: Any
    for given in (number, np.int64(number)):
        with pytest.raises(SchemaError, match=reason):
            Columns.of_messages(NUMBER, [Number(), Number(**{name: given})])
    assert Columns.of_messages(NUMBER, [Number(**{name: float(number)})]).length == 1


def row(wide: str) -> bytes:
    return b'{"wide": %s, "narrow": 1.5}' % wide.encode()


@pytest.mark.parametrize("rows", [1, 2 * ROWS_MIN])
def test_others_are_refused_in_json_row_by_row_or_many_at_once(rows: int) -> None:
    taken = ["9007199254740992", "1e300", "9007199254740993.0", "100000000000000000000"]
    # As JavaScript and Go write 2**60, which is ...6976.
    taken.append("1152921504606847000")
    for text in taken:
        decoded = JsonObjects().decode(NUMBER, [row(text)] * rows)
        assert decoded.refused == {}
        found = (
            decoded.columns[0].tolist() if decoded.columns else [each.wide for each in decoded.messages or []]
        )
        assert found == [float(json.loads(text))] * rows
    for text in ("9007199254740993", "123456789012345678901234567890"):
        decoded = JsonObjects().decode(NUMBER, [row("1.5")] * (rows - 1) + [row(text)])
        assert decoded.refused == {
            rows
            - 1: f"field 'wide': {text} has more digits than a float holds: make the field an int, or write `.0`"
            " behind the number to have it rounded"
        }


def test_large_floats_are_read_many_at_once() -> None:
    reader = column_reader(NUMBER)
    assert reader is not None
    assert reader.columns([row("6.02214076e23")] * ROWS_MIN) is not None


@dataclass
class Reading:
    shop: Annotated[str, Width(4)]
    number: int
    at: int = 5


@dataclass
class Hour:
    key: Annotated[str, Width(4)]
    start: int
    total: float


@bettong.vectorized
def floats_of(reading: Reading) -> Number:
    return Number(reading.number)


def test_columns_of_vectorized_functions_are_refused_row_by_row() -> None:
    app = Application("floats")
    app.source("readings", schema=Reading).map(floats_of).sink("numbers")
    outcome = run(app, [("readings", [Reading("a", 2**53 + 1), Reading("a", 2**60), Reading("a", 3)])])
    assert outcome.outputs == {"numbers": [Number(2.0**60), Number(3.0)]}
    assert ["9007199254740993 has more digits" in each.reason for each in outcome.dead_letters] == [True]


@pytest.mark.parametrize("compiled", [False, True])
def test_sums_of_whole_numbers_are_refused_at_both_speeds(*, compiled: bool) -> None:
    app = Application("sums")
    readings = app.source("readings", schema=Reading, key="shop", event_time="at")
    window = bettong.tumbling(timedelta(hours=1))
    readings.window(window, bettong.aggregate(Hour, total=bettong.Sum("number"))).sink("hours")
    messages = [Reading("a", 2**53), Reading("a", 1), Reading("b", 2**60), Reading("b", 2**60)]
    outcome = run(app, [("readings", messages)], until=END, compiled=compiled)
    assert outcome.outputs == {"hours": [Hour("b", 0, 2.0**61)]}
    assert ["9007199254740993 has more digits" in each.reason for each in outcome.dead_letters] == [True]
