"""Arrays in numpy's own format, as increments hold them. Trusts none of it: anyone may have written to the store.

`numpy.load` allocates what a header asks for before it looks at how much is there.
"""

import ast
import io
import math
import struct
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.lib import format as npy

from bettong.frames.columns import Array

# Bytes of a header: for some hundred fields of a record. Numpy would not read a longer one either.
_HEADER_BYTES_MAX = 10_000
# Beside a length of 0 any other is possible: bounded by what numpy can count to.
_LENGTH_MAX = 1 << 31
_HEADER = {"descr", "fortran_order", "shape"}
# The length of a header, and how its text is encoded, by the version of the format: see numpy's NEP 1.
_VERSIONS = {(1, 0): ("<H", "latin1"), (2, 0): ("<I", "latin1"), (3, 0): ("<I", "utf-8")}
# What Python's parser and numpy's raise for a text that numpy has not written.
_FAULTS = (
    ValueError,
    TypeError,
    SyntaxError,
    LookupError,
    ArithmeticError,
    AttributeError,
    MemoryError,
    RecursionError,
    struct.error,
)


def bytes_of(*arrays: Array) -> bytes:
    """Arrays as bytes, one after the other."""
    file = io.BytesIO()
    for each in arrays:
        np.save(file, each, allow_pickle=False)
    return file.getvalue()


def read_array(file: io.BytesIO, *, dimensions: int) -> Array:
    """Reads the next array. Allocates no more memory than the bytes that are left.

    Raises ValueError unless there is one of that many dimensions.
    """
    try:
        shape, order, kind = _header(file)
    except _FAULTS as error:
        raise ValueError(f"not the header of an array ({type(error).__name__}: {error!s:.100})") from None
    if len(shape) != dimensions or kind.hasobject or not kind.itemsize:
        raise ValueError(f"an array of {kind!s:.100} in {len(shape)} dimensions, expected {dimensions}")
    size, left = math.prod(shape) * kind.itemsize, file.getbuffer().nbytes - file.tell()
    if size > left or max(shape) > _LENGTH_MAX:
        raise ValueError(f"an array of {size} bytes, but {left} are left")
    found = np.empty(size, np.uint8)
    file.readinto(found.data)
    return found.view(kind).reshape(shape, order=order)


def _header(file: io.BytesIO) -> tuple[tuple[int, ...], Literal["C", "F"], np.dtype[Any]]:
    length_format, encoding = _VERSIONS[npy.read_magic(file)]
    (length,) = struct.unpack(length_format, file.read(struct.calcsize(length_format)))
    if length > _HEADER_BYTES_MAX:
        raise ValueError(f"it has {length} bytes, at most {_HEADER_BYTES_MAX}")
    return _described(file.read(length).decode(encoding))


# Python's parser takes as long as reading a small array, and many arrays have the same header.
@lru_cache(maxsize=1024)
def _described(text: str) -> tuple[tuple[int, ...], Literal["C", "F"], np.dtype[Any]]:
    header = ast.literal_eval(text)
    shape, by_column = header["shape"], header["fortran_order"]
    if header.keys() != _HEADER or type(by_column) is not bool or type(shape) is not tuple:
        raise ValueError("other entries than numpy writes")
    if any(type(each) is not int or each < 0 for each in shape):
        raise ValueError(f"a shape of {shape!s:.100}")
    return shape, "F" if by_column else "C", npy.descr_to_dtype(header["descr"])
