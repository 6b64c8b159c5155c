"""Reads many rows of JSON objects at once into columns, by Arrow: several times as fast as one by one.

Arrow reads consecutive objects regardless of line ends; it accepts some values that we refuse, and reads some
differently. So it is used for rows of plain fields only, and its result only where both read the same; all other rows
are read one by one (`bettong.schema.json_objects`).
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow_json

from bettong.errors import SchemaError
from bettong.schema.fields import Field, Kind, is_utf8
from bettong.schema.json_values import BASE64
from bettong.schema.schema import Schema
from bettong.schema.values import Column, column_of_values, view_of

# A call of Arrow's reader takes as long as reading some forty rows one by one.
ROWS_MIN = 64
# Python does not read objects nested deeper than its recursion limit, nor whole numbers of more digits than its limit,
# which is at least 640. A shorter row has neither.
_SHORT_BYTES = 600
_OPENINGS_MAX = 500
_MANY_DIGITS = re.compile(rb"\d{600}")
# Words that Arrow accepts and Python does not: Inf, -NaN, NaN.5.
_NO_NUMBER = re.compile(rb"[:,\[\s]-?(?:NaN|Inf(?:inity)?)(?:\s*[,\]}]|\.|[eE][-+\d])")


class _AmbiguousError(Exception):
    """Arrow may have read these values differently."""


@dataclass(frozen=True, slots=True)
class ColumnReader:
    """Reads rows of one schema."""

    fields: tuple[Field, ...]
    options: arrow_json.ParseOptions

    def columns(self, rows: Sequence[bytes]) -> list[Column] | None:
        """A column a field; None for rows that must be read one by one."""
        try:
            table = self._table(rows)
            return [_column(field, found) for field, found in zip(self.fields, table.columns, strict=True)]
        except (pa.ArrowException, SchemaError, _AmbiguousError):
            return None

    def _table(self, rows: Sequence[bytes]) -> pa.Table:
        # Then each row is whole objects: } is followed by { only between two of them, and no text contains a line end.
        # If there are as many objects as rows, there is one a row.
        _check(all(rows))
        _check(bytes(map(itemgetter(0), rows)) == b"{" * len(rows))
        _check(bytes(map(itemgetter(-1), rows)) == b"}" * len(rows))
        for row in rows:
            if len(row) > _SHORT_BYTES:
                _check(row.count(b"{") + row.count(b"[") < _OPENINGS_MAX)
                _check(_MANY_DIGITS.search(row) is None)
        block = b"\n".join(rows)
        _check(block.isascii() or is_utf8(block))
        _check((b"Inf" not in block and b"NaN" not in block) or _NO_NUMBER.search(block) is None)
        # A frame is far below the 2 GiB that a block may have.
        one_block = arrow_json.ReadOptions(use_threads=False, block_size=len(block) + 1)
        table = arrow_json.read_json(pa.BufferReader(block), one_block, self.options)
        _check(len(table) == len(rows))
        return table


@lru_cache(maxsize=64)
def column_reader(schema: Schema) -> ColumnReader | None:
    """The reader of a schema; None where a field is not plain."""
    if not schema.is_plain:
        return None
    types = [(field.name, _arrow_type(field)) for field in schema.fields]
    options = arrow_json.ParseOptions(explicit_schema=pa.schema(types), unexpected_field_behavior="ignore")
    return ColumnReader(schema.fields, options)


def _arrow_type(field: Field) -> pa.DataType:
    """The type that Arrow reads: the widest of the kind."""
    if field.kind is Kind.BOOL:
        return pa.bool_()
    if field.kind is Kind.FLOAT:
        return pa.float64()
    if field.kind is Kind.INT:
        return pa.uint64() if field.arrow == pa.uint64() else pa.int64()
    return pa.string()


def _column(field: Field, found: pa.ChunkedArray) -> Column:
    """Raises what `ColumnReader.columns` catches."""
    _check(found.num_chunks == 1)
    # Also null where a field is missing, which may have a default.
    _check(not found.null_count)
    return _COLUMNS[field.kind](field, found.chunk(0))


def _whole(field: Field, found: pa.Array) -> Column:
    numbers = found.to_numpy()
    limits = np.iinfo(field.arrow.to_pandas_dtype())
    _check(limits.min <= numbers.min() and numbers.max() <= limits.max)
    return np.ascontiguousarray(numbers, field.dtype)


def _floats(field: Field, found: pa.Array) -> Column:
    numbers = found.to_numpy()
    # Python reads -0 as the whole number 0, and -0.0 with its sign; Arrow reads both as -0.0.
    _check(np.isfinite(numbers).all() and not (np.signbit(numbers) & (numbers == 0)).any())
    with np.errstate(over="ignore"):
        narrow = np.ascontiguousarray(numbers, field.dtype)
    _check(np.isfinite(narrow).all())
    return narrow


def _bools(field: Field, found: pa.Array) -> Column:
    return view_of(field, found.cast(pa.uint8()))


def _texts(field: Field, found: pa.Array) -> Column:
    return found if field.dtype is None else column_of_values(field, found.to_pylist())


def _bytes(field: Field, found: pa.Array) -> Column:
    _check(not pc.any(pc.starts_with(found, BASE64)).as_py())
    data = found.cast(pa.binary())
    return data if field.dtype is None else column_of_values(field, data.to_pylist())


_COLUMNS: dict[Kind, Callable[[Field, pa.Array], Column]] = {
    Kind.BOOL: _bools,
    Kind.BYTES: _bytes,
    Kind.FLOAT: _floats,
    Kind.INT: _whole,
    Kind.TEXT: _texts,
}


def _check(is_unambiguous: object) -> None:
    if not is_unambiguous:
        raise _AmbiguousError
