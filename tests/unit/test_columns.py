"""Columns: messages to bytes and back, and values that do not fit, refused one by one."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bettong
from bettong import Width
from bettong.errors import FrameError, SchemaError
from bettong.frames.columns import Columns
from bettong.frames.fitting import fitting
from bettong.schema.schema import schema_of


@dataclass
class Wide:
    """A field of every kind."""

    u8: bettong.u8
    u16: bettong.u16
    u32: bettong.u32
    u64: bettong.u64
    i8: bettong.i8
    i16: bettong.i16
    i32: bettong.i32
    i64: bettong.i64
    f32: bettong.f32
    f64: bettong.f64
    flag: bool
    text: str
    blob: bytes
    text8: Annotated[str, Width(8)]
    blob4: Annotated[bytes, Width(4)]


WIDE = schema_of(Wide)
RANGES = {
    "u8": (0, 2**8 - 1), "u16": (0, 2**16 - 1), "u32": (0, 2**32 - 1), "u64": (0, 2**64 - 1),
    "i8": (-(2**7), 2**7 - 1), "i16": (-(2**15), 2**15 - 1), "i32": (-(2**31), 2**31 - 1), "i64": (-(2**63), 2**63 - 1),
}  # fmt: skip
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
TEXT8 = TEXT.map(lambda text: text.encode()[:8].decode("utf-8", "ignore").rstrip("\0"))
MESSAGE = st.builds(
    Wide,
    **{name: st.integers(low, high) for name, (low, high) in RANGES.items()},
    f32=st.floats(width=32),
    f64=st.floats(),
    flag=st.booleans(),
    text=TEXT,
    blob=st.binary(max_size=10),
    text8=TEXT8,
    blob4=st.binary(min_size=4, max_size=4),
)
PLAIN = Wide(1, 2, 3, 4, -5, -6, -7, -8, 0.5, 0.25, bool(1), "ä", b"\xff", "ab", b"ab\0\0")


def plain(message: Wide) -> tuple[Any, ...]:
    """Comparable values: NaN equals NaN."""
    values = tuple(getattr(message, field.name) for field in WIDE.fields)
    return tuple("nan" if isinstance(value, float) and math.isnan(value) else value for value in values)


def same(found: list[Any], expected: list[Wide]) -> bool:
    return list(map(plain, found)) == list(map(plain, expected))


def changed(**values: Any) -> Wide:
    return Wide(**({field.name: getattr(PLAIN, field.name) for field in WIDE.fields} | values))


@settings(max_examples=40)
@given(st.lists(MESSAGE, max_size=5))
def test_messages_come_back_from_a_payload_as_they_went_in(messages: list[Wide]) -> None:
    payload = Columns.of_messages(WIDE, messages).payload()
    for read in (Columns.of_payload, Columns.of_external_payload):
        columns = read(WIDE, payload)
        assert columns.length == len(messages)
        assert same(columns.messages(), messages)
        assert columns.payload() == payload


@given(st.integers(1, 20), st.data())
def test_any_rows_can_be_taken_and_sliced(count: int, data: st.DataObject) -> None:
    messages = [changed(u16=index, text="x" * index, blob4=bytes([index] * 4)) for index in range(count)]
    columns = Columns.of_messages(WIDE, messages)
    indexes = data.draw(st.lists(st.integers(0, len(messages) - 1), max_size=20))
    start = data.draw(st.integers(0, len(messages)))
    stop = data.draw(st.integers(start, len(messages)))
    assert same(columns.take(np.array(indexes, np.int64)).messages(), [messages[index] for index in indexes])
    sliced = columns.slice(start, stop)
    assert same(sliced.messages(), messages[start:stop])
    assert same(Columns.of_payload(WIDE, sliced.payload()).messages(), messages[start:stop])
    shares = [Columns.of_external_payload(WIDE, each) for each in columns.payloads([0, start, stop])]
    assert same(shares[0].messages(), messages[:start])
    assert same(shares[1].messages(), messages[start:stop])


@pytest.mark.parametrize(("name", "low", "high"), [(name, *limits) for name, limits in RANGES.items()])
def test_integers_are_kept_to_their_limits_and_refused_beyond(name: str, low: int, high: int) -> None:
    good = [changed(**{name: low}), changed(**{name: high})]
    bad = [changed(**{name: low - 1}), changed(**{name: high + 1})]
    columns, refused = fitting(WIDE, [bad[0], good[0], bad[1], good[1]])
    assert same(columns.messages(), good)
    assert list(refused) == [0, 2]
    assert all(f"field {name!r}" in reason for reason in refused.values())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("u8", "1"), ("u8", 1.5), ("u8", None), ("u8", b"1"), ("i64", [1]), ("i64", 2**64),
        ("u8", 2.0), ("i64", math.nan), ("f64", "1.0"), ("f64", None), ("f64", b"1"), ("f64", 10**400),
        ("f32", 1e300), ("f32", -3.5e38),
        ("flag", 1), ("flag", "yes"), ("flag", None),
        ("text", 1), ("text", None), ("text", b"\xff"), ("text", "\ud800"),
        ("blob", 1), ("blob", None),
        ("text8", b"bytes"), ("text8", None), ("text8", 1), ("text8", "123456789"), ("text8", "äöüßä"),
        ("text8", "\ud800"),
        ("blob4", "text"), ("blob4", None), ("blob4", 4), ("blob4", b"12345"),
    ],
)  # fmt: skip
def test_a_value_of_another_type_is_refused_by_the_name_of_its_field(name: str, value: Any) -> None:
    bad = changed(**{name: value})
    with pytest.raises(SchemaError, match=f"field '{name}'"):
        Columns.of_messages(WIDE, [PLAIN, bad])
    columns, refused = fitting(WIDE, [PLAIN, bad, PLAIN])
    assert same(columns.messages(), [PLAIN, PLAIN])
    assert list(refused) == [1]
    assert f"field {name!r}" in refused[1]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("i64", np.array(5)), ("u8", np.array(5, np.uint8)), ("f64", np.array(0.5)), ("f32", np.array(0.5)),
        ("flag", np.array(True)), ("text", bytearray(b"a")), ("text", memoryview(bytearray(b"a"))),  # noqa: FBT003
        ("blob", bytearray(b"a")), ("blob4", bytearray(b"abcd")),
    ],
)  # fmt: skip
def test_a_value_that_can_change_later_is_refused(name: str, value: Any) -> None:
    columns, refused = fitting(WIDE, [PLAIN, changed(**{name: value})])
    assert columns.length == 1
    assert f"field {name!r}" in refused[1]


def test_numbers_of_numpy_fit() -> None:
    columns, refused = fitting(
        WIDE, [changed(i64=np.int64(-3), u8=np.uint8(255), f32=np.float64(0.5), flag=np.True_)]
    )
    assert not refused
    assert (columns.messages()[0].i64, columns.messages()[0].u8, columns.messages()[0].f32) == (-3, 255, 0.5)


@pytest.mark.parametrize("value", [math.inf, -math.inf, 3.4028235e38, 1e-300, 0.1])
def test_a_single_float_takes_infinities_and_is_rounded(value: float) -> None:
    columns, refused = fitting(WIDE, [changed(f32=value)])
    assert not refused
    assert columns.messages()[0].f32 == np.float32(value)


@pytest.mark.parametrize("thing", [None, 1, "text", {"u8": 1}, object()])
def test_what_is_no_message_at_all_is_refused_by_its_type(thing: object) -> None:
    columns, refused = fitting(WIDE, [PLAIN, thing])
    assert columns.length == 1
    assert refused == {1: f"{type(thing).__name__} is no Wide"}


@given(st.lists(st.booleans(), max_size=40))
def test_exactly_the_messages_that_do_not_fit_are_refused(fits: list[bool]) -> None:
    messages = [changed(u16=index if fit else -1) for index, fit in enumerate(fits)]
    columns, refused = fitting(WIDE, messages)
    assert [each.u16 for each in columns.messages()] == [index for index, fit in enumerate(fits) if fit]
    assert sorted(refused) == [index for index, fit in enumerate(fits) if not fit]


def test_one_message_that_does_not_fit_costs_few_passes_over_the_others() -> None:
    looks = 0

    class Counted(Wide):
        @property
        def u8(self) -> int:
            nonlocal looks
            looks += 1
            return 1

        @u8.setter
        def u8(self, value: int) -> None:
            del value

    messages = [Counted(**vars(changed(u16=1)) | {"u8": 1}) for _ in range(1024)]
    messages[700].u16 = -1
    _, refused = fitting(WIDE, messages)
    assert list(refused) == [700]
    assert looks < 8 * len(messages)


def test_bytes_of_a_fixed_width_are_padded_and_text_that_ends_as_padding_does_is_refused() -> None:
    columns = Columns.of_messages(WIDE, [changed(blob4=b"a", text8="a\0b")])
    message = columns.messages()[0]
    assert (message.blob4, message.text8) == (b"a\0\0\0", "a\0b")
    for text in ("a\0", "\0"):
        shown = re.escape(repr(text))
        reason = rf"field 'text8': {shown} ends in a zero byte, .*: strip it, or give the field no Width"
        with pytest.raises(SchemaError, match=reason):
            Columns.of_messages(WIDE, [changed(), changed(text8=text)])


def test_columns_of_no_messages_have_no_rows() -> None:
    columns = Columns.of_payload(WIDE, Columns.of_messages(WIDE, []).payload())
    assert (columns.length, columns.messages()) == (0, [])
    assert columns.take(np.array([], np.int64)).messages() == []


def test_fixed_columns_of_a_payload_are_views_of_its_bytes() -> None:
    columns = Columns.of_payload(WIDE, Columns.of_messages(WIDE, [PLAIN] * 100).payload())
    fixed = [column for column in columns.columns if isinstance(column, np.ndarray)]
    assert len(fixed) == 13
    assert not any(column.flags.owndata or column.flags.writeable for column in fixed)


@dataclass
class Text:
    text: Annotated[str, Width(4)]
    flag: bool


@given(st.lists(st.builds(Text, st.sampled_from(["", "ä", "abcd"]), st.booleans()), max_size=40), st.data())
def test_columns_of_fixed_width_are_written_as_arrow_writes_them(
    messages: list[Text], data: st.DataObject
) -> None:
    columns = Columns.of_messages(schema_of(Text), messages)
    start = data.draw(st.integers(0, len(messages)))
    parts = (columns.slice(0, start), columns.slice(start, len(messages)))
    expected = [part.batch().serialize().to_pybytes() for part in parts]
    assert columns.payloads([0, start, len(messages)]) == expected
    assert columns.payload() == columns.batch().serialize().to_pybytes()


@dataclass
class Narrow:
    u8: bettong.u8
    text: str


@pytest.mark.parametrize("payload", [b"", b"\0", b"garbage", b"\xff" * 200])
def test_bytes_that_are_no_columns_are_refused(payload: bytes) -> None:
    for read in (Columns.of_payload, Columns.of_external_payload):
        with pytest.raises(FrameError, match="columns of Wide"):
            read(WIDE, payload)


@given(st.data())
def test_a_cut_payload_is_refused(data: st.DataObject) -> None:
    payload = Columns.of_messages(WIDE, [PLAIN] * 3).payload()
    cut = data.draw(st.integers(0, len(payload) - 1))
    with pytest.raises(FrameError):
        Columns.of_external_payload(WIDE, payload[:cut])


def test_columns_of_another_schema_are_refused() -> None:
    payload = Columns.of_messages(schema_of(Narrow), [Narrow(1, "x")]).payload()
    with pytest.raises(FrameError, match="2 columns, expected 15"):
        Columns.of_external_payload(WIDE, payload)


def external(text: list[bytes | None], flag: list[int | None]) -> bytes:
    arrays = [pa.array(text, pa.binary(4)), pa.array(flag, pa.uint8())]
    body: bytes = pa.RecordBatch.from_arrays(arrays, names=["text", "flag"]).serialize().to_pybytes()
    return body


def test_a_client_may_not_send_nulls_broken_text_or_half_truths() -> None:
    schema = schema_of(Text)
    assert Columns.of_external_payload(schema, external([b"abcd"], [1])).messages() == [
        Text("abcd", flag=True)
    ]
    for payload, reason in [
        (external([None], [1]), "field 'text' has nulls"),
        (external([b"abcd"], [None]), "field 'flag' has nulls"),
        (external([b"abcd", b"ab\xff\0"], [1, 1]), "field 'text' of message 1 is no UTF-8"),
        (external([b"abcd"], [2]), "field 'flag' has bytes other than 0 and 1"),
    ]:
        with pytest.raises(FrameError, match=reason):
            Columns.of_external_payload(schema, payload)


def test_columns_of_a_wider_field_are_refused() -> None:
    wider = [pa.array([b"abcd"] * 80, pa.binary(4)), pa.array([1] * 80, pa.uint32())]
    payload = pa.RecordBatch.from_arrays(wider, names=["text", "flag"]).serialize().to_pybytes()
    with pytest.raises(FrameError, match="field 'flag' has 320 bytes, expected 80"):
        Columns.of_external_payload(schema_of(Text), payload)


@settings(max_examples=500)
@given(st.lists(st.tuples(st.integers(0, 399), st.integers(0, 255)), min_size=1, max_size=4))
def test_damaged_columns_of_fixed_width_are_refused_or_can_be_read_to_the_end(
    changes: list[tuple[int, int]],
) -> None:
    damaged = bytearray(external([b"abcd"] * 20, [1] * 20))
    for offset, value in changes:
        damaged[offset % len(damaged)] = value
    try:
        columns = Columns.of_external_payload(schema_of(Text), bytes(damaged))
    except FrameError:
        return
    assert len(columns.messages()) == columns.length
    assert Columns.of_external_payload(schema_of(Text), columns.payload()).messages() == columns.messages()


def test_size_bytes_is_about_what_the_payload_takes() -> None:
    columns = Columns.of_messages(WIDE, [PLAIN] * 1000)
    assert columns.size_bytes() <= len(columns.payload()) <= columns.size_bytes() + 4096
