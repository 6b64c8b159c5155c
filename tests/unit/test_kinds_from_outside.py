"""Frames with kinds of fields that have a form: damaged and forged ones are refused by both readers."""

from __future__ import annotations

import random
import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from bettong.errors import FrameError
from bettong.frames.columns import Columns
from bettong.frames.text import json_line
from bettong.schema.form import UnfitValueError
from bettong.schema.forms.decimals import DecimalForm, Precision
from bettong.schema.schema import Schema
from tests.samples.kind_cases import KindCase
from tests.samples.kinds import KINDS

READERS = [Columns.of_payload, Columns.of_external_payload]
each_kind = pytest.mark.parametrize("case", KINDS.values(), ids=KINDS)


def given_values(case: KindCase) -> list[Any]:
    """All that the table names."""
    return [value for value, _ in case.values]


def read_back(schema: Schema, payload: bytes) -> list[Any]:
    """The values that both readers find in a payload."""
    found = [read(schema, payload).values(1) for read in READERS]
    assert found[0] == found[1]
    return found[0]


@each_kind
def test_damaged_bytes_are_refused_or_can_be_read_to_the_end(case: KindCase, seed: int) -> None:
    source = random.Random(seed)
    payload = Columns.of_messages(case.schema, case.messages(given_values(case) * 2)).payload()
    for _ in range(300):
        damaged = bytearray(payload)
        for _ in range(source.randint(1, 4)):
            damaged[source.randrange(len(damaged))] = source.choice(
                (0, 1, 127, 128, 255, source.randrange(256))
            )
        for read in READERS:
            try:
                columns = read(case.schema, bytes(damaged))
            except FrameError:
                continue
            messages = columns.messages()
            assert len(messages) == columns.length, f"seed {seed}"
            for message in messages:
                json_line(case.schema, message)
            assert read(case.schema, columns.payload()).length == columns.length, f"seed {seed}"


def forged(case: KindCase, column: pa.Array) -> bytes:
    """A frame whose values are those of an array of the right layout."""
    keys = pa.array([f"k{index}" for index in range(len(column))])
    body: bytes = pa.RecordBatch.from_arrays([keys, column], names=["key", "value"]).serialize().to_pybytes()
    return body


FORGERIES = [
    ("datetime", pa.array([0, 2**62]), "beyond the datetimes of Python"),
    ("datetime", pa.array([-(2**63), 0]), "field 'value' of message 0: .* beyond"),
    ("datetime", pa.array([0, None]), "field 'value' has nulls"),
    ("date", pa.array([2**31 - 1], pa.int32()), "beyond the dates of Python"),
    ("timedelta", pa.array([-(2**63)]), "beyond the timedeltas of Python"),
    ("decimal", pa.array([b"\xff" * 15 + b"\x7f"], pa.binary(16)), "[Dd]ecimal"),
    (
        "text_enum",
        pa.array(["buy", "BUY"]),
        "field 'value' of message 1: 'BUY' is no Side; expected buy, sell",
    ),
    ("json", pa.array(["[1]", "{"]), "field 'value' of message 1: '{' is no JSON"),
    ("json", pa.array(["NaN"]), "JSON has no number NaN"),
    ("json", pa.array(["1e999"]), "JSON has no number inf"),
    ("json", pa.array(['"\\ud800"']), "half of a surrogate pair"),
    ("json", pa.array(["[" * 100_000]), "levels"),
    ("json", pa.array(["9" * 10_000]), "is no JSON"),
    (
        "optional_bool",
        pa.array([0, None, 2], pa.uint8()),
        "field 'value' of message 2: has bytes other than 0 and 1",
    ),
    ("optional_datetime", pa.array([None, 2**62]), "field 'value' of message 1: .* beyond"),
    (
        "optional_width",
        pa.array([None, b"ab\xff\0"], pa.binary(4)),
        "field 'value' of message 1: is no UTF-8",
    ),
    ("floats", pa.array([[1.0, None]]), "has nulls"),
    (
        "lists_of_lists",
        pa.array([[[1, 2**31 - 1]]], pa.list_(pa.list_(pa.int32()))),
        r"\[0\]\[1\]' of message 0",
    ),
    (
        "dict",
        pa.array([[("a", 1), ("a", 2)]], pa.map_(pa.string(), pa.decimal128(9, 2))),
        "key 'a' is there twice",
    ),
    ("dict", pa.array([[("a", None)]], pa.map_(pa.string(), pa.decimal128(9, 2))), "has nulls"),
]


@pytest.mark.parametrize(("name", "column", "reason"), FORGERIES)
def test_a_frame_that_lies_is_refused_by_both_readers(name: str, column: pa.Array, reason: str) -> None:
    payload = forged(KINDS[name], column)
    for read in READERS:
        with pytest.raises(FrameError, match=rf"columns of Sample: .*{reason}"):
            read(KINDS[name].schema, payload)


@pytest.mark.parametrize("offsets", [(0, 13, 7), (0, 7, 2**30), (-1, 7, 13), (7, 7, 2**31 - 1), (5, 3, 13)])
def test_offsets_of_lists_and_dicts_that_lie_are_refused(offsets: tuple[int, int, int]) -> None:
    price = Decimal(1)
    cases: dict[str, list[Any]] = {
        "floats": [[1.5] * 7, [2.5] * 6],
        "dict": [{f"a{key}": price for key in range(7)}, {f"b{key}": price for key in range(6)}],
    }
    for name, values in cases.items():
        schema = KINDS[name].schema
        payload = Columns.of_messages(schema, KINDS[name].messages(values)).payload()
        true = struct.pack("<3i", 0, 7, 13)
        assert payload.count(true) == 1
        for read in READERS:
            with pytest.raises(FrameError, match=r"columns of Sample: .*([Oo]ffset|[Ll]ength)"):
                read(schema, payload.replace(true, struct.pack("<3i", *offsets)))


def test_a_struct_within_a_null_may_be_anything_and_within_a_value_not() -> None:
    case = KINDS["optional_objects"]
    schema = case.schema
    good = Columns.of_messages(schema, case.messages(given_values(case))).payload()
    assert read_back(schema, good) == given_values(case)
    line = schema.fields[1].arrow.value_type
    lines = pa.StructArray.from_arrays(
        [pa.nulls(1, each.type) for each in line], fields=[pa.field(each.name, each.type) for each in line]
    )
    payload = forged(case, pa.ListArray.from_arrays([0, 1], lines))
    for read in READERS:
        with pytest.raises(FrameError, match=r"field 'value\[0\]\.item' of message 0: None is no text"):
            read(schema, payload)


def test_the_lowest_number_of_128_bits_is_no_decimal() -> None:
    """Arrow's own check lets it through."""
    lowest = pa.py_buffer((-(2**127)).to_bytes(16, "little", signed=True))
    forged = pa.Array.from_buffers(pa.decimal128(18, 4), 1, [None, lowest])
    forged.validate(full=True)
    with pytest.raises(UnfitValueError, match="more digits"):
        DecimalForm(Precision(18, 4)).check(forged)
