"""Items of panes as a snapshot holds them: arrays of words, a row each, pane after pane.

    of all kinds:             | how many items it has of each kind, DENSE where they are bytes |   a pane
    of each kind:             | number | item ... |                                                an item
    of each of registers:     | eight numbers, a byte each | ... |                                 a pane of DENSE ones

Each kind has an array of its own, as wide as its items are, and registers that are bytes stay bytes: a snapshot is
about as large as the tables themselves. See `item_tables`.
"""

from itertools import islice
from typing import Any

import numpy as np

from bettong.application.windows.approx_distinct import REGISTERS
from bettong.frames.columns import Array
from bettong.machine_code import allocating, kernel
from bettong.worker.state.item_tables import (
    DENSE,
    DENSE_POWER,
    DENSE_WORDS,
    GREATEST,
    ITEM_WORDS,
    NUMBER_LIMIT,
    NUMBERS,
    WORD,
    ItemSegments,
    add_item,
    list_items,
    make_room,
    take_segment,
)


def arrays_of(kinds: Array) -> int:
    """How many arrays hold items of these kinds."""
    return 1 + len(kinds) + len(_registers(kinds)) if len(kinds) else 0


def saved_items(kinds: Array, accumulators: Array, words: Array) -> list[Array]:
    """The items of panes, in one order for equal ones. `accumulators`: a row a pane; `words`: of all items."""
    if not len(kinds):
        return []
    counts = accumulators[:, kinds[:, WORD] + 1]
    saved = [counts]
    for kind, held in zip(kinds, np.maximum(counts, 0).T, strict=True):
        found = np.zeros((int(held.sum()), 1 + int(kind[ITEM_WORDS])), np.int64)
        list_all(accumulators, kind, words, found)
        # Equal tables may hold their items in different orders. Numbered ones stay in order of arrival.
        owners = np.repeat(np.arange(len(held)), held)
        saved.append(found[np.lexsort((*found.T[::-1], owners))])
    for index in _registers(kinds):
        segments = accumulators[counts[:, index] == DENSE, kinds[index, WORD]]
        saved.append(words[(segments >> 6)[:, np.newaxis] + np.arange(DENSE_WORDS)])
    return saved


def are_items(kinds: Array, saved: list[Array], panes: int) -> bool:
    """Whether `saved_items` can have returned these for that many panes. Anyone may have written them."""
    if not len(kinds):
        return not saved
    if len(saved) != arrays_of(kinds) or any(each.dtype != np.int64 for each in saved):
        return False
    counts, rest = saved[0], iter(saved[1:])
    if counts.shape != (panes, len(kinds)):
        return False
    for kind, held, rows in zip(kinds, counts.T, islice(rest, len(kinds)), strict=True):
        least = DENSE if kind[NUMBERS] == GREATEST else 0
        # No count is more than all, so their sum cannot overflow.
        if ((held < least) | (held > len(rows))).any() or len(rows) != np.maximum(held, 0).sum():
            return False
        if rows.shape[1:] != (1 + kind[ITEM_WORDS],) or (rows[:, 0] <= 0).any():
            return False
        if kind[NUMBERS] == GREATEST and not _are_registers(rows):
            return False
    return all(
        dense.shape == ((counts[:, index] == DENSE).sum(), DENSE_WORDS)
        and bool((np.ascontiguousarray(dense).view(np.uint8) < NUMBER_LIMIT).all())
        for index, dense in zip(_registers(kinds), rest, strict=True)
    )


def put_items(
    kinds: Array, saved: list[Array], panes: Array, words: Array, at: int, items: ItemSegments
) -> None:
    """Adds items, checked by `are_items`, to panes without any. `words`: of panes, accumulators from column `at` on."""
    counts, rest = saved[0], iter(saved[1:])
    for kind, held, rows in zip(kinds, counts.T, islice(rest, len(kinds)), strict=True):
        owners, row = np.repeat(panes, np.maximum(held, 0)), 0
        own = np.array(rows)  # read-only arrays are of another type to Numba
        while (row := _put_all(row, owners, own, words, at, kind, items.arrays)) < len(own):
            items.grow()
    for index, dense in zip(_registers(kinds), rest, strict=True):
        owners, row = panes[counts[:, index] == DENSE], 0
        own = np.array(dense)
        while (row := _put_dense(row, owners, own, words, at + kinds[index, WORD], items.arrays)) < len(own):
            items.grow()


def _registers(kinds: Array) -> list[int]:
    """The indexes of the kinds that are registers."""
    return [int(each) for each in np.flatnonzero(kinds[:, NUMBERS] == GREATEST)]


def _are_registers(rows: Array) -> bool:
    numbers, registers = rows.T
    return bool((numbers < NUMBER_LIMIT).all() and ((registers >= 0) & (registers < REGISTERS)).all())


@kernel
def list_all(accumulators: Any, kind: Any, words: Any, found: Any) -> None:
    """Fills rows with the items of one kind, number first, of one pane after the other."""
    listed = 0
    for pane in range(len(accumulators)):
        segment, count = accumulators[pane, kind[WORD]], accumulators[pane, kind[WORD] + 1]
        if count > 0:
            listed += list_items(segment, count, kind[ITEM_WORDS], words, found[listed:])


@kernel
def _put_all(start: Any, owners: Any, rows: Any, words: Any, at: Any, kind: Any, items: Any) -> Any:
    """Stops before the first row for which there is no room, and returns it."""
    flat, width = rows.reshape(-1), rows.shape[1]
    for row in range(start, len(rows)):
        if not make_room(kind, words, owners[row], at, items):
            return row
        add_item(kind, words, owners[row], at, items, flat, row * width, 1)
    return len(rows)


@allocating
def _put_dense(start: Any, owners: Any, rows: Any, words: Any, word: Any, items: Any) -> Any:
    """See above."""
    for row in range(start, len(rows)):
        segment = take_segment(DENSE_POWER, items)
        if segment == 0:
            return row
        begin = segment >> 6
        items.words[begin : begin + DENSE_WORDS] = rows[row]
        words[owners[row], word], words[owners[row], word + 1] = segment, DENSE
    return len(rows)
