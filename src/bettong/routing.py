"""Assigns keys to partitions, and splits columns by key in one pass.

A partition is `fnv1a64(bytes of the key), finished by a 64-bit mix, modulo the number of partitions`. The bytes of a
key are its UTF-8 text, its bytes without trailing NUL, or its integer as 8 bytes little-endian; of a tuple, for each
part its length in bytes as 4 bytes little-endian, then its bytes. So a key has the same partition whether it comes from
a column, from a function, or from another language.

FNV-1a: RFC 9923. The mix is the finalizer of MurmurHash3 (public domain, A. Appleby): FNV's low bits alone are poorly
distributed for short keys. Implemented here because no library hashes a whole column of short keys in one call.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from bettong.application.key import Key
from bettong.frames.columns import Array, Columns
from bettong.frames.key_values import key_bytes
from bettong.machine_code import allocating, kernel
from bettong.schema.fields import Kind
from bettong.schema.key_types import KeyValue

_FNV_OFFSET = np.uint64(0xCBF29CE484222325)
_FNV_PRIME = np.uint64(0x100000001B3)
_MIX_1 = np.uint64(0xFF51AFD7ED558CCD)
_MIX_2 = np.uint64(0xC4CEB9FE1A85EC53)
_SHIFT = np.uint64(33)


@dataclass(frozen=True, slots=True)
class Split:
    """Rows in the order of their partitions: those of `p` are `bounds[p]:bounds[p + 1]` of `order`."""

    order: Array
    bounds: list[int]


def partition_of(key: KeyValue, partitions: int) -> int:
    """The partition of one key."""
    return int(partitions_of_keys([key], partitions)[0])


def partitions_of(columns: Columns, key: Key, partitions: int) -> Array:
    """The partition of each row, by a field or a function of the message.

    Errors of the function pass through; a key of a type that keys cannot have is a TypeError.
    """
    if isinstance(key, str):
        return _partitions_of_field(columns, key, partitions)
    if isinstance(key, tuple):
        return _partitions_of_fields(columns, key, partitions)
    return partitions_of_keys([key(message) for message in columns.messages()], partitions)


def _partitions_of_field(columns: Columns, name: str, partitions: int) -> Array:
    index = columns.schema.position(name)
    field, column = columns.schema.fields[index], columns.columns[index]
    if isinstance(column, pa.Array):
        content, offsets = _ranges(column)
        # Trailing NULs are ignored, as in bytes of a fixed width, so that equal keys have the same partition.
        padded = field.kind is Kind.BYTES
        return np.asarray(_hash_ranges(content, offsets, partitions, padded))
    if field.kind in (Kind.INT, Kind.BOOL):
        return np.asarray(_hash_fixed(_matrix(column.astype("<i8")), partitions, False))  # noqa: FBT003 - numba takes no keywords
    return np.asarray(_hash_fixed(_matrix(column), partitions, True))  # noqa: FBT003 - numba takes no keywords


def _partitions_of_fields(columns: Columns, names: tuple[str, ...], partitions: int) -> Array:
    """Hashes as `key_bytes` of a tuple: for each part its length in bytes, then its bytes."""
    states = np.full(columns.length, _FNV_OFFSET)
    for name in names:
        index = columns.schema.position(name)
        field, column = columns.schema.fields[index], columns.columns[index]
        if isinstance(column, pa.Array):
            content, offsets = _ranges(column)
            _add_ranges(states, content, offsets, field.kind is Kind.BYTES)
        elif field.kind in (Kind.INT, Kind.BOOL):
            _add_fixed(states, _matrix(column.astype("<i8")), False)  # noqa: FBT003 - as above
        else:
            _add_fixed(states, _matrix(column), True)  # noqa: FBT003 - as above
    return np.asarray(_finish_all(states, partitions))


def _ranges(column: pa.Array) -> tuple[Array, Array]:
    """The bytes of all values of a column, and their offsets: where each begins, and the last one ends."""
    offsets = np.frombuffer(column.buffers()[1], np.int32)[column.offset :][: len(column) + 1]
    data = column.buffers()[2]
    content = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    return _read_only(content), _read_only(offsets)


def partitions_of_keys(keys: Sequence[KeyValue], partitions: int) -> Array:
    """The partition of each key, given as Python values."""
    encoded = list(map(key_bytes, keys))
    offsets = np.zeros(len(encoded) + 1, np.int32)
    np.cumsum([len(each) for each in encoded], out=offsets[1:])
    content = np.frombuffer(b"".join(encoded), np.uint8)
    return np.asarray(_hash_ranges(_read_only(content), _read_only(offsets), partitions, False))  # noqa: FBT003 - numba takes no keywords


def split(assignment: Array, partitions: int) -> Split:
    """Sorts row numbers by partition; rows of one partition keep their order."""
    order, bounds = _counting_sort(assignment, partitions)
    return Split(order, bounds.tolist())


def _matrix(column: Array) -> Array:
    return _read_only(np.ascontiguousarray(column).view(np.uint8).reshape(len(column), column.itemsize))


def _read_only(array: Array) -> Array:
    """A read-only view, so that Numba does not compile a second version for writable arrays."""
    view = array.view()
    view.flags.writeable = False
    return view


@kernel
def _finish(state: Any) -> Any:
    state ^= state >> _SHIFT
    state *= _MIX_1
    state ^= state >> _SHIFT
    state *= _MIX_2
    return state ^ (state >> _SHIFT)


@allocating
def _hash_fixed(matrix: Any, partitions: Any, padded: Any) -> Any:
    rows, width = matrix.shape
    result = np.empty(rows, np.uint16)
    for row in range(rows):
        size = width
        while padded and size > 0 and matrix[row, size - 1] == 0:
            size -= 1
        state = _FNV_OFFSET
        for column in range(size):
            state = (state ^ np.uint64(matrix[row, column])) * _FNV_PRIME
        result[row] = _finish(state) % np.uint64(partitions)
    return result


@allocating
def _hash_ranges(content: Any, offsets: Any, partitions: Any, padded: Any) -> Any:
    rows = len(offsets) - 1
    result = np.empty(rows, np.uint16)
    for row in range(rows):
        state = _FNV_OFFSET
        stop = offsets[row + 1]
        while padded and stop > offsets[row] and content[stop - 1] == 0:
            stop -= 1
        for position in range(offsets[row], stop):
            state = (state ^ np.uint64(content[position])) * _FNV_PRIME
        result[row] = _finish(state) % np.uint64(partitions)
    return result


@kernel
def _add_length(state: Any, length: Any) -> Any:
    for shift in range(0, 32, 8):
        state = (state ^ np.uint64((length >> shift) & 0xFF)) * _FNV_PRIME
    return state


@kernel
def _add_fixed(states: Any, matrix: Any, padded: Any) -> None:
    rows, width = matrix.shape
    for row in range(rows):
        size = width
        while padded and size > 0 and matrix[row, size - 1] == 0:
            size -= 1
        state = _add_length(states[row], size)
        for column in range(size):
            state = (state ^ np.uint64(matrix[row, column])) * _FNV_PRIME
        states[row] = state


@kernel
def _add_ranges(states: Any, content: Any, offsets: Any, padded: Any) -> None:
    for row in range(len(offsets) - 1):
        stop = offsets[row + 1]
        while padded and stop > offsets[row] and content[stop - 1] == 0:
            stop -= 1
        state = _add_length(states[row], stop - offsets[row])
        for position in range(offsets[row], stop):
            state = (state ^ np.uint64(content[position])) * _FNV_PRIME
        states[row] = state


@allocating
def _finish_all(states: Any, partitions: Any) -> Any:
    result = np.empty(len(states), np.uint16)
    for row in range(len(states)):
        result[row] = _finish(states[row]) % np.uint64(partitions)
    return result


@allocating
def _counting_sort(assignment: Any, partitions: Any) -> Any:
    bounds = np.zeros(partitions + 1, np.int64)
    for partition in assignment:
        bounds[partition + 1] += 1
    for partition in range(partitions):
        bounds[partition + 1] += bounds[partition]
    fill = bounds[:-1].copy()
    order = np.empty(len(assignment), np.int64)
    for row in range(len(assignment)):
        partition = assignment[row]
        order[fill[partition]] = row
        fill[partition] += 1
    return order, bounds
