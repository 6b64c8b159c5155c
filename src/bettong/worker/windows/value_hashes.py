"""Kernels that hash the values of a column, as `ApproxDistinct` does value by value.

A hash is the BLAKE2b with a result of 8 bytes (RFC 7693) of what MessagePack writes for the value (its specification,
"Formats").
"""

from typing import Any

import numpy as np

from bettong.frames.columns import Array
from bettong.machine_code import allocating, inlined, kernel
from bettong.schema.fields import Kind

# RFC 7693, 2.6 and 2.7: the first 64 bits of the fractions of the square roots of the first eight primes, as SHA-512
# has them; and in which order the words of a block come in a round, of which the last two are the first two again.
_INITIAL = np.array(
    [
        0x6A09E667F3BCC908,
        0xBB67AE8584CAA73B,
        0x3C6EF372FE94F82B,
        0xA54FF53A5F1D36F1,
        0x510E527FADE682D1,
        0x9B05688C2B3E6C1F,
        0x1F83D9ABFB41BD6B,
        0x5BE0CD19137E2179,
    ],
    np.uint64,
)
_ORDERS = np.array(
    [
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
        [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
        [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
        [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
        [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
        [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
        [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
        [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
        [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
    ],
    np.uint8,
)
_ROUNDS, _BLOCK_BYTES, _HASH_BYTES = 12, 128, 8
# What MessagePack needs for a number at most.
_NUMBER_BYTES = 9
# No key, one result of 8 bytes, no tree: RFC 7693, 2.5.
_PARAMETERS = np.uint64(0x01010000 + _HASH_BYTES)
_BIN, _FLOAT, _UNSIGNED, _SIGNED, _STR = 0xC4, 0xCB, 0xCC, 0xD0, 0xD9


def hashes_of(kind: Kind, column: Array) -> Array:
    """The hash of each value of a column of fixed width, as an unsigned integer."""
    rows = len(column)
    found = np.empty(rows, np.uint64)
    if kind is Kind.FLOAT:
        _hash_floats(column.astype(np.float64), found)
    elif kind in (Kind.TEXT, Kind.BYTES):
        # A copy: Numba would compile the kernel a second time for a read-only array.
        raw = np.array(column).view(np.uint8).reshape(rows, column.dtype.itemsize)
        _hash_bytes(raw, kind is Kind.TEXT, found)
    else:
        _hash_integers(column.astype(np.int64), column.dtype == np.uint64, found)
    return found


@allocating
def _hash_integers(values: Any, are_unsigned: Any, found: Any) -> None:
    block, work = np.zeros(_BLOCK_BYTES, np.uint8), np.empty(24, np.uint64)
    for row in range(len(values)):
        block[:_NUMBER_BYTES] = 0
        length = _pack_integer(values[row], values[row] < 0 and not are_unsigned, block)
        found[row] = _hash(block.view(np.uint64), length, work)


@allocating
def _hash_floats(values: Any, found: Any) -> None:
    block, work, bits = np.zeros(_BLOCK_BYTES, np.uint8), np.empty(24, np.uint64), values.view(np.uint64)
    for row in range(len(values)):
        value = values[row]
        block[:_NUMBER_BYTES] = 0
        # A float that equals an integer is hashed as that integer.
        if value == np.floor(value) and -(2.0**63) <= value < 2.0**64:
            is_wide = value >= 2.0**63
            whole = np.int64(value - 2.0**63) ^ np.int64(-(2**63)) if is_wide else np.int64(value)
            length = _pack_integer(whole, value < 0, block)
        else:
            block[0] = _FLOAT
            _put(bits[row], 8, block)
            length = _NUMBER_BYTES
        found[row] = _hash(block.view(np.uint64), length, work)


@allocating
def _hash_bytes(values: Any, are_text: Any, found: Any) -> None:
    width = values.shape[1]
    room = (width + 3 + _BLOCK_BYTES - 1) // _BLOCK_BYTES * _BLOCK_BYTES
    block, work = np.zeros(room, np.uint8), np.empty(24, np.uint64)
    for row in range(len(values)):
        length = width
        block[:] = 0
        # Text ends before the NULs that fill it up.
        while are_text and length and values[row, length - 1] == 0:
            length -= 1
        if are_text and length < 32:
            block[0], head = 0xA0 | length, 1
        elif length < 256:
            block[0], head = _STR if are_text else _BIN, 2
            _put(np.uint64(length), 1, block)
        else:
            block[0], head = _STR + 1 if are_text else _BIN + 1, 3
            _put(np.uint64(length), 2, block)
        for index in range(length):
            block[head + index] = values[row, index]
        found[row] = _hash(block.view(np.uint64), head + length, work)


@kernel
def _pack_integer(value: Any, is_negative: Any, block: Any) -> Any:
    """Writes an integer, whose bits are those of `value`; returns how many bytes it has."""
    bits = np.uint64(value)
    if (is_negative and value >= -32) or (not is_negative and bits < np.uint64(128)):
        block[0] = np.uint8(bits & np.uint64(255))
        return 1
    size = 0
    if is_negative:
        while value < -(1 << (8 * (1 << size) - 1)) and size < 3:
            size += 1
    else:
        while size < 3 and bits >> np.uint64(8 * (1 << size)):
            size += 1
    block[0] = (_SIGNED if is_negative else _UNSIGNED) + size
    _put(bits, 1 << size, block)
    return 1 + (1 << size)


@inlined
def _put(bits: Any, count: Any, block: Any) -> None:
    """The last bytes of a number, the highest first, behind the first byte."""
    for index in range(count):
        block[count - index] = np.uint8(bits >> np.uint64(8 * index) & np.uint64(255))


@allocating
def _hash(words: Any, length: Any, work: Any) -> Any:
    """The hash of so many bytes; `words` hold them in whole blocks, padded with NULs. `work`: room for 24 words."""
    state, vector = work[:8], work[8:]
    state[:] = _INITIAL
    state[0] ^= _PARAMETERS
    start = 0
    while True:
        block = words[start // 8 : start // 8 + 16]
        is_last = start + _BLOCK_BYTES >= length
        start += _BLOCK_BYTES
        vector[:8], vector[8:] = state, _INITIAL
        vector[12] ^= np.uint64(min(start, length))
        if is_last:
            vector[14] = ~vector[14]
        for number in range(_ROUNDS):
            order = _ORDERS[number % 10]
            for column in range(4):
                _mix(vector, column, column + 4, column + 8, column + 12, block, order, 2 * column)
            for column in range(4):
                one, two, three = 4 + (column + 1) % 4, 8 + (column + 2) % 4, 12 + (column + 3) % 4
                _mix(vector, column, one, two, three, block, order, 8 + 2 * column)
        for index in range(8):
            state[index] ^= vector[index] ^ vector[index + 8]
        if is_last:
            return state[0]


@inlined
def _mix(vector: Any, a: Any, b: Any, c: Any, d: Any, words: Any, order: Any, at: Any) -> None:
    """RFC 7693, 3.1."""
    one, two, three, four = vector[a], vector[b], vector[c], vector[d]
    one += two + words[order[at]]
    four = _rotated_right(four ^ one, 32)
    three += four
    two = _rotated_right(two ^ three, 24)
    one += two + words[order[at + 1]]
    four = _rotated_right(four ^ one, 16)
    three += four
    two = _rotated_right(two ^ three, 63)
    vector[a], vector[b], vector[c], vector[d] = one, two, three, four


@inlined
def _rotated_right(word: Any, bits: Any) -> Any:
    """The word with its bits rotated to the right."""
    return word >> np.uint64(bits) | word << np.uint64(64 - bits)
