"""Which partition a key goes to, and the split of columns by it."""

import string
from collections import Counter
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bettong import Width, i16, u8, u64
from bettong.frames.columns import Columns
from bettong.routing import partition_of, partitions_of, partitions_of_keys, split
from bettong.schema.schema import schema_of

MASK = 2**64 - 1


@dataclass
class Sample:
    """Every kind of field that can be a key."""

    small: u8
    signed: i16
    wide: u64
    plain: int
    flag: bool
    name: Annotated[str, Width(6)]
    code: Annotated[bytes, Width(5)]
    text: str
    blob: bytes


FIELDS = ["small", "signed", "wide", "plain", "flag", "name", "code", "text", "blob"]

# Fields of fixed width are padded with NUL, so a value of theirs does not end in one.
short_text = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=1)
samples = st.builds(
    Sample,
    small=st.integers(0, 2**8 - 1),
    signed=st.integers(-(2**15), 2**15 - 1),
    wide=st.integers(0, 2**64 - 1),
    plain=st.integers(-(2**63), 2**63 - 1),
    flag=st.booleans(),
    name=st.text(string.ascii_letters, max_size=6) | short_text,
    code=st.binary(max_size=5).map(lambda value: value.rstrip(b"\0")),
    text=st.text(st.characters(codec="utf-8")),
    blob=st.binary() | st.binary(max_size=3).map(lambda value: value + b"\0\0"),
)


def reference(key: bytes, partitions: int) -> int:
    """FNV-1a (RFC 9923) and MurmurHash3's finalizer, written down once more."""
    state = 0xCBF29CE484222325
    for byte in key:
        state = (state ^ byte) * 0x100000001B3 & MASK
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        state = (state ^ state >> 33) * factor & MASK
    return (state ^ state >> 33) % partitions


def key_bytes(key: str | int | bytes) -> bytes:
    """What `bettong.routing` says the bytes of a key are."""
    if isinstance(key, str):
        return key.encode()
    if isinstance(key, int):
        return (key & MASK).to_bytes(8, "little")
    return key.rstrip(b"\0")


def test_known_keys_keep_their_partitions_for_ever() -> None:
    # A change here moves the keys of every log that exists: it must never happen.
    keys: list[str | int | bytes] = ["", "ABCD", " IBM", b"ABCD", 0, 1, -1, 2**64 - 1, "größer", b"\xff\xfe"]
    assert partitions_of_keys(keys, 4096).tolist() == [reference(key_bytes(key), 4096) for key in keys]
    assert [partition_of(key, 16) for key in ("ABCD", b"ABCD", " IBM", 1)] == [9, 9, 0, 6]


@settings(deadline=None, max_examples=25)  # the first example compiles
@given(st.lists(st.one_of(st.text(), st.binary(), st.integers(-(2**63), 2**64 - 1))), st.integers(1, 4096))
def test_a_partition_is_the_hash_of_the_keys_bytes(keys: list[str | int | bytes], partitions: int) -> None:
    keys = [key for key in keys if not isinstance(key, str) or key.isprintable()]
    assert partitions_of_keys(keys, partitions).tolist() == [
        reference(key_bytes(key), partitions) for key in keys
    ]


@pytest.mark.parametrize("field", FIELDS)
@settings(deadline=None, max_examples=25)  # the first example compiles
@given(messages=st.lists(samples, min_size=1, max_size=20))
def test_a_field_and_a_function_that_returns_it_give_the_same_partitions(
    field: str, messages: list[Sample]
) -> None:
    columns = Columns.of_messages(schema_of(Sample), messages)
    by_field = partitions_of(columns, field, 64)
    by_function = partitions_of(columns, lambda message: getattr(message, field), 64)
    assert by_field.tolist() == by_function.tolist()
    assert by_field.tolist() == partitions_of_keys([getattr(each, field) for each in messages], 64).tolist()


@pytest.mark.parametrize("field", FIELDS)
@settings(deadline=None, max_examples=25)  # the first example compiles
@given(messages=st.lists(samples, min_size=3, max_size=20))
def test_rows_in_the_middle_of_larger_columns_keep_their_partitions(
    field: str, messages: list[Sample]
) -> None:
    columns = Columns.of_messages(schema_of(Sample), messages)
    assert (
        partitions_of(columns.slice(1, len(messages) - 1), field, 64).tolist()
        == partitions_of(columns, field, 64).tolist()[1:-1]
    )


@pytest.mark.parametrize("key", [None, 1.5, ["a"]])
def test_a_key_of_another_type_is_a_type_error(key: Any) -> None:
    with pytest.raises(TypeError, match="a key must be str, int, bytes or tuple"):
        partition_of(key, 4)


def test_an_integer_beyond_64_bits_is_an_overflow_error() -> None:
    with pytest.raises(OverflowError):
        partition_of(2**64, 4)


@settings(deadline=None, max_examples=25)  # the first example compiles
@given(st.lists(st.integers(0, 15), max_size=200))
def test_a_split_holds_each_row_once_in_its_partition_and_in_order(assignment: list[int]) -> None:
    division = split(np.array(assignment, np.uint16), 16)
    assert (division.bounds[0], division.bounds[-1], len(division.bounds)) == (0, len(assignment), 17)
    for partition in range(16):
        rows = division.order[division.bounds[partition] : division.bounds[partition + 1]].tolist()
        assert rows == [row for row, each in enumerate(assignment) if each == partition]


def test_short_keys_spread_evenly() -> None:
    keys: list[str | int | bytes] = [f"{number:4d}" for number in range(10_000)]
    counts = Counter(partitions_of_keys(keys, 16).tolist())
    # 625 are due to each; four standard deviations are 97.
    assert len(counts) == 16
    assert all(abs(count - 625) < 100 for count in counts.values())


def test_empty_text_columns_of_arrow_have_partitions() -> None:
    @dataclass
    class Word:
        text: str

    columns = Columns(schema_of(Word), 2, (pa.array(["", ""]),))
    assert partitions_of(columns, "text", 8).tolist() == [partition_of("", 8)] * 2
