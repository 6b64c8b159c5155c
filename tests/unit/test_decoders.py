"""Decoders: bytes to messages, and bytes that are none, refused one by one."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bettong
from bettong import ApplicationError, Width, each, packed, tagged
from bettong.frames.columns import Columns
from bettong.schema.decoded import Decoded
from bettong.schema.schema import Schema, schema_of


@dataclass
class Everything:
    """A field for each code of a layout."""

    b1: bettong.u8
    b2: bettong.u16
    b4: bettong.u32
    b8: bettong.u64
    s1: bettong.i8
    s2: bettong.i16
    s4: bettong.i32
    s8: bettong.i64
    f4: bettong.f32
    f8: bettong.f64
    flag: bool
    text: Annotated[str, Width(5)]
    blob: Annotated[bytes, Width(3)]


SCHEMA = schema_of(Everything)
CODES = "BHIQbhiqfd?5s3s"
VALUES = st.tuples(
    *(st.integers(0, 2 ** (8 * size) - 1) for size in (1, 2, 4, 8)),
    *(st.integers(-(2 ** (8 * size - 1)), 2 ** (8 * size - 1) - 1) for size in (1, 2, 4, 8)),
    st.floats(width=32, allow_nan=False),
    st.floats(allow_nan=False),
    st.booleans(),
    st.sampled_from([b"IBM", b"  GE", "äß".encode(), b"", b"12345"]),
    st.binary(min_size=3, max_size=3),
)


def messages(schema: Schema, decoded: Decoded) -> list[Any]:
    assert decoded.columns is not None
    assert len({len(column) for column in decoded.columns}) == 1
    return Columns(schema, len(decoded.columns[0]), tuple(decoded.columns)).messages()


@settings(max_examples=60)
@given(st.lists(VALUES, min_size=1, max_size=6), st.sampled_from("<>!"), st.binary(max_size=3))
def test_a_layout_reads_what_struct_wrote(rows: list[tuple[Any, ...]], order: str, prefix: bytes) -> None:
    layout = struct.Struct(order + CODES)
    decoded = packed(order + CODES, prefix=prefix).decode(
        SCHEMA, [prefix + layout.pack(*row) for row in rows]
    )
    assert decoded.refused == {}
    expected = [Everything(*(*row[:-2], row[-2].decode(), row[-1])) for row in rows]
    assert messages(SCHEMA, decoded) == expected


@dataclass
class Pair:
    prefix: bettong.u16
    name: Annotated[str, Width(2)]


PAIR = schema_of(Pair)


def test_counts_and_left_out_bytes_are_understood() -> None:
    @dataclass
    class Three:
        a: bettong.u16
        b: bettong.u16
        c: bettong.u8

    decoder = packed(">2H 3x B")
    decoder.check("s", schema_of(Three))
    decoded = decoder.decode(schema_of(Three), [struct.pack(">2H3xB", 1, 2, 3)])
    assert messages(schema_of(Three), decoded) == [Three(1, 2, 3)]


def test_each_kind_of_junk_is_refused_and_its_neighbours_are_kept() -> None:
    good = [b"\x07" + struct.pack(">H2s", number, b"ok") for number in range(3)]
    rows = [
        good[0], b"", b"\x07", good[0] + b"x", b"\x08" + good[1][1:], good[1],
        b"\x07\0\0\xff\xfe", b"\x09" + b"\0\0\xff\xff", good[2],
    ]  # fmt: skip
    decoded = packed(">H2s", prefix=b"\x07").decode(PAIR, rows)
    assert messages(PAIR, decoded) == [Pair(number, "ok") for number in range(3)]
    assert decoded.refused == {
        1: "0 bytes, expected 5",
        2: "1 bytes, expected 5",
        3: "6 bytes, expected 5",
        4: "starts with 08, expected 07",
        6: "field 'name': b'\\xff\\xfe' is no UTF-8",
        7: "starts with 09, expected 07",
    }
    assert list(decoded.refused) == sorted(decoded.refused)


@pytest.mark.parametrize("rows", [[], [b"x"], [b"x", b"yy"], [b"\x08\0\0ab"] * 3])
def test_a_frame_of_junk_alone_gives_no_messages(rows: list[bytes]) -> None:
    decoded = packed(">H2s", prefix=b"\x07").decode(PAIR, rows)
    assert messages(PAIR, decoded) == []
    assert list(decoded.refused) == list(range(len(rows)))


@given(st.lists(st.binary(max_size=8), max_size=10))
def test_any_rows_are_messages_or_refused(rows: list[bytes]) -> None:
    decoded = packed(">H2s", prefix=b"\x07").decode(PAIR, rows)
    assert len(messages(PAIR, decoded)) + len(decoded.refused) == len(rows)


def test_any_byte_but_nul_is_true() -> None:
    @dataclass
    class Flag:
        flag: bool

    decoded = packed(">?").decode(schema_of(Flag), [b"\0", b"\1", b"\xff"])
    assert decoded.columns is not None
    assert decoded.columns[0].tolist() == [0, 1, 1]


def test_a_narrow_value_fills_a_wider_field() -> None:
    @dataclass
    class Wide:
        number: int
        value: float

    decoder = packed("<Bf")
    decoder.check("s", schema_of(Wide))
    assert messages(schema_of(Wide), decoder.decode(schema_of(Wide), [struct.pack("<Bf", 200, 0.5)])) == [
        Wide(200, 0.5)
    ]


@dataclass
class Loose:
    text: str


@dataclass
class Number:
    number: bettong.i16


@dataclass
class Real:
    value: bettong.f32


@pytest.mark.parametrize(
    ("layout", "schema", "text"),
    [
        ("H2s", PAIR, "layout 'H2s': start it with '>' (big-endian) or '<'"),
        ("@H2s", PAIR, "start it with '>'"),
        ("", PAIR, "start it with '>'"),
        (7, PAIR, "layout 7: start it with '>'"),
        (b">H2s", PAIR, "layout b'>H2s': start it with '>'"),
        (">Hz", PAIR, "layout '>Hz': bad char in struct format"),
        (">H\u0662s", PAIR, "layout '>H\u0662s': 'ascii' codec can't encode"),
        (">H", PAIR, "'>H' has 1 values, Pair has 2 fields"),
        (">H2sB", PAIR, "'>H2sB' has 3 values, Pair has 2 fields"),
        (">I2s", PAIR, "'I' cannot fill field 'prefix' (int, uint16)"),
        (">h2s", PAIR, "'h' cannot fill field 'prefix'"),
        (">H3s", PAIR, "'3s' cannot fill field 'name' (text, |S2)"),
        (">HB", PAIR, "'B' cannot fill field 'name'"),
        (">5s", schema_of(Loose), "'5s' cannot fill field 'text' (text, variable width)"),
        (">H", schema_of(Number), "'H' cannot fill field 'number' (int, int16)"),
        (">f", schema_of(Number), "'f' cannot fill field 'number'"),
        (">d", schema_of(Real), "'d' cannot fill field 'value' (float, float32)"),
        (">c", schema_of(Number), "'c' cannot fill field 'number'"),
    ],
)
def test_a_layout_that_cannot_give_the_schema_is_refused(layout: Any, schema: Schema, text: str) -> None:
    with pytest.raises(ApplicationError) as caught:
        packed(layout).check("orders", schema)
    assert "decoder of 'orders'" in str(caught.value)
    assert text in str(caught.value)


def test_the_layout_of_struct_and_ours_are_of_one_size() -> None:
    packed(">" + CODES).check("s", SCHEMA)
    row = bytes(struct.calcsize(">" + CODES))
    assert packed(">" + CODES).decode(SCHEMA, [row]).refused == {}


def read_pair(data: bytes) -> Pair:
    if data == b"wrong type":
        return data  # type: ignore[return-value]
    number, name = data.split(b":")
    return Pair(int(number), name.decode())


def test_a_function_reads_messages_and_raises_to_refuse_one() -> None:
    decoded = each(read_pair).decode(PAIR, [b"1:a", b"x:b", b"2", b"wrong type", b"3:\xff", b"4:d"])
    assert decoded.messages == [Pair(1, "a"), Pair(4, "d")]
    assert decoded.refused[1] == "ValueError: invalid literal for int() with base 10: b'x'"
    assert decoded.refused[2].startswith("ValueError: not enough values")
    assert decoded.refused[3] == "the decoder returned bytes, not Pair"
    assert decoded.refused[4].startswith("UnicodeDecodeError")


def test_floats_keep_their_bits() -> None:
    values = [0.0, -0.0, 1e-45, math.inf, -math.inf, 5e-324]

    @dataclass
    class Value:
        value: float

    decoded = packed(">d").decode(schema_of(Value), [struct.pack(">d", value) for value in values])
    assert decoded.columns is not None
    assert [struct.pack(">d", value) for value in decoded.columns[0].tolist()] == [
        struct.pack(">d", value) for value in values
    ]


@dataclass
class Tick:
    """A trade (tag T) or a quote (Q)."""

    kind: Annotated[str, Width(1)]
    symbol: Annotated[str, Width(4)]
    first: float
    second: float = 0.1
    venue: Annotated[str, Width(2)] = "NY"
    late: bool = True
    lot: bettong.u16 = 100
    ratio: bettong.f32 = 0.1
    note: Annotated[bytes, Width(2)] = b"n"


TICK = schema_of(Tick)
TRADE, QUOTE = ">1s4sd2s", ">1s4s3xdd"
TICKS = tagged(
    {
        b"T": packed(TRADE, fields=("kind", "symbol", "first", "venue")),
        b"Q": packed(QUOTE, fields=("kind", "symbol", "second", "first")),
    }
)


def read_tick(row: bytes) -> Tick:
    """What TICKS reads, a message at a time."""
    if row[:1] == b"T":
        kind, symbol, first, venue = struct.unpack(TRADE, row)
        return Tick(kind.decode(), symbol.rstrip(b"\0").decode(), first, venue=venue.rstrip(b"\0").decode())
    if row[:1] == b"Q":
        kind, symbol, second, first = struct.unpack(QUOTE, row)
        return Tick(kind.decode(), symbol.rstrip(b"\0").decode(), first, second)
    raise ValueError("neither")


TICK_ROWS = st.one_of(
    st.binary(max_size=24),
    st.sampled_from([b"", b"T", b"Q", b"T" * 15, b"Q" * 24, b"\xff" * 15, b"T\xff" + bytes(13)]),
    st.builds(
        lambda symbol, first, venue: struct.pack(TRADE, b"T", symbol, first, venue),
        st.binary(max_size=4),
        st.floats(allow_nan=False),
        st.sampled_from([b"LN", "ß".encode(), b"\xff", b""]),
    ),
    st.builds(
        lambda symbol, second, first: struct.pack(QUOTE, b"Q", symbol, second, first),
        st.sampled_from([b"IBM", b"GE", b"\xe9"]),
        st.floats(allow_nan=False),
        st.floats(allow_nan=False),
    ),
)


@settings(max_examples=200)
@given(st.lists(TICK_ROWS, max_size=12))
def test_several_layouts_read_what_a_function_does_message_by_message(rows: list[bytes]) -> None:
    """The same messages in order, defaults and all; the same rows refused: garbage, cut, too long, no UTF-8."""
    TICKS.check("ticks", TICK)
    quick, slow = TICKS.decode(TICK, rows), each(read_tick).decode(TICK, rows)
    found = Columns.of_messages(TICK, list(slow.messages or ()))
    assert messages(TICK, quick) == found.messages()
    assert quick.refused.keys() == slow.refused.keys()
    assert list(quick.refused) == sorted(quick.refused)


def test_what_is_refused_by_several_layouts_is_reported_with_its_reason() -> None:
    rows = [b"", b"X", b"T" * 15, b"Tx", b"T\xff" + bytes(13)]
    assert TICKS.decode(TICK, rows).refused == {
        0: "starts with nothing, expected one of 54, 51",
        1: "starts with 58, expected one of 54, 51",
        3: "2 bytes, expected 15",
        4: "field 'symbol': b'\\xff' is no UTF-8",
    }


PACKED: Any = packed
TAGGED: Any = tagged


@pytest.mark.parametrize(
    ("decoder", "text"),
    [
        (tagged({}), "tagged([]): give at least one tag, all of one length"),
        (tagged({b"": packed(">B")}), "give at least one tag"),
        (tagged({b"A": packed(">B"), b"BB": packed(">B")}), "all of one length"),
        (tagged({b"A": packed(">B")}), "'>B' has 1 values, Tick has 9 fields"),
        (TAGGED([packed(">B")]), "tagged([packed(layout='>B', prefix=b'', fields=())]): expected {b'tag': "),
        (TAGGED({"A": packed(">B")}), "tagged({'A': packed("),
        (TAGGED({b"A": 7}), "tagged({b'A': 7}): expected {b'tag': packed(...)}"),
        (
            tagged({b"A": packed(">1s4sd", prefix=b"B", fields=("kind", "symbol", "first"))}),
            "messages with tag b'A' never start with its layout's prefix b'B'",
        ),
        (PACKED(">d", prefix="B"), "prefix='B': expected bytes, b'...'"),
        (PACKED(">d", fields="first"), "fields='first': expected a tuple of names"),
        (packed(">d", fields=("price",)), "'price' is no field of Tick"),
        (packed(">dd", fields=("first", "first")), "'first' is there twice"),
        (packed(">d", fields=("first", "second")), "'>d' has 1 values, fields= has 2 fields"),
        (packed(">H", fields=("first",)), "'H' cannot fill field 'first'"),
        (packed(">1s4s", fields=("kind", "symbol")), "it does not read field 'first', which has no default"),
    ],
)
def test_layouts_that_cannot_give_the_schema_are_refused(decoder: packed | tagged, text: str) -> None:
    with pytest.raises(ApplicationError) as caught:
        decoder.check("ticks", TICK)
    assert "decoder of 'ticks'" in str(caught.value)
    assert text in str(caught.value)


def test_a_tag_may_be_longer_or_shorter_than_the_prefix_of_its_layout() -> None:
    of_first = {"fields": ("kind", "symbol", "first")}
    tagged({b"AB": PACKED(">1s4sd", prefix=b"A", **of_first)}).check("ticks", TICK)
    tagged({b"A": PACKED(">1s4sd", prefix=b"AB", **of_first)}).check("ticks", TICK)


def test_a_default_that_is_none_of_its_field_is_refused() -> None:
    @dataclass
    class Wrong:
        a: bettong.u8
        b: bettong.u8 = 256

    @dataclass
    class Wide:
        a: bettong.u8
        b: Annotated[str, Width(2)] = "abc"

    @dataclass
    class Mixed:
        a: bettong.u8
        b: Annotated[str, Width(2)] = b"a"  # type: ignore[assignment]

    @dataclass
    class Free:
        a: bettong.u8
        b: str = ""

    for message in (Wrong, Wide, Mixed):
        with pytest.raises(ApplicationError, match=r"the default of field 'b', .* does not fit it"):
            packed(">B", fields=("a",)).check("s", schema_of(message))
    with pytest.raises(ApplicationError, match="does not read field 'b', which has a variable width"):
        packed(">B", fields=("a",)).check("s", schema_of(Free))
