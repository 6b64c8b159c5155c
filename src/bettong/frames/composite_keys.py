"""Keys of several fields as one column of bytes, by which they are looked up: the values concatenated.

    text, bytes    as wide as the field, padded with NUL
    integers       8 bytes, big-endian; all but unsigned ones of 64 bits have their sign bit flipped

So bytes sort as the keys do. The key of no fields, which all messages have, is one NUL.
"""

from collections.abc import Sequence

import numpy as np

from bettong.frames.columns import Array
from bettong.schema.fields import Field, Kind
from bettong.schema.key_types import KeyPart, KeyValue

_SIGN = np.uint64(1 << 63)


def packed_dtype(fields: Sequence[Field]) -> np.dtype[np.bytes_]:
    """The type of the column for keys of these fields, all of a fixed width."""
    return np.dtype(f"S{max(1, sum(map(_width, fields)))}")


def packed(fields: Sequence[Field], columns: Sequence[Array], rows: int) -> Array:
    """Packs columns of the parts of keys into one column."""
    dtype = packed_dtype(fields)
    found = np.zeros((rows, dtype.itemsize), np.uint8)
    start = 0
    for field, column in zip(fields, columns, strict=True):
        if field.kind in (Kind.TEXT, Kind.BYTES):
            values = np.ascontiguousarray(column)
        else:
            values = (
                column.astype(np.uint64 if _is_u64(field) else np.int64).view(np.uint64) ^ _flip(field)
            ).astype(">u8")
        width = _width(field)
        found[:, start : start + width] = values.view(np.uint8).reshape(rows, width)
        start += width
    return found.reshape(-1).view(dtype)


def packed_key(fields: Sequence[Field], key: KeyValue) -> Array | None:
    """A key as a column of one row; None for a key that no message can have."""
    if not isinstance(key, tuple) or len(key) != len(fields):
        return None
    parts = [_part(field, value) for field, value in zip(fields, key, strict=True)]
    columns = [part for part in parts if part is not None]
    return packed(fields, columns, 1) if len(columns) == len(fields) else None


def unpacked(fields: Sequence[Field], keys: Array) -> list[tuple[KeyPart, ...]]:
    """The keys in a packed column."""
    if not fields:
        return [()] * len(keys)
    columns = zip(fields, unpacked_columns(fields, keys), strict=True)
    return list(zip(*(_values(field, column) for field, column in columns), strict=True))


def unpacked_columns(fields: Sequence[Field], keys: Array) -> list[Array]:
    """The parts of the keys in a packed column, a column each: 64-bit integers, text and bytes of the field's width."""
    matrix = np.ascontiguousarray(keys).view(np.uint8).reshape(len(keys), keys.dtype.itemsize)
    found, start = list[Array](), 0
    for field in fields:
        width = _width(field)
        own = np.ascontiguousarray(matrix[:, start : start + width])
        if field.kind in (Kind.TEXT, Kind.BYTES):
            found.append(own.view(f"S{width}").ravel())
        else:
            words = own.view(">u8").astype(np.uint64).ravel() ^ _flip(field)
            found.append(words if _is_u64(field) else words.view(np.int64))
        start += width
    return found


def _values(field: Field, column: Array) -> list[KeyPart]:
    if field.kind is Kind.TEXT:
        return [each.decode("utf-8", "replace") for each in column.tolist()]
    if field.kind is Kind.BYTES:
        return list(column.view(f"V{column.itemsize}").tolist())
    return list((column.astype(np.bool_) if field.kind is Kind.BOOL else column).tolist())


def _part(field: Field, value: KeyPart) -> Array | None:
    if field.kind in (Kind.TEXT, Kind.BYTES):
        if isinstance(value, int):
            return None
        data = value.encode() if isinstance(value, str) else value
        return np.array([data], f"S{_width(field)}") if len(data) <= _width(field) else None
    if not isinstance(value, int):
        return None
    limits = np.iinfo(np.uint64 if _is_u64(field) else np.int64)
    return np.array([value], limits.dtype) if limits.min <= value <= limits.max else None


def _width(field: Field) -> int:
    assert field.dtype is not None  # noqa: S101 - checked when the computation was made
    return field.dtype.itemsize if field.kind in (Kind.TEXT, Kind.BYTES) else 8


def _is_u64(field: Field) -> bool:
    return field.dtype == np.uint64


def _flip(field: Field) -> np.uint64:
    return np.uint64(0) if _is_u64(field) else _SIGN
