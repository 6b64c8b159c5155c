"""Values of fields as columns: numpy arrays where a width is fixed, Arrow arrays elsewhere.

A value that does not fit its field is refused; nothing is rounded or truncated except a number to its field's float.
"""

from array import array as PythonArray  # noqa: N812 - beside numpy's and Arrow's
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from bettong.errors import SchemaError
from bettong.schema.fields import Field, Kind, not_utf8
from bettong.schema.form import UnfitValueError, shown
from bettong.user_errors import ANY_ERROR, reason_of

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Column: TypeAlias = Array | pa.Array

# The number of values examined to see whether a text column repeats itself.
_SAMPLE = 512


def column_of_values(field: Field, values: list[Any]) -> Column:
    """A column of Python values. Raises SchemaError, naming the field, when one does not fit."""
    try:
        return _column(field, values)
    except UnfitValueError as error:
        raise SchemaError(f"field {field.name + error.path!r}: {error.reason}") from None


def values_of(field: Field, column: Column) -> list[Any]:
    """The Python values of a column."""
    if field.form is not None:
        return field.form.values(column)
    if isinstance(column, pa.Array):
        return list(column.to_numpy(zero_copy_only=False).tolist())
    if field.kind is Kind.TEXT:
        return _texts(column.tolist())
    if field.kind is Kind.BYTES:
        return list(column.view(f"V{column.itemsize}").tolist())
    if field.kind is Kind.BOOL:
        return list(column.astype(bool).tolist())
    return list(column.tolist())


def view_of(field: Field, column: pa.Array) -> Column:
    """An Arrow array of a field's type as its column, without a copy of fixed-width ones."""
    if field.dtype is None:
        return column
    data = column.buffers()[1]
    if data is None:
        return np.empty(0, field.dtype)
    return np.frombuffer(data, field.dtype, len(column), column.offset * field.dtype.itemsize)


def arrow_of_numpy(values: Array) -> pa.Array:
    """As `pa.array`, which would end each text, and each bytes, at its first zero, and takes only native byte order."""
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    kind = {"S": pa.binary(), "U": pa.string()}.get(values.dtype.kind)
    return pa.array(values) if kind is None or values.ndim != 1 else pa.array(values.tolist(), kind)


def joined(parts: Sequence[Column]) -> Column:
    """The parts of one column concatenated."""
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if isinstance(parts[0], np.ndarray) else pa.concat_arrays(parts)


def arrow_of(field: Field, column: Column) -> pa.Array:
    """A column as an Arrow array, without a copy."""
    if isinstance(column, pa.Array):
        return column
    data = np.ascontiguousarray(column, dtype=field.dtype)
    return pa.Array.from_buffers(field.arrow, len(data), [None, pa.py_buffer(data)])


def array_of(field: Field, values: list[Any]) -> pa.Array:
    """The values that a form holds, as an Arrow array. Raises UnfitValueError with the row."""
    try:
        return arrow_of(field, _column(field, values))
    except UnfitValueError as error:
        if error.row is None:
            error.row = next((row for row, value in enumerate(values) if not _fits(field, value)), None)
        raise


def values_of_array(field: Field, array: pa.Array) -> list[Any]:
    """The inverse of `array_of`. There must be no nulls, except for a form that takes them."""
    return values_of(field, view_of(field, array))


def check_array(field: Field, array: pa.Array) -> None:
    """Raises UnfitValueError for an array with an invalid value of a field. Arrow has validated it in full."""
    if field.form is not None:
        field.form.check(array)
        return
    if array.null_count:
        row = array.is_null().index(True).as_py()
        raise UnfitValueError(
            f"None is no {field.kind.value}; a field that may lack a value is `... | None`", row
        )
    if (found := wrong_value(field, view_of(field, array))) is not None:
        raise UnfitValueError(*found)


def wrong_value(field: Field, values: Column) -> tuple[str, int] | None:
    """The reason and the row of the first invalid value in a column of a plain field; None if all are valid."""
    if field.dtype is None:
        return None
    if field.kind is Kind.TEXT and (bad := not_utf8(values)):
        return "is no UTF-8", bad[0]
    if field.kind is Kind.BOOL and (values > 1).any():
        return "has bytes other than 0 and 1", int(np.argmax(values > 1))
    return None


def check_ends(values: Iterable[str]) -> None:
    """Raises UnfitValueError for the first text that would lose its end, for padding is left out when it is read."""
    for row, value in enumerate(values):
        if value.endswith("\0"):
            raise UnfitValueError(
                f"{shown(value)} ends in a zero byte, with which text of a fixed width is padded: strip it, or give the"
                " field no Width",
                row,
            )


def _column(field: Field, values: list[Any]) -> Column:
    """A column of Python values. Raises UnfitValueError."""
    try:
        if field.form is not None:
            return field.form.array(values)
        if field.dtype is None:
            _check_unchanging(field, values)
            column = pa.array(values, field.arrow)
        elif field.kind is Kind.BOOL:
            if set(map(type, values)) <= {bool}:
                # Without Arrow, which would load pandas (22 MB) to check whether the list is one of its types.
                return np.frombuffer(PythonArray(field.dtype.char, values), field.dtype)
            column = pa.array(values, pa.bool_()).cast(pa.uint8())
        elif field.kind is Kind.TEXT:
            return _fixed_text(values, field.dtype)
        elif field.kind is Kind.BYTES:
            return _fixed_bytes(values, field.dtype)
        else:
            _check_unchanging(field, values)
            # Arrow and numpy would truncate 1.5 to an integer; Python's array refuses it, and is faster.
            numbers = np.frombuffer(PythonArray(field.dtype.char, values), field.dtype)
            if field.dtype == np.float32 and (np.isinf(numbers) & np.isfinite(values)).any():
                raise OverflowError("a number too large for 32 bits")
            return numbers
    except UnfitValueError:
        raise
    except ANY_ERROR as error:  # of Arrow, of Python, and of a value's `__index__` or the like
        is_plain = isinstance(
            error, pa.ArrowException | OverflowError | TypeError | ValueError | AttributeError
        )
        raise UnfitValueError(str(error) if is_plain else reason_of(error)) from None
    if column.null_count:
        raise UnfitValueError(f"None is no {field.kind.value}")
    return view_of(field, column)


def _fits(field: Field, value: Any) -> bool:
    try:
        _column(field, [value])
    except UnfitValueError:
        return False
    return True


def _texts(encoded: list[bytes]) -> list[str]:
    """Decodes text. Where values repeat, each is decoded and hashed once."""
    if len(set(encoded[:_SAMPLE])) > _SAMPLE // 2:
        return [value.decode("utf-8", "replace") for value in encoded]
    decoded = {value: value.decode("utf-8", "replace") for value in set(encoded)}
    return [decoded[value] for value in encoded]


def _check_unchanging(field: Field, values: list[Any]) -> None:
    """Raises UnfitValueError for the first mutable value, such as an array or a bytearray."""
    if field.kind is Kind.BYTES:
        if values and set(map(type, values)) != {bytes}:
            _check_text(values, 2**31)
        return
    try:
        # The fastest check of all values: text can be joined, and by Python's convention mutable objects have no
        # hash.
        "".join(values) if field.kind is Kind.TEXT else hash(tuple(values))
    except ANY_ERROR:
        for value in values:
            if _can_change(value):
                reason = f"{type(value).__name__} is no {field.kind.value}: it can change after it was given"
                raise UnfitValueError(reason) from None


def _can_change(value: object) -> bool:
    try:
        hash(value)
    except ANY_ERROR:
        return True
    return False


def _fixed_text(values: list[Any], dtype: np.dtype[Any]) -> Array:
    encoded = list(map(str.encode, values))
    if max(map(len, encoded), default=0) > dtype.itemsize:
        _check_text(encoded, dtype.itemsize)
    if b"\0" in b"".join(encoded):
        check_ends(values)
    return np.array(encoded, dtype)


def _fixed_bytes(values: list[Any], dtype: np.dtype[Any]) -> Array:
    if values and (set(map(type, values)) != {bytes} or max(map(len, values)) > dtype.itemsize):
        _check_text(values, dtype.itemsize)
    return np.array(values, dtype)


def _check_text(values: list[Any], width: int) -> None:
    """Raises UnfitValueError for the first value that is not bytes, or too long."""
    for value in values:
        if not isinstance(value, bytes):
            raise UnfitValueError(f"expected bytes, got {type(value).__name__}")
        if len(value) > width:
            raise UnfitValueError(f"{value!r} is longer than {width} bytes")
