"""Kernels that fold a row, or other accumulators, into accumulators.

Accumulators are words: first one for each operation, then those of `Top` (see `top_kernels`), then those that locate
tables of items (see `state.item_tables`).
"""

from typing import Any, NamedTuple

import numpy as np

from bettong.frames.columns import Array
from bettong.machine_code import inlined, kernel
from bettong.worker.state.item_tables import LOADED as ITEMS_LOADED
from bettong.worker.state.item_tables import WORD, add_item, give_back, join_items, make_room
from bettong.worker.state.pane_pool import MESSAGES, VALUES
from bettong.worker.windows.top_kernels import LOADED, add_ranked, join_ranked

# How two words are folded, the older accumulator's first. The operation says whether a word is a float. Sums of
# integers have two words, the lower one of which carries into the next.
KEEP_OLDER, KEEP_NEWER, ADD, ADD_CARRYING, LEAST, MOST, ADD_FLOATS, LEAST_FLOAT, MOST_FLOAT = range(9)


class Folds(NamedTuple):
    """The layout of accumulators: the operation of each of the first words, the values of `Top`, the tables of items.

    `words`: how many they have in all; `own_words`: how many without those that locate items.
    """

    operations: Array
    tops: Array
    items: Array
    words: int
    own_words: int


@kernel
def make_room_for(row: Any, values: Any, folds: Any, words: Any, into: Any, at: Any, items: Any) -> Any:
    """Makes room for the items of a row in the tables of accumulators behind column `at`; False where there is none."""
    loaded, rows = values[2], np.uint64(values[0].shape[1])
    for kind in folds.items:
        is_added = loaded[np.uint64(kind[ITEMS_LOADED]) * rows + np.uint64(row)]
        if is_added and not make_room(kind, words, into, at + 1, items):
            return False
    return True


@kernel
def gather(row: Any, values: Any, folds: Any, words: Any, into: Any, at: Any, items: Any) -> None:
    """Adds a row to the values of `Top` and to the tables of items, which must have room for it."""
    loaded, rows = values[2], np.uint64(values[0].shape[1])
    for top in folds.tops:
        first = np.uint64(top[LOADED]) * rows + np.uint64(row)
        if loaded[first]:
            add_ranked(top, words, into, at + 1, loaded, first + rows, rows)
    for kind in folds.items:
        first = np.uint64(kind[ITEMS_LOADED]) * rows + np.uint64(row)
        if loaded[first]:
            add_item(kind, words, into, at + 1, items, loaded, first, rows)


@kernel
def join_tables(
    folds: Any, words: Any, row: Any, at: Any, newer: Any, newer_row: Any, newer_at: Any, items: Any
) -> Any:
    """Adds newer tables to those of the accumulators behind column `at`. False where there is no room for all."""
    for kind in folds.items:  # noqa: SIM110 - Numba has no generators within a function
        if not join_items(kind, words, row, at + 1, newer, newer_row, newer_at + 1, items):
            return False
    return True


@kernel
def give_back_tables(folds: Any, words: Any, row: Any, at: Any, items: Any) -> None:
    """Frees the tables of the accumulators behind column `at`."""
    for kind in folds.items:
        give_back(words[row, at + 1 + kind[WORD]], items)
        words[row, at + 1 + kind[WORD]] = words[row, at + 2 + kind[WORD]] = 0


@inlined
def fold_word(
    operation: Any, words: Any, floats: Any, at: Any, word: Any, newer: Any, newer_float: Any
) -> None:
    """Folds a newer value, of a message or of a pane, into an accumulator."""
    if operation == ADD:
        words[at, word] += newer
    elif operation == ADD_CARRYING:
        words[at, word] += newer
        words[at, word + 1] += np.uint64(words[at, word]) < np.uint64(newer)
    elif operation == KEEP_NEWER:
        words[at, word] = newer
    elif operation == LEAST:
        words[at, word] = min(words[at, word], newer)
    elif operation == MOST:
        words[at, word] = max(words[at, word], newer)
    elif operation == ADD_FLOATS:
        floats[at, word] += newer_float
    elif (operation == LEAST_FLOAT and newer_float < floats[at, word]) or (
        operation == MOST_FLOAT and newer_float > floats[at, word]
    ):
        words[at, word] = newer


@inlined
def gathers_more(folds: Any) -> Any:
    """Whether accumulators have words beyond those of operations: values of `Top`, or items."""
    return folds.words > len(folds.operations)


@inlined
def fold_row(row: Any, values: Any, folds: Any, panes: Any, floats: Any, at: Any, items: Any) -> None:
    """Adds a row to the message count and accumulators of a pane, whose tables must have room for it."""
    panes[at, MESSAGES] += 1
    for operation in range(len(folds.operations)):
        word = VALUES + operation
        if panes[at, MESSAGES] == 1:
            panes[at, word] = values[0][operation, row]
        else:
            fold_word(
                folds.operations[operation],
                panes,
                floats,
                at,
                word,
                values[0][operation, row],
                values[1][operation, row],
            )
    if gathers_more(folds):
        gather(row, values, folds, panes, at, MESSAGES, items)


@kernel
def copy_accumulators(
    values: Any, into: Any, row: Any, at: Any, words: Any, other_row: Any, other_at: Any
) -> None:
    """Copies the message count and `values` words behind it from column `other_at` to column `at`."""
    for word in range(1 + values):
        into[row, at + word] = words[other_row, other_at + word]


@kernel
def join_accumulators(
    folds: Any,
    words: Any,
    floats: Any,
    row: Any,
    at: Any,
    newer: Any,
    newer_floats: Any,
    newer_row: Any,
    newer_at: Any,
) -> None:
    """Folds a newer message count and accumulators into those from column `at` on, or copies them if these are empty.

    Leaves out tables of items.
    """
    is_first = words[row, at] == 0
    words[row, at] += newer[newer_row, newer_at]
    if is_first:
        for word in range(folds.own_words):
            words[row, at + 1 + word] = newer[newer_row, newer_at + 1 + word]
        return
    for top in folds.tops:
        join_ranked(top, words, row, at + 1, newer, newer_row, newer_at + 1)
    for operation in range(len(folds.operations)):
        word, other = at + 1 + operation, newer_at + 1 + operation
        fold_word(
            folds.operations[operation],
            words,
            floats,
            row,
            word,
            newer[newer_row, other],
            newer_floats[newer_row, other],
        )


@kernel
def add_each(start: Any, values: Any, folds: Any, words: Any, items: Any) -> Any:
    """Folds each row from `start` on into a message count and accumulators of its own, which are all zero.

    Stops before the first row for which there is no room, and returns it.
    """
    for row in range(start, len(words)):
        if not make_room_for(row, values, folds, words, row, 0, items):
            return row
        words[row, 0] = 1
        for operation in range(len(folds.operations)):
            words[row, 1 + operation] = values[0][operation, row]
        gather(row, values, folds, words, row, 0, items)
    return len(words)
