"""Bodies of column frames are those that Arrow would write, whichever way they are made."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.client.column_bodies import ColumnBodies
from bettong.errors import SchemaError
from bettong.schema.form import KIND
from bettong.schema.tables import batch_of

TYPES = {"<u1": pa.uint8(), "<i4": pa.int32(), "<i8": pa.int64(), "<f8": pa.float64(), "S5": pa.binary(5)}
KINDS = st.lists(st.sampled_from(sorted(TYPES)), min_size=1, max_size=6)
FLAGS = pa.schema(
    [
        pa.field("ok", pa.uint8(), nullable=False, metadata={KIND: "bool"}),
        pa.field("code", pa.binary(3), nullable=False, metadata={KIND: "text"}),
    ]
)
TEXTS = pa.schema(
    [pa.field("number", pa.int64(), nullable=False), pa.field("text", pa.string(), nullable=False)]
)


def schema(kinds: list[str]) -> pa.Schema:
    return pa.schema([pa.field(f"c{index}", TYPES[kind], nullable=False) for index, kind in enumerate(kinds)])


def table(kinds: list[str], rows: range, step: int = 1) -> dict[str, Any]:
    """Columns by name, the last one first, and one that no schema has; each is every `step`th value of an array."""
    columns = {
        f"c{index}": np.repeat(np.array(rows).astype(kind), step)[::step] for index, kind in enumerate(kinds)
    }
    return {"other": [None], **dict(reversed(columns.items()))}


def written(kinds: list[str], rows: range) -> bytes:
    found: bytes = batch_of(schema(kinds), table(kinds, rows)).serialize().to_pybytes()
    return found


@given(KINDS, st.integers(0, 200), st.integers(1, 3))
def test_a_body_is_what_arrow_writes(kinds: list[str], rows: int, step: int) -> None:
    body = ColumnBodies(schema(kinds)).of_table(table(kinds, range(rows), step))
    assert body == (written(kinds, range(rows)), rows)


@given(KINDS, st.lists(st.integers(1, 9), min_size=1, max_size=9))
def test_bodies_are_joined_to_what_arrow_writes(kinds: list[str], counts: list[int]) -> None:
    bounds = np.cumsum([0, *counts]).tolist()
    parts = [written(kinds, range(start, stop)) for start, stop in pairwise(bounds)]
    assert ColumnBodies(schema(kinds)).joined(parts) == written(kinds, range(bounds[-1]))


@pytest.mark.parametrize("count", [1, 2, 40])
def test_many_bodies_alike_are_joined(count: int) -> None:
    kinds = sorted(TYPES)
    parts = [written(kinds, range(number, number + 3)) for number in range(0, 3 * count, 3)]
    assert ColumnBodies(schema(kinds)).joined(parts) == written(kinds, range(3 * count))


def test_text_of_any_length_is_written_and_joined() -> None:
    bodies = ColumnBodies(TEXTS)
    parts = [bodies.of_table({"number": np.array([n]), "text": ["é" * n]}) for n in range(3)]
    assert [count for _, count in parts] == [1, 1, 1]
    joined = bodies.joined([body for body, _ in parts])
    found = pa.ipc.read_record_batch(pa.py_buffer(joined), TEXTS)
    assert found.to_pydict() == {"number": [0, 1, 2], "text": ["", "é", "éé"]}


def test_a_body_keeps_its_values_when_the_caller_changes_the_array() -> None:
    values = np.array([1, 2, 3])
    body, _ = ColumnBodies(schema(["<i8"])).of_table({"c0": values})
    values[:] = 0
    assert body == written(["<i8"], range(1, 4))


CODES = np.array([b"a", b"b"], "S3")


@pytest.mark.parametrize(
    "columns",
    [
        {"ok": [True, False], "code": ["a", "b"]},
        {"ok": np.array([True, False]), "code": CODES},
        {"ok": np.array([1, 0], "u1"), "code": CODES.astype("S9")},
        {"ok": np.array([1, 0], ">i4"), "code": np.array(["a", "b"])},
        {"ok": np.ma.masked_array([1, 0], dtype="u1"), "code": CODES},
        {"ok": pa.array([1, 0], pa.uint8()), "code": CODES.view(np.ndarray)},
    ],
    ids=["lists", "bools", "wider bytes", "other byte order", "masked array without masks", "Arrow"],
)
def test_columns_of_other_types_become_the_same_body(columns: dict[str, Any]) -> None:
    expected = ColumnBodies(FLAGS).of_table({"ok": np.array([1, 0], "u1"), "code": CODES})
    assert ColumnBodies(FLAGS).of_table(columns) == expected
    assert ColumnBodies(FLAGS).of_table(batch_of(FLAGS, columns)) == expected


@pytest.mark.parametrize(
    ("columns", "complaint"),
    [
        ({"ok": np.array([1, 2], "u1"), "code": CODES}, "column 'ok' is true or false, 1 or 0, and got 2"),
        ({"ok": np.array([1], "u1"), "code": CODES}, "columns of different lengths: 1, 2"),
        ({"ok": np.array([[1], [0]], "u1"), "code": CODES}, "column 'ok' does not fit uint8"),
        ({"ok": np.array(1, "u1"), "code": CODES}, "column 'ok' does not fit uint8"),
        ({"code": CODES}, r"column\(s\) ok missing"),
        ({"ok": np.ma.masked_array([1, 0], [True, False], dtype="u1"), "code": CODES}, "'ok' has nulls"),
        (
            {"ok": np.array([1, 0], "u1"), "code": np.array([b"abcd", b""])},
            "'code' has values of more than 3",
        ),
    ],
    ids=["no bool", "lengths", "two dimensions", "no dimension", "missing", "masked", "too wide"],
)
def test_columns_that_do_not_fit_are_refused_by_name(columns: dict[str, Any], complaint: str) -> None:
    bodies = ColumnBodies(FLAGS)
    with pytest.raises(SchemaError, match=complaint):
        bodies.of_table(columns)


class OfAnotherLibrary:
    """A table that only Arrow's interface can read, as those of polars."""

    def __init__(self, table: pa.Table | None) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object | None = None, /) -> object:
        if self._table is None:
            raise RuntimeError("its file has gone")
        return self._table.__arrow_c_stream__(requested_schema)


TABLE = pa.concat_tables([pa.table({"code": [each], "more": [None], "ok": [each == "a"]}) for each in "ab"])


@pytest.mark.parametrize(
    "given_table",
    [TABLE, TABLE.combine_chunks().to_batches()[0], TABLE.to_pandas(), OfAnotherLibrary(TABLE)],
    ids=["Arrow's table", "batch of other columns", "pandas", "another library"],
)
def test_tables_are_taken_as_columns_are(given_table: Any) -> None:
    expected = ColumnBodies(FLAGS).of_table({"ok": np.array([1, 0], "u1"), "code": CODES})
    assert ColumnBodies(FLAGS).of_table(given_table) == expected


def test_a_table_without_rows_has_a_body() -> None:
    assert ColumnBodies(FLAGS).of_table(TABLE.slice(0, 0))[1] == 0


@pytest.mark.parametrize(
    ("given_table", "complaint"),
    [
        ([{"ok": True, "code": "a"}], "list is no table; expected columns by name"),
        (None, "NoneType is no table"),
        (TABLE.rename_columns(["ok", "code", "ok"]), "several columns have the same name: ok, code, ok"),
        (OfAnotherLibrary(None), "the table cannot be read: RuntimeError: its file has gone"),
    ],
    ids=["rows", "nothing", "names", "failing"],
)
def test_what_is_no_table_is_refused(given_table: Any, complaint: str) -> None:
    bodies = ColumnBodies(FLAGS)
    with pytest.raises(SchemaError, match=complaint):
        bodies.of_table(given_table)
