"""Messages as JSON text."""

from __future__ import annotations

import base64
import json
import math
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong import Width
from bettong.errors import SchemaError
from bettong.frames.columns import Columns
from bettong.frames.text import float_text, json_line, message_of, to_json
from bettong.schema.json_values import float_of, text_of
from bettong.schema.schema import schema_of


@dataclass
class Reading:
    name: str
    code: Annotated[str, Width(4)]
    count: int
    value: float
    good: bool
    raw: bytes


SCHEMA = schema_of(Reading)


def turned_back(text: str) -> bytes:
    return base64.b64decode(text.removeprefix("base64:")) if text.startswith("base64:") else text.encode()


@given(st.binary())
def test_bytes_can_be_turned_back(data: bytes) -> None:
    assert turned_back(text_of(data)) == data


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_printable_text_stays_as_it_is(text: str) -> None:
    shown = text_of(text.encode())
    assert shown == text or not text.isprintable() or text.startswith("base64:")
    assert turned_back(shown) == text.encode()


def test_text_that_looks_like_base64_is_not_mistaken_for_it() -> None:
    assert text_of(b"base64:AAAA") != "base64:AAAA"
    assert turned_back(text_of(b"base64:AAAA")) == b"base64:AAAA"


@given(
    st.builds(
        Reading,
        name=st.text(st.characters(exclude_categories=["Cs"])),
        code=st.text("abcä", max_size=2),
        count=st.integers(-(2**63), 2**63 - 1),
        value=st.floats(allow_nan=False),
        good=st.booleans(),
        raw=st.binary(),
    )
)
def test_a_line_keeps_every_digit_and_reads_back(reading: Reading) -> None:
    message = Columns.of_messages(SCHEMA, [reading]).messages()[0]
    line = json_line(SCHEMA, message)
    assert b"\n" not in line
    found = json.loads(line)
    assert list(found) == ["name", "code", "count", "value", "good", "raw"]
    assert (
        Reading(**(found | {"raw": turned_back(found["raw"]), "value": float_of(found["value"])})) == reading
    )


def strictly(text: str | bytes) -> Any:
    """Reads JSON as its standard says: Python's reader would also take three words for numbers."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.mark.parametrize(
    ("value", "text"), [(math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity"), (1e300, 1e300)]
)
def test_numbers_that_json_does_not_know_are_texts(value: float, text: object) -> None:
    line = json_line(SCHEMA, Reading("a", "b", 1, value, good=True, raw=b""))
    assert strictly(line)["value"] == text
    assert repr(message_of(SCHEMA, line).value) == repr(value)
    assert strictly(float_text(value)) == text
    assert repr(float_of(text)) == repr(value)
    state = {"nested": [1, {"deep": (value, "NaN")}], "also": value}
    assert strictly(to_json(state)) == {"nested": [1, {"deep": [text, "NaN"]}], "also": text}
    assert strictly(to_json({math.nan: value}))["NaN"] == text


@pytest.mark.parametrize("value", ["nan", "1", True, None, [1.0], 10**400])
def test_what_is_no_number_gives_no_float(value: object) -> None:
    with pytest.raises(SchemaError, match="number"):
        float_of(value)


def test_letters_of_all_languages_stay_readable() -> None:
    assert '"name":"日本ä"'.encode() in json_line(SCHEMA, Reading("日本ä", "b", 1, 1.0, good=True, raw=b""))


@given(
    st.builds(
        Reading,
        name=st.text(st.characters(exclude_categories=["Cs"])),
        code=st.text("abc", max_size=4),
        count=st.integers(-(2**63), 2**63 - 1),
        value=st.floats(allow_nan=False),
        good=st.booleans(),
        raw=st.binary(),
    )
)
def test_a_message_reads_back_as_it_was(reading: Reading) -> None:
    assert message_of(SCHEMA, json_line(SCHEMA, reading)) == reading


def test_not_a_number_reads_back_too() -> None:
    reading = Reading("a", "b", 1, math.nan, good=True, raw=b"")
    assert math.isnan(message_of(SCHEMA, json_line(SCHEMA, reading)).value)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"", "no JSON"),
        (b"\xff", "no JSON"),
        (b"[1]", "expected fields name, code, count, value, good, raw, found list"),
        (b'{"name":"a"}', "found name"),
        (
            b'{"name":"","code":"","count":1,"value":1,"good":true,"raw":7}',
            "field 'raw': expected text, got int",
        ),
        (b'{"name":"","code":"","count":1,"value":1,"good":true,"raw":"base64:!"}', "field 'raw'"),
    ],
)
def test_what_is_no_message_says_why(line: bytes, why: str) -> None:
    with pytest.raises(SchemaError, match=why):
        message_of(SCHEMA, line)
