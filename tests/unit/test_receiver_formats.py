"""Frames of a sink are read as the messages that it delivers."""

import json
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bettong
from bettong.errors import FrameError
from bettong.frames.columns import Columns
from bettong.frames.frame import decode
from bettong.frames.text import json_line
from bettong.schema.schema import schema_of
from bettong_receiver.formats import SinkFormat, describe_dead_letter, formats
from bettong_receiver.json_lines import JsonLines
from tests.samples.result_frames import Note, columns, dead_letter, planned, rows

ORIGIN = "notes/notes-in/3"
NOTES = [Note("a", 1, 0.1), Note("b", -(2**63), 1e300), Note("é\n", 3, float("nan"))]


@pytest.fixture
def sinks() -> dict[str, SinkFormat]:
    return formats(planned())


def test_every_sink_has_a_format_and_dead_letters_come_last(sinks: dict[str, SinkFormat]) -> None:
    assert list(sinks) == ["notes", "raw", "dead-letters"]
    assert [each.topic for each in sinks.values()] == ["app.sink.notes", "app.sink.raw", "app.dead-letters"]
    assert [each.extension for each in sinks.values()] == ["jsonl", "bin", "jsonl"]


def test_messages_of_an_encoder_are_delivered_as_they_are(sinks: dict[str, SinkFormat]) -> None:
    frame = decode(rows([b"x\n", b"", b"\xff"], origin="raw/notes-in/3", sequence=1, previous=0))
    messages = sinks["raw"].messages(frame)
    assert messages == [b"x\n", b"", b"\xff"]
    assert sinks["raw"].content(messages) == b"x\n\xff"


def test_columns_are_delivered_as_json_that_keeps_every_digit_and_the_order_of_fields(
    sinks: dict[str, SinkFormat],
) -> None:
    messages = sinks["notes"].messages(decode(columns(NOTES, origin=ORIGIN, sequence=1, previous=0)))
    assert messages[0] == b'{"key":"a","number":1,"price":0.1}'
    assert json.loads(messages[1]) == {"key": "b", "number": -(2**63), "price": 1e300}
    assert messages[2] == '{"key":"é\\n","number":3,"price":"NaN"}'.encode()
    assert sinks["notes"].content(messages) == messages[0] + b"\n" + messages[1] + b"\n" + messages[2] + b"\n"
    assert sinks["notes"].content([]) == b""


def test_dead_letters_are_json_with_all_their_fields(sinks: dict[str, SinkFormat]) -> None:
    dead_letters = [dead_letter(b"readable"), dead_letter(b"\xff\x00")]
    frame = decode(rows(dead_letters, origin="dead-letters/check/3", sequence=1, previous=0))
    messages = sinks["dead-letters"].messages(frame)
    assert list(json.loads(messages[0]).items()) == [
        ("computation", "check"),
        ("reason", "ValueError: no"),
        ("origin", "orders/feed"),
        ("sequence", 7),
        ("index", 2),
        ("message", "readable"),
        ("traceback", []),
    ]
    assert json.loads(messages[1])["message"] == "base64:/wA="


def test_a_dead_letter_is_described_in_one_line(sinks: dict[str, SinkFormat]) -> None:
    frame = decode(rows([dead_letter(b"x")], origin="dead-letters/check/3", sequence=1, previous=0))
    (message,) = sinks["dead-letters"].messages(frame)
    assert describe_dead_letter(message) == (
        "check: ValueError: no (origin orders/feed, sequence 7, index 2)"
    )


@pytest.mark.parametrize(
    ("sink", "value", "fault"),
    [
        ("notes", rows([b"x"], origin=ORIGIN, sequence=1, previous=0), "no encoder"),
        ("raw", columns(NOTES, origin="raw/notes-in/3", sequence=1, previous=0), "has an encoder"),
        ("dead-letters", columns(NOTES, origin=ORIGIN, sequence=1, previous=0), "not dead letters"),
        ("dead-letters", rows([b"\xff"], origin=ORIGIN, sequence=1, previous=0), "no dead letter"),
    ],
)
def test_a_body_that_is_not_the_sinks_is_refused(
    sinks: dict[str, SinkFormat], sink: str, value: bytes, fault: str
) -> None:
    with pytest.raises(FrameError, match=fault):
        sinks[sink].messages(decode(value))


def test_a_schema_that_is_not_the_sinks_is_refused_by_its_fingerprint(sinks: dict[str, SinkFormat]) -> None:
    frame = decode(columns(NOTES, origin=ORIGIN, sequence=1, previous=0))
    object.__setattr__(frame, "schema", 0xBAD)
    with pytest.raises(FrameError, match="schema 0000000000000bad is not one of the sink's"):
        sinks["notes"].messages(frame)


@dataclass(frozen=True)
class Everything:
    """A record with a field of each kind."""

    integer: bettong.i64
    small: bettong.u8
    real: bettong.f64
    single: bettong.f32
    flag: bool
    text: str
    short: Annotated[str, bettong.Width(8)]
    data: bytes
    fixed: Annotated[bytes, bettong.Width(4)]


everything = st.builds(
    Everything,
    integer=st.integers(-(2**63), 2**63 - 1),
    small=st.integers(0, 255),
    real=st.floats(),
    single=st.floats(width=32),
    flag=st.booleans(),
    text=st.text(st.characters(exclude_categories=["Cs"])),
    short=st.text(st.characters(min_codepoint=1, max_codepoint=127), max_size=8),
    data=st.binary(max_size=12),
    fixed=st.binary(min_size=4, max_size=4),
)


@given(st.lists(everything, max_size=6))
def test_json_of_columns_is_that_of_each_message(messages: list[Everything]) -> None:
    columns_ = Columns.of_messages(schema_of(Everything), messages)
    lines = JsonLines(columns_)
    assert list(lines) == [json_line(columns_.schema, message) for message in columns_.messages()]
    assert len(lines) == len(messages)
    assert lines[1:] == list(lines)[1:]


class Unread:
    """Columns whose values must not be read."""

    length = 3

    def values(self, index: int) -> list[object]:
        raise AssertionError(f"field {index} was read")


def test_json_lines_are_encoded_only_when_they_are_read() -> None:
    columns_: Any = Unread()
    assert len(JsonLines(columns_)) == 3
