"""One version of a reference table: its rows as columns, found by key, and its bytes.

    0        4                  12
    +--------+------------------+--------------------------------------------+
    | "BTR1" | schema, 64 bits  | an Arrow IPC record batch, as in a frame   |
    +--------+------------------+--------------------------------------------+
              (little-endian)     rows in the order of the key

Rows are sorted, so equal tables have equal bytes in whatever order they were loaded.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bettong.application.reference_source import ReferenceSource
from bettong.errors import FrameError, SchemaError
from bettong.frames.columns import Array, Column, Columns

# Each process that folds holds the table, with an index of its keys: some hundred bytes a row where the key is text.
ROWS_MAX = 5_000_000
# Redis accepts half a GiB at once, and a worker waits while it reads a version.
BYTES_MAX = 256 * 1024 * 1024

_HEADER = struct.Struct("<4sQ")
_MAGIC = b"BTR1"
_NONE = -1


class ReferenceTable:
    """Rows of a source's schema, with unique keys. It never changes, so several partitions may share it."""

    def __init__(self, source: ReferenceSource, rows: Columns) -> None:
        """Raises SchemaError where a key comes twice, or there are too many rows."""
        if rows.length > ROWS_MAX:
            raise SchemaError(f"{rows.length:,} rows; a reference table has at most {ROWS_MAX:,}")
        self._source = source
        self._position = source.schema.position(source.key)
        order = _order(rows.columns[self._position])
        self.columns = rows if (order[1:] > order[:-1]).all() else rows.take(order)
        self._check_keys()

    @classmethod
    def decode(cls, source: ReferenceSource, data: bytes) -> ReferenceTable:
        """Reads a version, and trusts nothing in it. Raises SchemaError."""
        if len(data) > BYTES_MAX + _HEADER.size or len(data) < _HEADER.size:
            raise SchemaError(f"{len(data)} bytes are no version of a reference table")
        magic, schema = _HEADER.unpack_from(data)
        if magic != _MAGIC or schema != source.schema.fingerprint:
            raise SchemaError(
                f"it begins with {magic!r} and schema {schema:016x}: no table of {source.schema.name}"
            )
        try:
            return cls(source, Columns.of_external_payload(source.schema, data[_HEADER.size :]))
        except FrameError as error:
            raise SchemaError(str(error)) from None

    def encode(self) -> bytes:
        """Its bytes: equal tables have equal bytes. Raises SchemaError where there are too many."""
        payload = self.columns.payload()
        if len(payload) > BYTES_MAX:
            raise SchemaError(f"{len(payload):,} bytes; a reference table has at most {BYTES_MAX:,}")
        return _HEADER.pack(_MAGIC, self._source.schema.fingerprint) + payload

    def rows_of_column(self, column: Column) -> Array:
        """The row of each key in a column of a field of the key's kind; -1 for none."""
        keys = self.columns.columns[self._position]
        if (
            not isinstance(column, np.ndarray)
            or not isinstance(keys, np.ndarray)
            or column.dtype.kind not in "iu"
        ):
            raise AssertionError("columns of numbers alone are searched")
        if not len(keys):
            return np.full(len(column), _NONE, np.int64)
        # Signed and unsigned numbers are compared exactly: numpy would make floats of both.
        wanted, is_wanted = _whole(column, keys.dtype)
        rows = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where(is_wanted & (keys[rows] == wanted), rows, _NONE)

    def rows_of_values(self, keys: Sequence[Any]) -> Array:
        """The row of each of these keys; -1 for none. Raises what hashing one raises."""
        return np.fromiter(map(self._rows.get, keys, repeat(_NONE)), np.int64, len(keys))

    def __len__(self) -> int:
        return self.columns.length

    @cached_property
    def _rows(self) -> dict[Any, int]:
        keys = self.columns.values(self._position)
        return dict(zip(keys, range(len(keys)), strict=True))

    def _check_keys(self) -> None:
        keys = self.columns.columns[self._position]
        if isinstance(keys, np.ndarray):
            twice = np.flatnonzero(keys[1:] == keys[:-1])
            first = int(twice[0]) if len(twice) else None
        else:
            same = pc.equal(keys[1:], keys[:-1]) if len(keys) > 1 else pa.array([], pa.bool_())
            first = same.index(True).as_py()
            first = None if first < 0 else first
        if first is not None:
            key = self.columns.slice(first, first + 1).values(self._position)[0]
            raise SchemaError(
                f"key {self._source.key!r}: {key!r} comes twice; each row needs a key of its own"
            )


def fingerprint_of(data: bytes) -> bytes:
    """Identifies a version, and shows that its bytes are intact."""
    return hashlib.sha256(data).digest()


def _order(keys: Column) -> Array:
    if isinstance(keys, np.ndarray):
        return np.argsort(keys, kind="stable")
    found: Array = pc.sort_indices(keys).to_numpy().astype(np.int64)
    return found


def _whole(column: Array, kind: np.dtype[Any]) -> tuple[Array, Array]:
    """Whole numbers converted to another type, and which of them it can hold."""
    limits = np.iinfo(kind)
    least, most = int(column.min(initial=0)), int(column.max(initial=0))
    if limits.min <= least and most <= limits.max:
        return column.astype(kind, copy=False), np.ones(len(column), np.bool_)
    own = np.iinfo(column.dtype)
    fits = (column >= max(limits.min, own.min)) & (column <= min(limits.max, own.max))
    return np.where(fits, column, 0).astype(kind), fits
