"""Maps keys of fixed width to slots: 0, 1, 2 ... in the order in which keys were first seen.

Open addressing with linear probing, at most half full. Keys are compared whole: a hash that collides costs a probe,
never a wrong answer.

    table, a row for each bucket:  | tag, 64 bits | slot + 1, 64 bits; 0: empty |
    keys, a row for each slot:     | words of the key, 64 bits each              |

A key of one word is its own tag, and found by one read of memory; the tag of a longer one is a hash, so its words are
compared too. With many keys a search mostly waits for memory: in calls of many rows a bucket of a large table is
prefetched some rows ahead.
"""

from typing import Any

import numpy as np

from bettong.frames.columns import Array
from bettong.machine_code import inlined, kernel
from bettong.worker.arrays import with_rows
from bettong.worker.prefetching import AHEAD, CACHED_BYTES, prefetch

_FIRST_CAPACITY = 1024
_FOLD = np.uint64(32)
_ONE = np.uint64(1)
_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio: Knuth, TAOCP 3, 6.4


class KeyTable:
    """Slots of the keys of one partition. The slot of a removed key is used again."""

    def __init__(self, words: int) -> None:
        self.words = words
        self._keys = np.zeros((_FIRST_CAPACITY, words), np.uint64)
        self._table = np.zeros((2 * _FIRST_CAPACITY, 2), np.uint64)
        # Free slots: the first `_free_count`, of which the last is used next.
        self._free = np.zeros(0, np.int32)
        self._free_count = 0
        self.count = 0

    @property
    def live(self) -> int:
        """How many keys it has."""
        return self.count - self._free_count

    def slots(self, column: Array) -> Array:
        """The slot of each row's key; new keys get free ones."""
        return self.slots_of(words_of(column))

    def slots_of(self, words: Array) -> Array:
        """The same for keys as words: shape (rows, `words`), contiguous."""
        slots = np.empty(len(words), np.int32)
        row = 0
        while True:
            row, self.count, self._free_count = _find_or_add(
                words, self._keys, self._table, slots, row, self.count, self._free, self._free_count
            )
            if row == len(words):
                return slots
            self._grow()

    def find(self, column: Array) -> Array:
        """The slot of each row's key; -1 where it has none."""
        return self.find_of(words_of(column))

    def find_of(self, words: Array) -> Array:
        """The same for keys as words."""
        slots = np.empty(len(words), np.int32)
        _find(words, self._keys, self._table, slots)
        return slots

    def remove(self, slots: Array) -> None:
        """Removes the keys at these slots, each of which is in use and given once."""
        if not len(slots):
            return
        _remove(slots, self._keys, self._table)
        stop = self._free_count + len(slots)
        if stop > len(self._free):
            self._free = with_rows(self._free, 2 * stop)
        self._free[self._free_count : stop] = slots
        self._free_count = stop

    def used(self) -> Array:
        """By slot, whether a key has it."""
        used = np.ones(self.count, np.bool_)
        used[self._free[: self._free_count]] = False
        return used

    def in_use(self) -> Array:
        """The slots of all keys, in order."""
        return np.flatnonzero(self.used()) if self._free_count else np.arange(self.count)

    @property
    def keys(self) -> Array:
        """The words of the key at each slot, free slots included."""
        return self._keys[: self.count]

    def _grow(self) -> None:
        self._keys = with_rows(self._keys, 2 * len(self._keys))
        # It grows only where all slots are in use.
        self._table = np.zeros((2 * len(self._keys), 2), np.uint64)
        _insert_all(self._keys, self._table, self.count)


class DistinctSlots:
    """Finds the distinct slots, in the order in which they come. Keeps a table, so that it need not sort."""

    def __init__(self) -> None:
        self._numbers = np.empty(0, np.int32)

    def of(self, slots: Array, *, capacity: int) -> tuple[Array, Array]:
        """The different ones, and for each slot its index among them. All are below `capacity`."""
        if len(self._numbers) < capacity:
            self._numbers = np.full(capacity, -1, np.int32)
        found = np.empty(min(len(slots), capacity), np.int32)
        indexes = np.empty(len(slots), np.int64)
        count = _number(slots, self._numbers, found, indexes)
        return found[:count], indexes


def words_per_key(dtype: np.dtype[Any]) -> int:
    """How many 64-bit words hold a key of this type."""
    return 1 if dtype.kind in "iu" else -(-dtype.itemsize // 8)


def words_of(column: Array) -> Array:
    """Each row's key as 64-bit words: integers extended, text and bytes padded with NUL."""
    if column.dtype.kind in "iu":
        return column.astype(np.int64).view(np.uint64).reshape(-1, 1)
    size = column.dtype.itemsize
    words = words_per_key(column.dtype)
    column = np.ascontiguousarray(column)
    if size in (1, 2, 4, 8):
        return column.view(f"<u{size}").astype(np.uint64).reshape(-1, 1)
    return column.astype(f"S{8 * words}").view("<u8").reshape(-1, words)


# Buckets are unsigned below: for signed ones Numba adds code that counts from the end. What is called for each row is
# inlined.


@inlined
def mixed(state: Any, word: Any) -> Any:
    """Adds a word to a hash."""
    state = (state ^ word) * _MIX
    return state ^ (state >> _FOLD)


@inlined
def _tag(words: Any, row: Any) -> Any:
    """The word of a key that has one; of a longer key a hash."""
    if words.shape[1] == 1:
        return words[row, 0]
    state = np.uint64(0)
    for word in range(words.shape[1]):
        state = mixed(state, words[row, word])
    return state


@inlined
def _home(tag: Any, shift: Any) -> Any:
    """Where probing starts: the high bits of a product, which every bit of the tag affects."""
    state = tag * _MIX
    state ^= state >> _FOLD
    return (state * _MIX) >> shift


@kernel
def _shift(table: Any) -> Any:
    """How far a hash is shifted to give a bucket of a table, whose size is a power of two."""
    bits = 64
    while 1 << (64 - bits) < len(table):
        bits -= 1
    return np.uint64(bits)


@inlined
def _same(left: Any, left_row: Any, right: Any, right_row: Any) -> Any:
    """Whether keys with the same tag are the same."""
    if left.shape[1] > 1:
        for word in range(left.shape[1]):
            if left[left_row, word] != right[right_row, word]:
                return False
    return True


@inlined
def _bucket(words: Any, row: Any, keys: Any, table: Any, shift: Any) -> Any:
    """Where in the table a key is, or would be."""
    mask, tag = np.uint64(len(table) - 1), _tag(words, row)
    bucket = _home(tag, shift)
    while table[bucket, 1] and not (
        table[bucket, 0] == tag and _same(words, row, keys, table[bucket, 1] - _ONE)
    ):
        bucket = (bucket + _ONE) & mask
    return bucket


@kernel
def _find(words: Any, keys: Any, table: Any, slots: Any) -> None:
    """The slot of each key, or -1."""
    shift = _shift(table)
    for row in range(np.uint64(len(words))):
        slots[row] = np.int64(table[_bucket(words, row, keys, table, shift), 1]) - 1


@kernel
def _find_or_add(
    words: Any, keys: Any, table: Any, slots: Any, start: Any, count: Any, free: Any, free_count: Any
) -> Any:
    """Fills `slots` from `start` on; stops before the first row whose new key finds `keys` full."""
    shift, rows, is_large = _shift(table), np.uint64(len(words)), table.nbytes > CACHED_BYTES
    for block in range(np.uint64(start), rows, AHEAD):
        behind = min(block + AHEAD, rows)
        if is_large:
            for row in range(behind, min(behind + AHEAD, rows)):
                prefetch(table, _home(_tag(words, row), shift))
        for row in range(block, behind):
            bucket = _bucket(words, row, keys, table, shift)
            if not table[bucket, 1]:
                if free_count:
                    free_count -= 1
                    slot = np.int64(free[free_count])
                elif count == len(keys):
                    return np.int64(row), count, free_count
                else:
                    slot = np.int64(count)
                    count += 1
                for word in range(words.shape[1]):
                    keys[slot, word] = words[row, word]
                table[bucket, 0], table[bucket, 1] = _tag(words, row), slot + 1
            slots[row] = table[bucket, 1] - _ONE
    return len(words), count, free_count


@kernel
def _remove(slots: Any, keys: Any, table: Any) -> None:
    """Empties the buckets of keys, and moves back what was probed past them: Knuth, TAOCP 3, 6.4, algorithm R."""
    mask, shift = np.uint64(len(table) - 1), _shift(table)
    for index in range(len(slots)):
        hole = _bucket(keys, np.uint64(slots[index]), keys, table, shift)
        probed = (hole + _ONE) & mask
        while table[probed, 1]:
            home = _home(table[probed, 0], shift)
            if ((probed - home) & mask) >= ((probed - hole) & mask):
                table[hole, 0], table[hole, 1] = table[probed, 0], table[probed, 1]
                hole = probed
            probed = (probed + _ONE) & mask
        table[hole, 0], table[hole, 1] = np.uint64(0), np.uint64(0)


@kernel
def _insert_all(keys: Any, table: Any, count: Any) -> None:
    mask, shift = np.uint64(len(table) - 1), _shift(table)
    for slot in range(count):
        tag = _tag(keys, slot)
        bucket = _home(tag, shift)
        while table[bucket, 1]:
            bucket = (bucket + _ONE) & mask
        table[bucket, 0], table[bucket, 1] = tag, slot + 1


@kernel
def _number(slots: Any, numbers: Any, found: Any, indexes: Any) -> Any:
    """Numbers slots as they come; `numbers` is all -1 before and after."""
    count = 0
    for row in range(len(slots)):
        slot = np.uint64(slots[row])
        if numbers[slot] < 0:
            numbers[slot] = count
            found[count] = slots[row]
            count += 1
        indexes[row] = numbers[slot]
    for number in range(count):
        numbers[np.uint64(found[number])] = -1
    return count
