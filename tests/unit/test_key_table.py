"""Keys to slots: each key has its own, in the order of first appearance, however keys are chosen."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.worker.state import key_table
from bettong.worker.state.key_table import _FOLD, _MIX, DistinctSlots, KeyTable, words_of, words_per_key

Array = np.ndarray[Any, np.dtype[Any]]


def expected(keys: list[Any]) -> list[int]:
    """Slots by a dict."""
    found: dict[Any, int] = {}
    return [found.setdefault(key, len(found)) for key in keys]


TYPES = [
    "u1",
    "u2",
    "u4",
    "u8",
    "i1",
    "i2",
    "i4",
    "i8",
    "S1",
    "S2",
    "S3",
    "S4",
    "S7",
    "S8",
    "S9",
    "S16",
    "S21",
]


@given(st.sampled_from(TYPES), st.lists(st.lists(st.integers(0, 40), max_size=30), max_size=4))
def test_slots_are_those_of_a_dict(kind: str, frames: list[list[int]]) -> None:
    dtype = np.dtype(kind)
    table = KeyTable(words_per_key(dtype))
    columns = [
        np.array([str(each) if dtype.kind == "S" else each for each in frame], dtype) for frame in frames
    ]
    found = [slot for column in columns for slot in table.slots(column).tolist()]
    keys = [key for column in columns for key in column.tolist()]
    assert found == expected(keys)
    assert table.count == len(set(keys))
    slots = dict(zip(keys, found, strict=True))
    for each in range(41):
        key = np.array([str(each) if dtype.kind == "S" else each], dtype)
        assert table.find(key).tolist() == [slots.get(key.tolist()[0], -1)]
    assert table.count == len(set(keys)), "looking adds nothing"


@given(
    st.sampled_from(["i8", "u1", "S1", "S9"]),
    st.lists(st.tuples(st.booleans(), st.lists(st.integers(0, 40), max_size=30)), max_size=20),
)
def test_a_removed_key_is_gone_and_its_slot_is_given_again(
    kind: str, steps: list[tuple[bool, list[int]]]
) -> None:
    dtype = np.dtype(kind)
    # As small as possible, so that many keys have one home bucket, and are probed past one another.
    with patch.object(key_table, "_FIRST_CAPACITY", 2):
        table = KeyTable(words_per_key(dtype))
    known: dict[Any, int] = {}
    for adds, values in steps:
        texts = [str(each)[-1] if kind == "S1" else str(each) for each in values]
        column = np.array(texts if dtype.kind == "S" else values, dtype)
        if adds:
            known |= dict(zip(column.tolist(), table.slots(column).tolist(), strict=True))
        else:
            gone = set(column.tolist()) & known.keys()
            table.remove(np.array([known.pop(each) for each in gone], np.int32))
        assert table.live == len(known) == len(set(known.values()))
        assert table.in_use().tolist() == sorted(known.values())
        assert table.find(column).tolist() == [known.get(each, -1) for each in column.tolist()]
    assert table.count <= 41, "slots are given again"


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("i8", [-1, 2**63 - 1, -(2**63), 0, -1]),
        ("i1", [-1, 127, -128, -1]),
        ("u8", [2**64 - 1, 0, 2**63, 2**64 - 1]),
        ("S4", [b"", b"\0a", b"a", b"a\0b", b"a\0", b"ab"]),
        ("S9", [b"12345678", b"123456789", b"12345678\0", b"12345678a"]),
    ],
)
def test_keys_are_compared_whole(dtype: str, values: list[Any]) -> None:
    column = np.array(values, dtype)
    assert KeyTable(words_per_key(column.dtype)).slots(column).tolist() == expected(column.tolist())


def test_a_million_keys_and_more_are_told_apart() -> None:
    count = 1_200_000
    table = KeyTable(1)
    keys = np.random.default_rng(7).permutation(count).astype(np.int64) * 1_000_003
    for start in range(0, count, 65_536):
        part = keys[start : start + 65_536]
        assert (table.slots(part) == np.arange(start, start + len(part))).all()
    assert table.count == count
    assert (table.slots(keys[::-1]) == np.arange(count)[::-1]).all()


def undone(state: int) -> int:
    """The 64-bit word that the first round of the hash turns into `state`."""
    folded = state ^ state >> int(_FOLD)
    return folded * pow(int(_MIX), -1, 2**64) % 2**64


def test_keys_that_all_hash_alike_are_still_told_apart() -> None:
    """Found by inverting the hash: all of them have the same home bucket."""
    fold, mix = int(_FOLD), int(_MIX)
    homes = [(7 << 40 | number) * pow(mix, -1, 2**64) % 2**64 for number in range(1500)]
    column = np.array([undone(home) for home in homes], np.uint64)
    states = [word * mix % 2**64 for word in column.tolist()]
    hashes = {((state ^ state >> fold) * mix % 2**64) >> 53 for state in states}
    assert len(hashes) == 1
    table = KeyTable(1)
    assert table.slots(column).tolist() == list(range(1500))
    assert table.slots(column[::-1]).tolist() == list(range(1500))[::-1]
    again = KeyTable(1)
    again.slots_of(table.keys)
    assert again.slots(column).tolist() == list(range(1500))


@pytest.mark.parametrize(
    "keys",
    [
        np.array([f"user{number:04}" for number in range(10_000)], "S8"),
        np.array([f"account{number:09}" for number in range(10_000)], "S16"),
        np.arange(10_000) << 40,
        np.arange(10_000) * 4096,
        np.arange(10_000),
    ],
    ids=["tail of 8 bytes", "tail of 16 bytes", "high bits", "steps", "counting"],
)
def test_keys_that_look_alike_are_spread_over_the_table(keys: Array) -> None:
    table = KeyTable(words_per_key(keys.dtype))
    table.slots(keys)
    taken = np.flatnonzero(table._table[:, 1])
    # Half full at most: with a good spread few runs of used buckets are long.
    runs = np.split(taken, np.flatnonzero(np.diff(taken) > 1) + 1)
    assert max(map(len, runs)) < 100


def test_a_loaded_table_goes_on_where_it_was() -> None:
    column = np.array([f"k{number}" for number in range(3000)], "S9")
    table, again = KeyTable(2), KeyTable(2)
    table.slots(column)
    again.slots_of(table.keys.copy())
    more = np.array(["k2999", "new", "k0", "newer"], "S9")
    assert again.slots(more).tolist() == table.slots(more).tolist() == [2999, 3000, 0, 3001]
    assert (again.keys == table.keys).all()


def test_an_empty_column_has_no_slots() -> None:
    assert KeyTable(1).slots(np.empty(0, np.int64)).tolist() == []


@given(st.sampled_from(TYPES), st.lists(st.integers(0, 99), max_size=5))
def test_words_are_as_many_as_announced(kind: str, values: list[int]) -> None:
    column = np.array([str(each) if kind.startswith("S") else each for each in values], kind)
    assert words_of(column).shape == (len(values), words_per_key(column.dtype))
    assert words_of(column).dtype == np.uint64


@given(st.lists(st.lists(st.integers(0, 40), max_size=30), max_size=4))
def test_distinct_slots_are_numbered_as_they_come(frames: list[list[int]]) -> None:
    distinct = DistinctSlots()
    for slots in frames:
        found, positions = distinct.of(np.array(slots, np.int32), capacity=41)
        assert found.tolist() == list(dict.fromkeys(slots))
        assert found[positions].tolist() == slots
