"""The positions of a record batch's values are found without Arrow, and only where Arrow would find the same."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bettong.frames.arrow_message import value_layout

TYPES = {"u1": pa.uint8(), "<i4": pa.int32(), "<i8": pa.int64(), "<f8": pa.float64(), "S5": pa.binary(5)}
KINDS = st.lists(st.sampled_from(sorted(TYPES)), min_size=1, max_size=6)


def batch(kinds: list[str], rows: int) -> pa.RecordBatch:
    columns = [np.arange(rows).astype(kind) for kind in kinds]
    arrays = [
        pa.Array.from_buffers(TYPES[kind], rows, [None, pa.py_buffer(column)])
        for kind, column in zip(kinds, columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, [f"c{index}" for index in range(len(kinds))])


def sizes(kinds: list[str]) -> tuple[int, ...]:
    return tuple(np.dtype(kind).itemsize for kind in kinds)


@given(KINDS, st.integers(0, 300), st.integers(0, 7))
def test_values_are_found_where_arrow_finds_them(kinds: list[str], rows: int, first: int) -> None:
    made = batch(kinds, rows + first).slice(first)
    payload = made.serialize().to_pybytes()
    found = value_layout(payload, sizes(kinds))
    assert found is not None
    assert found.rows == rows
    assert 0 <= found.spare < 8
    for kind, start in zip(kinds, found.starts, strict=True):
        expected = np.arange(first, first + rows).astype(kind)
        assert (np.frombuffer(payload, kind, rows, start) == expected).all()


@pytest.mark.parametrize(
    ("payload", "widths"),
    [
        (batch(["<i8", "u1"], 9).serialize().to_pybytes(), (8,)),
        (batch(["<i8"], 9).serialize().to_pybytes(), (8, 8)),
        (batch(["u1"], 90).serialize().to_pybytes(), (8,)),
        (batch(["<i8"], 9).serialize().to_pybytes()[:-1], (8,)),
        (pa.record_batch({"a": pa.array([1, None, 3])}).serialize().to_pybytes(), (8,)),
        (pa.record_batch({"a": ["text"]}).serialize().to_pybytes(), (4,)),
        (batch(["u1"] * 1000, 9).serialize().to_pybytes(), (1,) * 1000),
        (batch(["<i8"], 9).schema.serialize().to_pybytes(), (8,)),
        (b"", (8,)),
        (b"no message at all, but long enough to look like one", (8,)),
    ],
    ids=[
        "column missing",
        "column more",
        "narrower",
        "cut",
        "nulls",
        "text",
        "wide",
        "schema",
        "empty",
        "garbage",
    ],
)
def test_anything_else_is_left_to_arrow(payload: bytes, widths: tuple[int, ...]) -> None:
    assert value_layout(payload, widths) is None


def test_compressed_columns_are_left_to_arrow() -> None:
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    sink = pa.BufferOutputStream()
    made = batch(["<i8"], 5000)
    with pa.ipc.new_stream(sink, made.schema, options=options) as stream:
        stream.write_batch(made)
    reader = pa.ipc.MessageReader.open_stream(sink.getvalue())
    reader.read_next_message()
    assert value_layout(reader.read_next_message().serialize().to_pybytes(), (8,)) is None


@settings(max_examples=400)
@given(st.integers(0, 400), st.integers(0, 255))
def test_a_damaged_message_never_leads_outside_of_it(index: int, value: int) -> None:
    payload = bytearray(batch(["<i8", "u1", "S5"], 20).serialize().to_pybytes())
    payload[index % len(payload)] = value
    found = value_layout(bytes(payload), (8, 1, 5))
    if found is not None:
        for start, size in zip(found.starts, [8, 1, 5], strict=True):
            assert 0 <= start <= len(payload) - found.rows * size
