"""Panes of open windows: rows of one array, those of a key linked from the oldest to the newest.

    keys, a row for each slot:   | due | oldest pane | newest pane |
    panes, a row each:           | number | older | newer | messages | accumulators ... | the same, combined ... |

All are words of 64 bits; those of accumulators may hold a float. A link of -1 is none. `number` counts panes on the
grid of the windows. Panes of sliding windows have `messages` and accumulators a second time, combined with those behind
them: see `windows.pane_kernels`. The last words of accumulators may say where items are: see `item_tables`.
"""

from typing import Any

import numba
import numpy as np

from bettong.frames.columns import Array
from bettong.worker.state.item_tables import (
    DENSE,
    GREATEST,
    ITEM_WORDS,
    NUMBER_LIMIT,
    NUMBERS,
    PANE_WORDS,
    REGISTERS,
    WORD,
    ItemArrays,
    ItemSegments,
    add_item,
    give_back,
    has_room,
    list_items,
)

DUE, OLDEST, NEWEST = range(3)
NUMBER, OLDER, NEWER, MESSAGES, VALUES = range(5)
# What `counts` counts: panes that were ever in use, those of them that are free, and keys that are due sooner.
USED, FREE, SOONER = range(3)

_FIRST_PANES = 1024


class PanePool:
    """The panes of all keys of a partition. A pane that was freed is used again.

    `free`: the numbers of those, of which the last `counts[FREE]`th is used next.
    """

    def __init__(
        self,
        values: int,
        *,
        are_combined: bool,
        kinds: Array | None = None,
        counters: Array | None = None,
    ) -> None:
        """`values`: words of accumulators. `are_combined`: whether panes have them a second time.

        `kinds`: of their items, a row each (see `item_tables`). `counters`: which of the words say how many of those
        behind them are in use, and the most that this is, a row each.
        """
        self.values = values
        self.counters = np.empty((0, 2), np.int64) if counters is None else counters
        self.kinds = np.empty((0, 4), np.int64) if kinds is None else kinds
        self.items = ItemSegments()
        width = VALUES + values + (1 + values if are_combined else 0)
        self.words = np.zeros((_FIRST_PANES, width), np.int64)
        self.free = np.zeros(_FIRST_PANES, np.int64)
        self.counts = np.zeros(3, np.int64)

    @property
    def live(self) -> int:
        """How many panes are in use."""
        return int(self.counts[USED] - self.counts[FREE])

    @property
    def arrays(self) -> tuple[Array, Array, Array, Array, ItemArrays]:
        """As compiled code takes them: words, as integers and as floats, panes that are free, counts, items."""
        return self.words, self.words.view(np.float64), self.free, self.counts, self.items.arrays

    @property
    def own_words(self) -> int:
        """How many words of accumulators do not say where items are."""
        return self.values - PANE_WORDS * len(self.kinds)

    def grow(self) -> None:
        """Twice as many panes."""
        self.words = np.concatenate([self.words, np.zeros_like(self.words)])
        self.free = np.concatenate([self.free, np.zeros_like(self.free)])

    def make_room(self) -> None:
        """Compiled code stopped for want of room: twice as many panes where none is free, else as many items."""
        if self.counts[FREE] or self.counts[USED] < len(self.words):
            self.items.grow()
        else:
            self.grow()

    def take(self, count: int) -> Array:
        """So many panes, for the caller to fill."""
        taken = np.empty(count, np.int64)
        again = min(count, int(self.counts[FREE]))
        self.counts[FREE] -= again
        taken[:again] = self.free[self.counts[FREE] : self.counts[FREE] + again]
        while self.counts[USED] + count - again > len(self.words):
            self.grow()
        taken[again:] = self.counts[USED] + np.arange(count - again)
        self.counts[USED] += count - again
        return taken

    def give_back(self, panes: Array) -> None:
        """These are in use no more, nor are their items."""
        self.give_back_items(self.words[panes, VALUES : VALUES + self.values])
        stop = self.counts[FREE] + len(panes)
        self.free[self.counts[FREE] : stop] = panes
        self.counts[FREE] = stop

    def of_keys(self, keys: Array) -> tuple[Array, Array]:
        """The panes of these keys, rows as above, key after key, each from the oldest on; how many each key has."""
        found, counts = np.empty(self.live, np.int64), np.empty(len(keys), np.int64)
        total = _listed(keys, self.words, found, counts)
        return found[:total], counts

    def give_back_items(self, accumulators: Array) -> None:
        """Items of these accumulators, a row each, are in use no more."""
        if len(self.kinds):
            _give_back_items(np.ascontiguousarray(accumulators), self.kinds, self.items.arrays)

    def are_counted(self, accumulators: Array) -> bool:
        """Whether counts in accumulators, a row each, are of what there is room for. Others may have written them."""
        words, most = self.counters.T
        counts = accumulators[:, words]
        return bool(((counts >= 0) & (counts <= most)).all())

    def items_of(self, panes: Array) -> Array:
        """The items of panes, a row each, always in one order: which of `panes`, which kind, number, words."""
        width = int(self.kinds[:, ITEM_WORDS].max(initial=0))
        tables = self.words[panes][:, VALUES : VALUES + self.values]
        counts = tables[:, self.kinds[:, WORD] + 1]
        # Of registers that are bytes some are none.
        room = int(np.where(counts == DENSE, REGISTERS, counts).sum())
        found = np.zeros((room, 3 + width), np.int64)
        found = found[: _list_all(np.ascontiguousarray(tables), self.kinds, self.items.words, found)]
        # Tables with the same items may have them in another order. Those that are numbered come as they came.
        return found[np.lexsort(found.T[::-1])]

    def are_items(self, items: Array, panes: int) -> bool:
        """Whether `items_of` could have given these for so many panes. Others may have written them."""
        if items.dtype != np.int64 or items.shape[1:] != (3 + int(self.kinds[:, ITEM_WORDS].max(initial=0)),):
            return False
        own, kinds, numbers, first = items[:, :4].T
        if not len(items):
            return True
        if not (own.min() >= 0 and own.max() < panes and kinds.min() >= 0 and kinds.max() < len(self.kinds)):
            return False
        are_registers = self.kinds[kinds, NUMBERS] == GREATEST
        registers = first[are_registers]
        return bool(
            numbers.min() > 0
            and (numbers[are_registers] < NUMBER_LIMIT).all()
            and ((registers >= 0) & (registers < REGISTERS)).all()
        )

    def put_items(self, panes: Array, items: Array) -> None:
        """Panes that have none get these items, which `items_of` gave."""
        self.words[panes, VALUES + self.own_words : VALUES + self.values] = 0
        row = 0
        while (row := _put_all(row, panes, items, self.words, self.kinds, self.items.arrays)) < len(items):
            self.items.grow()


@numba.njit(cache=True)
def _give_back_items(accumulators: Any, kinds: Any, items: Any) -> None:
    for row in range(len(accumulators)):
        for kind in kinds:
            give_back(accumulators[row, kind[WORD]], items)


@numba.njit(cache=True)
def _list_all(tables: Any, kinds: Any, words: Any, found: Any) -> Any:
    listed = 0
    for pane in range(len(tables)):
        for index in range(len(kinds)):
            word, item_words = kinds[index, WORD], kinds[index, ITEM_WORDS]
            count = 0
            if tables[pane, word]:
                count = list_items(
                    tables[pane, word], tables[pane, word + 1], item_words, words, found[listed:, 2:]
                )
            found[listed : listed + count, 0], found[listed : listed + count, 1] = pane, index
            listed += count
    return listed


@numba.njit(cache=True)
def _put_all(start: Any, panes: Any, rows: Any, words: Any, kinds: Any, items: Any) -> Any:
    """Stops before the first row for which there is no room, and returns it."""
    flat, width = rows.reshape(-1), rows.shape[1]
    for row in range(start, len(rows)):
        pane, kind = panes[rows[row, 0]], kinds[rows[row, 1]]
        if not has_room(kind, words, pane, VALUES, items):
            return row
        add_item(kind, words, pane, VALUES, items, flat, row * width + 2, 1)
    return len(rows)


@numba.njit(cache=True)
def _listed(keys: Any, words: Any, found: Any, counts: Any) -> Any:
    total = 0
    for row in range(len(keys)):
        start, pane = total, keys[row, OLDEST]
        while pane >= 0:
            found[total] = pane
            total += 1
            pane = words[pane, NEWER]
        counts[row] = total - start
    return total
