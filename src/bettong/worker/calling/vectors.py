"""Columns as a vectorized function sees them, and its results as columns.

Numbers are 64 bits wide, as in compiled functions, so that arithmetic means the same; a result is checked against
its schema, and copied, when it is stored: a function may fill the same array again.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from bettong.errors import BettongError, SchemaError
from bettong.frames.columns import Array, Column, Columns
from bettong.frames.fitting import fitting_rows
from bettong.schema.casting import cast_to
from bettong.schema.fields import Field, Kind, not_utf8
from bettong.schema.form import Form, UnfitValueError
from bettong.schema.schema import Schema
from bettong.schema.values import arrow_of_numpy, column_of_values
from bettong.worker.calling.results import Results

_PLAIN = (bool, int, float, str, bytes)
_NUMBERS = {Kind.INT: "biu", Kind.FLOAT: "biuf", Kind.BOOL: "b"}
_STRINGS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
_BINARIES = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
_TEXTS = {Kind.TEXT: (*_STRINGS, *_BINARIES), Kind.BYTES: _BINARIES}


class WrongColumnsError(BettongError):
    """A function returned no columns of the promised kind and length: its own mistake, whatever the rows hold."""


class Text(np.ndarray[Any, Any]):
    """A column of text as bytes that compares with str; numpy alone would call them always different."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        operands = [
            each.encode()
            if isinstance(each, str)
            else each.view(np.ndarray)
            if isinstance(each, Text)
            else each
            for each in inputs
        ]
        return getattr(ufunc, method)(*operands, **options)


def message_of(columns: Columns) -> Any:
    """One message whose fields are the columns, read-only."""
    return columns.schema.make(*map(_as_seen, columns.schema.fields, columns.columns))


def state_of(schema: Schema, states: Array, slots: Array) -> Any:
    """One state whose fields are columns: copies of those records."""
    return schema.make(*(_state_column(field, states[field.name][slots]) for field in schema.fields))


def keep_state(schema: Schema, states: Array, slots: Array, state: Any) -> None:
    """Stores what a function made of `state_of`. Raises SchemaError, and stores nothing, when it does not fit."""
    fields = [replace(field, dtype=_state_dtype(field, states)) for field in schema.fields]
    columns = [_column(field, getattr(state, field.name), len(slots)) for field in fields]
    for field, column in zip(fields, columns, strict=True):
        states[field.name][slots] = column


def one_each_of(schema: Schema, returned: Any, rows: int) -> Results:
    """The results that a function returned as one message of columns: one a row. Raises WrongColumnsError."""
    columns, violations = _fitting(schema, returned, rows)
    if not violations:
        return Results(columns, None)
    return Results(columns, np.delete(np.arange(rows), list(violations)), list(violations.items()))


def several_of(schema: Schema, returned: Any, rows: int) -> Results:
    """The results that a function returned with the row of each. Raises WrongColumnsError."""
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise WrongColumnsError(
            f"returned {type(returned).__name__}, expected ({schema.name} of columns, row indexes)"
        )
    message, sources = returned
    indexes = _array("row indexes", sources)
    if indexes.ndim != 1 or indexes.dtype.kind not in "iu":
        raise WrongColumnsError(
            f"row indexes: {indexes.dtype} {indexes.shape}, expected whole numbers in one row"
        )
    indexes = indexes.astype(np.int64)
    if len(indexes) and (indexes[0] < 0 or indexes[-1] >= rows or (np.diff(indexes) < 0).any()):
        raise WrongColumnsError(f"row indexes: expected 0 to {rows - 1}, in rising order")
    columns, violations = _fitting(schema, message, len(indexes))
    if not violations:
        return Results(columns, indexes)
    failures = [(int(indexes[result]), reason) for result, reason in violations.items()]
    return Results(columns, np.delete(indexes, list(violations)), failures)


def rows_kept(returned: Any, rows: int) -> Array:
    """The indexes of the rows for which a predicate returned True."""
    if type(returned) is bool:
        return np.arange(rows if returned else 0)
    kept = _array("what it returns", returned)
    if kept.dtype != np.bool_ or kept.shape != (rows,):
        raise WrongColumnsError(
            f"returned {kept.dtype} {kept.shape}, expected one bool for each of {rows} rows"
        )
    return np.flatnonzero(kept)


def _fitting(schema: Schema, returned: Any, results: int) -> tuple[Columns, dict[int, str]]:
    """The results that fit their schema, and why each other one does not. Raises WrongColumnsError."""
    if not isinstance(returned, schema.made_class):
        raise WrongColumnsError(f"returned {type(returned).__name__}, expected {schema.name} of columns")
    try:
        values = [get(returned) for get in schema.getters]
    except KeyError as error:
        raise WrongColumnsError(f"returned {schema.name} without {error}") from None

    def made(part: Sequence[int] | slice) -> Columns:
        if part == slice(0, results):
            return _columns(schema, values, results)
        length = len(range(results)[part]) if isinstance(part, slice) else len(part)
        if not length:
            return Columns.of_messages(schema, [])
        return _columns(schema, [_part(value, part) for value in values], length)

    return fitting_rows(results, made)


def _part(value: Any, part: Sequence[int] | slice) -> Any:
    if not isinstance(value, pa.Array | pa.ChunkedArray | np.ndarray):
        return value
    if isinstance(part, slice) or isinstance(value, np.ndarray):
        return value[part]
    return value.take(pa.array(part))


def _columns(schema: Schema, values: list[Any], rows: int) -> Columns:
    """Raises WrongColumnsError for a field that is no column, only then SchemaError for values that do not fit."""
    columns: list[Column] = []
    violation = ""
    for field, value in zip(schema.fields, values, strict=True):
        try:
            columns.append(_column(field, value, rows))
        except SchemaError as error:
            violation = violation or str(error)
    if violation:
        raise SchemaError(violation)
    return Columns(schema, rows, tuple(columns))


def _as_seen(field: Field, column: Column) -> Column:
    if isinstance(column, pa.Array):
        return column
    if field.kind is Kind.INT:
        seen = column.view(np.int64) if column.dtype == np.uint64 else column.astype(np.int64, copy=False)
    elif field.kind is Kind.FLOAT:
        seen = column.astype(np.float64, copy=False)
    elif field.kind is Kind.BOOL:
        seen = column.view(np.bool_)
    else:
        seen = column
    seen = seen.view(Text) if field.kind is Kind.TEXT else seen.view()
    seen.flags.writeable = False
    return seen


def _state_column(field: Field, column: Array) -> Array:
    if field.kind not in (Kind.TEXT, Kind.BYTES):
        return column
    # With room for a byte more: numpy cuts what it stores, so that a text that was too long shows.
    wide = column.astype(f"S{column.itemsize + 1}")
    return wide.view(Text) if field.kind is Kind.TEXT else wide


def _state_dtype(field: Field, states: Array) -> np.dtype[Any]:
    dtype: np.dtype[Any] = states[field.name].dtype
    return np.dtype("u1") if field.kind is Kind.BOOL else dtype


def _form_column(field: Field, form: Form, value: Any, rows: int) -> pa.Array:
    """A column of a kind with a form: an Arrow array, an array of Python objects, or one value for all rows."""
    if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind == "O":
        array = column_of_values(field, value.tolist())
    elif isinstance(value, np.ndarray):
        array = arrow_of_numpy(value)
    elif isinstance(value, pa.Array | pa.ChunkedArray):
        array = value
    else:
        return column_of_values(field, [value]).take(pa.array(np.zeros(rows, np.int64)))
    if len(array) != rows:
        raise WrongColumnsError(
            f"field {field.name!r}: {len(array)} values, expected one for each of {rows} rows"
        )
    try:
        array = cast_to(field, array)
        form.check(array)
    except UnfitValueError as error:
        raise SchemaError(f"field {field.name + error.path!r}: {error.reason}") from None
    return array


def _column(field: Field, value: Any, rows: int) -> Column:
    if field.form is not None:
        return _form_column(field, field.form, value, rows)
    if type(value) in _PLAIN:
        one = column_of_values(field, [value])
        return np.repeat(one, rows) if isinstance(one, np.ndarray) else pa.repeat(one[0], rows)
    array = (
        value
        if isinstance(value, pa.Array) and field.dtype is None
        else _array(f"field {field.name!r}", value)
    )
    if (len(array),) != (rows,) or getattr(array, "ndim", 1) != 1:
        raise WrongColumnsError(
            f"field {field.name!r}: {len(array)} values, expected one for each of {rows} rows"
        )
    if isinstance(array, pa.Array):
        return _arrow_column(field, array)
    if field.dtype is None or array.dtype.kind == "O":
        texts = field.kind is Kind.TEXT and array.dtype.kind == "S"
        return column_of_values(
            field, [each.decode() for each in array.tolist()] if texts else array.tolist()
        )
    if field.kind in _NUMBERS:
        return _numbers(field, array, field.dtype)
    return _texts(field, array, field.dtype)


def _array(owner: str, value: Any) -> Array:
    """What a function returned as a column, as a numpy array."""
    if isinstance(value, pa.ChunkedArray):
        value = value.combine_chunks()
    if isinstance(value, pa.Array):
        if value.null_count:
            raise SchemaError(f"{owner}: None is no value")
        value = value.to_numpy(zero_copy_only=False)
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        raise WrongColumnsError(
            f"{owner}: one {value.dtype} for the whole frame, which changes with how messages are cut into frames;"
            " give one value a row"
        )
    if not isinstance(value, np.ndarray):
        raise WrongColumnsError(
            f"{owner}: {type(value).__name__} is no column: expected a numpy or Arrow array"
        )
    return np.asarray(value)


def _can_change(array: Array) -> bool:
    """Whether anyone could still write to the memory of its values, as may be in read-only views, and in Arrow's."""
    owner: object = array
    while isinstance(owner, np.ndarray):
        if owner.flags.writeable:
            return True
        owner = owner.base
    return not isinstance(owner, bytes)  # a frame's memory


def _arrow_column(field: Field, array: pa.Array) -> pa.Array:
    held = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
    if not any(is_kind(held) for is_kind in _TEXTS[field.kind]):
        raise WrongColumnsError(f"field {field.name!r}: {array.type} is no {field.kind.value}")
    try:
        column = array if array.type == field.arrow else array.cast(field.arrow)
    except pa.ArrowException as error:
        raise SchemaError(f"field {field.name!r}: {error}") from None
    if column.null_count:
        raise SchemaError(f"field {field.name!r}: None is no {field.kind.value}")
    return column


def _numbers(field: Field, array: Array, dtype: np.dtype[Any]) -> Array:
    if array.dtype.kind not in _NUMBERS[field.kind]:
        raise WrongColumnsError(f"field {field.name!r}: {array.dtype} is no {field.kind.value}")
    # Signed numbers are the bits of a u64, see `_as_seen`.
    bits = dtype == np.uint64 and array.dtype.kind == "i"
    if field.kind is Kind.INT and not bits and len(array) and not np.can_cast(array.dtype, dtype):
        limits = np.iinfo(dtype)
        if int(array.min()) < limits.min or int(array.max()) > limits.max:
            raise SchemaError(f"field {field.name!r}: not an integer of type {dtype}")
    numbers = array.astype(dtype, copy=_can_change(array))
    if dtype == np.float32 and (np.isinf(numbers) & np.isfinite(array)).any():
        raise SchemaError(f"field {field.name!r}: a number too large for 32 bits")
    return numbers


def _texts(field: Field, array: Array, dtype: np.dtype[Any]) -> Array:
    if array.dtype.kind in "UT":
        array = np.strings.encode(array, "utf-8")
    if array.dtype.kind != "S":
        raise WrongColumnsError(f"field {field.name!r}: {array.dtype} is no {field.kind.value}")
    if array.itemsize > dtype.itemsize and len(array) and np.strings.str_len(array).max() > dtype.itemsize:
        raise SchemaError(f"field {field.name!r}: longer than {dtype.itemsize} bytes")
    texts = np.ascontiguousarray(array.astype(dtype, copy=_can_change(array)))
    if field.kind is Kind.TEXT and not_utf8(texts):
        raise SchemaError(f"field {field.name!r}: no UTF-8")
    return texts
