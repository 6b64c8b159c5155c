"""Rows of JSON that Arrow reads at once have the values that they have one by one, whatever rows are beside them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bettong import Width, f32, i16, u64
from bettong.schema.json_columns import ROWS_MIN, column_reader
from bettong.schema.json_objects import JsonObjects, _decode_rows, parts_read
from bettong.schema.schema import schema_of
from bettong.schema.values import Column
from tests.samples.json_rows import rows_of


@dataclass
class Reading:
    """One field of each plain kind, of fixed widths and not."""

    number: int
    small: i16
    large: u64
    value: float
    narrow: f32
    right: bool
    text: str
    short: Annotated[str, Width(4)]
    data: bytes
    code: Annotated[bytes, Width(4)]
    step: int = 7


SCHEMA = schema_of(Reading)
WHOLE: dict[str, Any] = {
    "number": -5,
    "small": 3,
    "large": 2**64 - 1,
    "value": 1.5,
    "narrow": 0.1,
    "right": True,
    "text": "tëxt",
    "short": "abc",
    "data": "date",
    "code": "c",
    "step": 8,
}
ROWS = [json.dumps(WHOLE | {"number": number}, ensure_ascii=False).encode() for number in range(ROWS_MIN)]
MORE = '{"deep": ' + "[" * 2000 + "]" * 2000 + ","
# Beside those that a change of one value gives: what ends early, spans rows, is read twice, or by one reader alone.
ODD = [
    b"",
    b" ",
    b"{}",
    b"null",
    ROWS[0] + ROWS[1],
    ROWS[0] + b"\n" + ROWS[1],
    b" " + ROWS[0],
    ROWS[0] + b"\n",
    ROWS[0].replace(b", ", b",\n"),
    ROWS[0].replace(b"{", b'{"more": {"a": [1, {}], "b": "}"}, '),
    ROWS[0].replace(b"{", b'{"more": {"a": [1, {}'),
    ROWS[0].replace(b"{", b'{"more": "}'),
    b'{"more": {"a": 1}',
    b'{"more": [{"a": 1}',
    b'{"b": 2}]}',
    ROWS[0].replace(b'"text"', b'"number": 1, "text"'),
    ROWS[0].replace(b'"text"', b'"\\u0074ext"'),
    ROWS[0].replace(b"{", b'{"more": Inf, '),
    ROWS[0].replace(b"{", b'{"more": [-Inf ], '),
    ROWS[0].replace(b"{", b'{"more": Infinity, '),
    *(
        ROWS[0].replace(b"{", b'{"more": %s, ' % token)
        for token in (b"nan", b"-NaN", b"[-NaN]", b"NaN.5", b"-NaNe1", b"Infinity.5", b"Infe1", b"-Infinity")
    ),
    ROWS[0].replace(b"{", b'{"more": 1' + b"0" * 5000 + b", "),
    ROWS[0].replace(b"{", MORE.encode()),
    ROWS[0].replace(b"{", b'{"more": "\xff", '),
    ROWS[0].replace(b"{", b'{"more": "\\ud800", '),
    ROWS[0].replace(b"{", b'{"more": 01, '),
    ROWS[0].replace(b"{", b'{"more": "\x01", '),
    ROWS[0].replace(b"}", b', "more": 1,}'),
    ROWS[0].replace(b"{", b"{\x00"),
    ROWS[0] + b"\x00}",
    b"{// no comment\n" + ROWS[0][1:],
    ROWS[0].decode().encode("utf-16"),
    b"\xef\xbb\xbf" + ROWS[0],
]
TOKENS = [
    *("null", "true", "1", "0", "-0", "-0.0", "0.0", "1.0", "1.5", "1e2", "1e999", "-1e-999", "0.1", "16777217"),
    *("32768", "-32769", "9223372036854775807", "9223372036854775808", "18446744073709551616", "1" * 400),
    *("1e300", "-1e39", "NaN", "-NaN", "Infinity", "-Infinity", "Inf", "nan"),
    *("+1", ".5", "5.", "01", "0x1", "1_000", "{}", "[1]", "[", '"'),
    *('"1"', '"NaN"', '"Infinity"', '""', '"abcde"', '"äöü"', '"\\ud83d\\ude00"', '"\\ud800"', '"\\udc00"'),
    *('"base64:AAE="', '"base64:?"', '"a\\/b"', '"a\\qb"', '"a\nb"', '"\x7f"', '"Inf, "', '"\\u0000"'),
    *('"2026-11-27"', "1.7976931348623159e308"),
]  # fmt: skip


def test_rows_of_plain_fields_are_read_at_once() -> None:
    reader = column_reader(SCHEMA)
    assert reader is not None
    assert reader.columns(ROWS) is not None
    decoded = JsonObjects().decode(SCHEMA, ROWS)
    assert decoded.messages is None
    assert rows_of(SCHEMA, decoded) == rows_of(SCHEMA, _decode_rows(SCHEMA, ROWS))


def test_an_odd_row_has_a_few_others_beside_it_read_one_by_one_and_no_more() -> None:
    rows = 8 * ROWS
    rows[300] = b"{"
    reader = column_reader(SCHEMA)
    assert reader is not None
    found = [*parts_read(rows, reader.columns)]
    assert [each for part, _ in found for each in part] == [*range(len(rows))]
    one_by_one = [each for part, columns in found if columns is None for each in part]
    assert 300 in one_by_one
    assert len(one_by_one) <= ROWS_MIN
    decoded = JsonObjects().decode(SCHEMA, rows)
    assert list(decoded.refused) == [300]
    assert rows_of(SCHEMA, decoded) == rows_of(SCHEMA, _decode_rows(SCHEMA, rows))


@pytest.mark.parametrize(("odd", "in_vain_most"), [(0, 0), (1, 2), (8, 4), (1000, 4), (8000, 4)])
def test_rows_are_read_in_vain_a_few_times_at_most(odd: int, in_vain_most: int) -> None:
    rows = [b"{}"] * 8000
    for number in range(odd):
        rows[number * (8000 // odd)] = b"{"
    in_vain: list[int] = []

    def read(part: Sequence[bytes]) -> list[Column] | None:
        if b"{" not in part:
            return []
        in_vain.append(len(part))
        return None

    found = [*parts_read(rows, read)]
    assert [each for part, _ in found for each in part] == [*range(len(rows))]
    assert all(b"{" not in rows[part.start : part.stop] for part, columns in found if columns is not None)
    assert sum(in_vain) <= in_vain_most * len(rows)


@pytest.mark.parametrize("row", ODD, ids=range(len(ODD)))
@pytest.mark.parametrize("copies", [1, 2, ROWS_MIN])
def test_an_odd_row_is_read_as_if_it_were_alone(row: bytes, copies: int) -> None:
    rows = [*ROWS, *copies * [row]]
    assert rows_of(SCHEMA, JsonObjects().decode(SCHEMA, rows)) == rows_of(SCHEMA, _decode_rows(SCHEMA, rows))


@pytest.mark.parametrize("field", WHOLE)
def test_a_value_is_read_as_if_it_were_alone(field: str) -> None:
    text = json.dumps(WHOLE | {field: "?"})
    for token in TOKENS:
        rows = [*ROWS, text.replace('"?"', token).encode("utf-8", "surrogatepass")]
        expected = rows_of(SCHEMA, _decode_rows(SCHEMA, rows))
        assert rows_of(SCHEMA, JsonObjects().decode(SCHEMA, rows)) == expected, token


@given(
    st.lists(
        st.tuples(
            st.integers(0, ROWS_MIN - 1),
            st.sampled_from(ODD)
            | st.builds(
                lambda changed, ascii_, spaced: json.dumps(
                    WHOLE | changed, ensure_ascii=ascii_, separators=None if spaced else (",", ":")
                ).encode("utf-8", "surrogatepass"),
                st.dictionaries(
                    st.sampled_from([*WHOLE, "more"]),
                    st.none()
                    | st.booleans()
                    | st.integers()
                    | st.floats()
                    | st.text()
                    | st.lists(st.integers()),
                    max_size=3,
                ),
                st.booleans(),
                st.booleans(),
            ),
        ),
        max_size=5,
    )
)
# As many objects as rows, of which one has two and two are one.
@example([(3, ROWS[0][:-1] + b', "more":'), (4, b'{"a": 1}}'), (9, ROWS[0] + ROWS[1])])
@example([(3, ROWS[0][:-1] + b', "more": {"a": 1}'), (4, b', "b": {}}'), (9, ROWS[0] + ROWS[1])])
@example([(3, ROWS[0] + b"\n" + ROWS[1]), (9, b""), (10, ROWS[0] + b"\n" + ROWS[1])])
def test_any_rows_are_read_as_if_each_were_alone(odd: list[tuple[int, bytes]]) -> None:
    rows = list(ROWS)
    for index, row in odd:
        rows[index] = row
    assert rows_of(SCHEMA, JsonObjects().decode(SCHEMA, rows)) == rows_of(SCHEMA, _decode_rows(SCHEMA, rows))


@dataclass
class Noted:
    """A field that may be None."""

    note: str | None


def test_fields_that_are_not_plain_are_read_one_by_one() -> None:
    assert column_reader(schema_of(Noted)) is None
    decoded = JsonObjects().decode(schema_of(Noted), [b'{"note": null}'] * ROWS_MIN)
    assert decoded.messages == ROWS_MIN * [Noted(None)]
