"""Values of fixed-width columns as words of 64 bits, and back: as they are, or so that words sort as values do."""

from typing import Any

import numpy as np

from bettong.frames.columns import Array
from bettong.schema.fields import Field, Kind
from bettong.worker.state.key_table import words_of, words_per_key

# The sign bit. With it flipped, unsigned integers sort as signed ones.
_SIGN = np.uint64(1 << 63)
_ALL_BUT_SIGN = np.int64(2**63 - 1)


def words_for(field: Field) -> int:
    """How many words a value of the field has."""
    return words_per_key(_dtype(field)) if field.kind in (Kind.TEXT, Kind.BYTES) else 1


def raw_words(field: Field, column: Array) -> Array:
    """The words of each value, shape (words, rows)."""
    if field.kind in (Kind.TEXT, Kind.BYTES):
        return words_of(column).view(np.int64).T
    if field.kind is Kind.FLOAT:
        return np.asarray(column.astype(np.float64, copy=False).view(np.int64)).reshape(1, -1)
    return np.asarray(column.astype(np.int64, copy=False)).reshape(1, -1)


def values_in(field: Field, words: Array) -> Array:
    """The values of rows of words, shape (rows, words): integers in 64 bits, floats too."""
    own, dtype = np.ascontiguousarray(words), _dtype(field)
    if field.kind in (Kind.TEXT, Kind.BYTES):
        return own.view(f"S{8 * own.shape[1]}").ravel().astype(dtype)
    if field.kind is Kind.FLOAT:
        return own.view(np.float64).ravel()
    return own.view(np.uint64).ravel() if dtype == np.uint64 else own.ravel()


def ordered_words(field: Field, column: Array, *, are_words: bool = False) -> Array:
    """The words of each value, shape (words, rows): one value is less than another where its words are.

    `are_words`: the inverse: `column` holds such words, shape (rows, words); returns the raw ones, in that shape.
    """
    if field.kind in (Kind.TEXT, Kind.BYTES):
        if are_words:
            return (column.view(np.uint64) ^ _SIGN).byteswap().view(np.int64)
        return (words_of(column).astype(np.uint64).byteswap() ^ _SIGN).view(np.int64).T
    if field.kind is Kind.FLOAT:
        # -0.0 equals 0.0. The bits of negative numbers sort in reverse.
        bits = column if are_words else raw_words(field, column + 0.0)
        return np.where(bits < 0, bits ^ _ALL_BUT_SIGN, bits)
    words = column if are_words else raw_words(field, column)
    return (words.view(np.uint64) ^ _SIGN).view(np.int64) if _dtype(field) == np.uint64 else words


def python_values(kind: Kind, values: Array) -> list[Any]:
    """The values as Python objects."""
    if kind is Kind.TEXT:
        return [value.decode("utf-8", "replace") for value in values.tolist()]
    if kind is Kind.BYTES:
        return list(np.ascontiguousarray(values).view(f"V{values.itemsize}").tolist())
    return list(values.astype(bool).tolist() if kind is Kind.BOOL else values.tolist())


def _dtype(field: Field) -> np.dtype[Any]:
    assert field.dtype is not None  # noqa: S101 - its width is fixed
    return field.dtype
