"""Items that a pane keeps, each with a number: small hash tables, or lists, in one array of words.

`Distinct` keeps the different values, `Quantile` buckets, `ApproxDistinct` registers. A join keeps messages, which may
be equal: a list has them side by side, in order of arrival.

    table, a segment of words:   | number | item ... | number | item ... | ... |
    of registers, from 64 on:    | eight numbers, a byte each | ... |

A number of 0 marks an empty entry. A pane owns its segments (see `segments`): each is exchanged for one twice as long
when three quarters are full, or all of a list, and freed with the pane. For each table a pane has a `segment`, 0
without one, and the number of items, DENSE where they are bytes.
"""

from typing import Any, NamedTuple

import numpy as np

from bettong.application.windows.approx_distinct import REGISTERS, SPARSE_MAX
from bettong.frames.columns import Array
from bettong.machine_code import allocating, inlined, kernel
from bettong.worker.arrays import with_rows
from bettong.worker.state.key_table import mixed
from bettong.worker.state.segments import allocate_segment, free_segment, no_segments

# What happens to the number of an item that is there already. Where it is kept, it says how many items came before; in
# a list, too, where no item is searched for.
COUNTED, GREATEST, KEPT, LISTED = range(4)
# Columns of `Folds.items`: which word of a pane, from its accumulators on, has the segment (the next one has the number
# of items); which loaded row has the item's number, 0 where none is added (the next rows have its words); how many
# words an item has; and what happens to its number.
WORD, LOADED, ITEM_WORDS, NUMBERS = range(4)
# The words of a pane for each kind.
PANE_WORDS = 2
DENSE = -1
# The numbers of registers are below this.
NUMBER_LIMIT = 64
DENSE_POWER, DENSE_WORDS = 9, 512
_BYTES, _BYTE = 8, 255
_FIRST_WORDS, _FIRST_ITEMS = 4096, 4


class ItemArrays(NamedTuple):
    """Words of segments; see `no_segments`."""

    words: Array
    spare: Array
    used: Array


class ItemSegments:
    """The tables of all panes of a partition."""

    def __init__(self) -> None:
        self.words = np.zeros(_FIRST_WORDS, np.int64)
        self._spare, self._used = no_segments()

    @property
    def arrays(self) -> ItemArrays:
        """As kernels take them."""
        return ItemArrays(self.words, self._spare, self._used)

    def grow(self) -> None:
        """Doubles the words."""
        self.words = with_rows(self.words, 2 * len(self.words))


@kernel
def make_room(kind: Any, row_words: Any, row: Any, at: Any, items: Any) -> Any:
    """Makes room for one more item in a table of a pane; `at`: where the pane's words begin.

    Returns False where there are too few words: then the table is as before.
    """
    word = at + kind[WORD]
    segment, count = row_words[row, word], row_words[row, word + 1]
    if count == DENSE:
        return True
    entry = 1 + kind[ITEM_WORDS]
    if kind[NUMBERS] == GREATEST and count >= SPARSE_MAX:
        return _make_dense(row_words, row, word, items)
    if segment and _has_room(kind, segment, count):
        return True
    power = segment & 63
    if segment:
        power += 1
    else:
        while 1 << power < _FIRST_ITEMS * entry:
            power += 1
    taken = take_segment(power, items)
    if taken == 0:
        return False
    if segment:
        _move(kind, segment, taken, items.words)
        give_back(segment, items)
    row_words[row, word] = taken
    return True


@kernel
def add_item(
    kind: Any, row_words: Any, row: Any, at: Any, items: Any, loaded: Any, first: Any, step: Any
) -> None:
    """Adds an item to a table of a pane, which has room for it.

    Its number is `loaded[first]`, its words follow, each a `step` further.
    """
    word = at + kind[WORD]
    segment, words = row_words[row, word], items.words
    number = loaded[first]
    if row_words[row, word + 1] == DENSE:
        _raise_register(segment >> 6, loaded[first + step], number, words)
        return
    entry = (segment >> 6) + row_words[row, word + 1] * (1 + kind[ITEM_WORDS])
    if kind[NUMBERS] != LISTED:
        entry = _find(segment, 1 + kind[ITEM_WORDS], words, loaded, first + step, step)
    if words[entry] == 0:
        row_words[row, word + 1] += 1
        words[entry] = row_words[row, word + 1] if kind[NUMBERS] >= KEPT else number
        for index in range(kind[ITEM_WORDS]):
            words[entry + 1 + index] = loaded[first + step * (1 + index)]
    elif kind[NUMBERS] == COUNTED:
        words[entry] += number
    elif kind[NUMBERS] == GREATEST:
        words[entry] = max(words[entry], number)


@allocating
def join_items(
    kind: Any, row_words: Any, row: Any, at: Any, other: Any, other_row: Any, other_at: Any, items: Any
) -> Any:
    """Adds the items of another table, which does not change; `at`, `other_at`: where the panes' words begin.

    Returns False where there are too few words: then some of the items may be added, and some not.
    """
    word = at + kind[WORD]
    segment, count = other[other_row, other_at + kind[WORD]], other[other_row, other_at + kind[WORD] + 1]
    if segment == 0:
        return True
    start, end = segment >> 6, (segment >> 6) + (1 << (segment & 63))
    if row_words[row, word] == 0:
        taken = take_segment(segment & 63, items)
        if taken:
            items.words[taken >> 6 : (taken >> 6) + end - start] = items.words[start:end]
            row_words[row, word], row_words[row, word + 1] = taken, count
        return taken != 0
    if count == DENSE:
        if row_words[row, word + 1] != DENSE and not _make_dense(row_words, row, word, items):
            return False
        for register in range(REGISTERS):
            number = _number_of(start, register, items.words)
            if number:
                _raise_register(row_words[row, word] >> 6, register, number, items.words)
        return True
    for found in _entries(kind, segment, count, items.words):
        if not make_room(kind, row_words, row, at, items):
            return False
        add_item(kind, row_words, row, at, items, items.words, found, 1)
    return True


@allocating
def _entries(kind: Any, segment: Any, count: Any, words: Any) -> Any:
    """Where the items of a table are; numbered ones in the order in which they came."""
    start, entry, listed = segment >> 6, 1 + kind[ITEM_WORDS], 0
    found = np.empty(count, np.int64)
    for at in range(start, start + _room(segment, entry) * entry, entry):
        if words[at]:
            found[words[at] - 1 if kind[NUMBERS] >= KEPT else listed] = at
            listed += 1
    return found


@kernel
def list_items(segment: Any, count: Any, item_words: Any, words: Any, found: Any) -> Any:
    """Fills the first rows of `found` with the items of a table, number first; and returns how many there are."""
    start, listed = segment >> 6, 0
    if count == DENSE:
        for register in range(REGISTERS):
            number = _number_of(start, register, words)
            if number:
                found[listed, 0], found[listed, 1] = number, register
                listed += 1
        return listed
    for entry in range(start, start + _room(segment, 1 + item_words) * (1 + item_words), 1 + item_words):
        if words[entry]:
            for index in range(1 + item_words):
                found[listed, index] = words[entry + index]
            listed += 1
    return listed


@kernel
def give_back(segment: Any, items: Any) -> None:
    """Frees a segment, if it is one."""
    free_segment(segment, items.words, items.spare)


@kernel
def take_segment(power: Any, items: Any) -> Any:
    """Allocates a segment of 2**power words, all 0; returns 0 where there are too few."""
    segment = allocate_segment(power, items.words, items.spare, items.used)
    if segment:
        items.words[segment >> 6 : (segment >> 6) + (1 << power)] = 0
    return segment


@inlined
def _room(segment: Any, entry: Any) -> Any:
    """How many items a table has room for: a power of two."""
    power = segment & 63
    while entry > 1:
        entry, power = (entry + 1) >> 1, power - 1
    return 1 << power


@inlined
def _has_room(kind: Any, segment: Any, count: Any) -> Any:
    """Whether a table with that many items has room for one more."""
    room = _room(segment, 1 + kind[ITEM_WORDS])
    return count < room if kind[NUMBERS] == LISTED else 4 * count < 3 * room


@inlined
def _find(segment: Any, entry: Any, words: Any, loaded: Any, first: Any, step: Any) -> Any:
    """Where an item is in a table, or would be."""
    start, mask = segment >> 6, np.uint64(_room(segment, entry) - 1)
    state = np.uint64(0)
    for index in range(entry - 1):
        state = mixed(state, np.uint64(loaded[first + step * index]))
    while True:
        at = start + np.int64(state & mask) * entry
        if words[at] == 0:
            return at
        same = True
        for index in range(entry - 1):
            if words[at + 1 + index] != loaded[first + step * index]:
                same = False
                break
        if same:
            return at
        state += np.uint64(1)


@kernel
def _move(kind: Any, segment: Any, taken: Any, words: Any) -> None:
    """Copies the items of a table into an empty one."""
    start, entry = segment >> 6, 1 + kind[ITEM_WORDS]
    for at in range(start, start + _room(segment, entry) * entry, entry):
        if words[at]:
            to = (taken >> 6) + at - start
            if kind[NUMBERS] != LISTED:
                to = _find(taken, entry, words, words, at + 1, 1)
            for index in range(entry):
                words[to + index] = words[at + index]


@kernel
def _make_dense(row_words: Any, row: Any, word: Any, items: Any) -> Any:
    """Turns the items of a table into bytes of registers; returns False where there are too few words."""
    taken = take_segment(DENSE_POWER, items)
    if taken:
        _spread(row_words[row, word], taken, items.words)
        give_back(row_words[row, word], items)
        row_words[row, word], row_words[row, word + 1] = taken, DENSE
    return taken != 0


@kernel
def _spread(segment: Any, taken: Any, words: Any) -> None:
    """Copies the registers of a table into bytes."""
    start = segment >> 6
    for at in range(start, start + 2 * _room(segment, 2), 2):
        if words[at]:
            _raise_register(taken >> 6, words[at + 1], words[at], words)


@inlined
def _number_of(start: Any, register: Any, words: Any) -> Any:
    return words[start + register // _BYTES] >> register % _BYTES * _BYTES & _BYTE


@inlined
def _raise_register(start: Any, register: Any, number: Any, words: Any) -> None:
    """Raises the number of a register to at least that. Numbers are less than 64, so the sign bit stays as it is."""
    at, shift = start + register // _BYTES, register % _BYTES * _BYTES
    more = number - (words[at] >> shift & _BYTE)
    if more > 0:
        words[at] += more << shift
