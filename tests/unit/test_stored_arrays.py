"""Damaged arrays of states in a snapshot: refused by name, before memory is allocated."""

import io
import tracemalloc
from typing import Any

import numpy as np
import pytest

from bettong.errors import SnapshotError
from bettong.worker.state.stored_arrays import bytes_of, read_array
from bettong.worker.state.table import SavedStates
from tests.samples.state_tables import batch, records


def forged(descr: str, shape: str, more: str = "") -> bytes:
    """An array of one number, whose header says something else."""
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, {more}}}".encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(8)


FORGED = {
    "more than there is": forged("'<i8'", "(1152921504606846976,)"),
    "more than fits a word": forged("'<i8'", "(2**99,)".replace("2**99", str(2**99))),
    "objects": forged("'|O'", "(1,)"),
    "nothing, many times": forged("'|V0'", "(1152921504606846976,)"),
    "a negative shape": forged("'<i8'", "(-1,)"),
    "a shape that is none": forged("'<i8'", "'x'"),
    "no dimension": forged("'<i8'", "()"),
    "too many dimensions": forged("'<i8'", "(1, 1, 1)"),
    "a type that is none": forged("[('a',)]", "(1,)"),
    "a call": forged("'<i8'", "(exit(),)"),
    "deep": forged("[" * 3000 + "]" * 3000, "(1,)"),
    "signs": forged("-" * 5000 + "1", "(1,)"),
    "not and not": forged("not " * 2000 + "1", "(1,)"),
    "more keys": forged("'<i8'", "(1,)", "'x': 1"),
    "a long header": b"\x93NUMPY\x02\x00" + (2**31).to_bytes(4, "little") + b"x",
    "another version": b"\x93NUMPY\x09\x00",
    "no array": b"something else",
    "nothing": b"",
}


@pytest.mark.parametrize("data", FORGED.values(), ids=FORGED)
def test_what_nobody_saved_is_a_damaged_snapshot_and_takes_no_memory(data: bytes) -> None:
    table: Any = records(None)
    good = bytes_of(np.zeros((0, 1), np.uint64))
    tracemalloc.start()
    try:
        for saved in (
            SavedStates(data),
            SavedStates(good + data),
            SavedStates(table.dump().states, ended=data or b"?"),
        ):
            with pytest.raises(SnapshotError, match="state of 'fold'"):
                table.load(saved, log_ns=0, begins=True)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.int64).reshape(2, 3),
        np.asfortranarray(np.arange(6, dtype=np.int64).reshape(2, 3)),
        np.zeros((0, 4), np.uint64),
        np.array([[(1, b"ab")]], [("zahl", "<i8"), ("größe", "S3")]),
    ],
    ids=["rows", "columns", "empty", "a name in Unicode"],
)
def test_what_was_saved_is_read_back(array: Any) -> None:
    file = io.BytesIO(bytes_of(array, array))
    for _ in range(2):
        found = read_array(file, dimensions=2)
        assert found.dtype == array.dtype
        assert np.array_equal(found, array)
        assert found.flags.writeable


def test_a_key_that_comes_twice_is_damage() -> None:
    table: Any = records(None)
    table.open(batch([1]))
    file = io.BytesIO(table.dump().states)
    keys, states = read_array(file, dimensions=2), read_array(file, dimensions=1)
    twice = bytes_of(np.concatenate([keys, keys]), np.concatenate([states, states]))
    with pytest.raises(SnapshotError, match="it has a key twice"):
        records(None).load(SavedStates(twice), log_ns=0, begins=True)
