"""Panes of open windows: rows of one array, those of a key linked from the oldest to the newest.

    keys, a row for each slot:   | due | oldest pane | newest pane | early |
    panes, a row each:           | number | older | newer | messages | accumulators ... | both, combined ... | shown |

All are words of 64 bits; those of accumulators may hold a float. A link of -1 is none. `number` counts panes on the
grid of the windows. Panes of sliding windows have `messages` and accumulators a second time, combined with those behind
them: see `windows.pane_kernels`. The last words of accumulators may say where items are (see `item_tables`): those are
there once. In a session `number` is the event time of its first message, and that of the last one follows the
accumulators.

With early results, `early` is when the next ones of a key are due, and `shown` how many messages the pane had at the
last ones: it has changed since where it has more. Other windows have neither.
"""

from typing import Any

import numpy as np

from bettong.frames.columns import Array
from bettong.machine_code import kernel
from bettong.worker.arrays import with_rows
from bettong.worker.state.item_tables import PANE_WORDS, WORD, ItemArrays, ItemSegments, give_back
from bettong.worker.state.pane_items import put_items, saved_items

DUE, OLDEST, NEWEST = range(3)
NUMBER, OLDER, NEWER, MESSAGES, VALUES = range(5)
SHOWN = -1
# Indexes of `counts`: panes that were ever in use, those of them that are free, and keys that are due sooner.
USED, FREE, SOONER = range(3)

_FIRST_PANES = 1024


class PanePool:
    """The panes of all keys of a partition. Freed panes are used again.

    `free`: the numbers of free panes: the first `counts[FREE]`, of which the last is used next.
    """

    def __init__(
        self,
        values: int,
        *,
        are_combined: bool = False,
        are_sessions: bool = False,
        are_shown: bool = False,
        kinds: Array | None = None,
        counters: Array | None = None,
    ) -> None:
        """`values`: words of accumulators. `are_combined`: whether panes have them a second time.

        `are_sessions`: whether they have the time of their last message. `are_shown`: whether they have `shown`.

        `kinds`: of their items, a row each (see `item_tables`). `counters`: a row for each word that says how many of
        those behind it are in use: which one it is, and the most that it may say.
        """
        self.values = values
        self.counters = np.empty((0, 2), np.int64) if counters is None else counters
        self.kinds = np.empty((0, 4), np.int64) if kinds is None else kinds
        self.items = ItemSegments()
        self.are_sessions = are_sessions
        self.are_shown = are_shown
        self._width = VALUES + values + (1 + self.own_words if are_combined else are_sessions) + are_shown
        self.words = np.zeros((_FIRST_PANES, self._width), np.int64)
        self.free = np.zeros(_FIRST_PANES, np.int64)
        self.counts = np.zeros(3, np.int64)

    @property
    def live(self) -> int:
        """How many panes are in use."""
        return int(self.counts[USED] - self.counts[FREE])

    @property
    def arrays(self) -> tuple[Array, Array, Array, Array, ItemArrays]:
        """As kernels take them: words, as integers and as floats, panes that are free, counts, items."""
        return self.words, self.words.view(np.float64), self.free, self.counts, self.items.arrays

    @property
    def saved(self) -> list[int]:
        """The words of a pane that a snapshot holds: no links, and none that can be made of the others."""
        own = [NUMBER, *range(MESSAGES, VALUES + self.own_words)]
        own += [VALUES + self.values] * self.are_sessions
        return own + [self._width - 1] * self.are_shown

    @property
    def own_words(self) -> int:
        """How many words of accumulators do not say where items are."""
        return self.values - PANE_WORDS * len(self.kinds)

    def grow(self) -> None:
        """Doubles the panes."""
        self.words = with_rows(self.words, 2 * len(self.words))
        self.free = with_rows(self.free, len(self.words))

    def make_room(self) -> None:
        """A kernel has stopped for want of room: doubles the panes where none is free, else the items."""
        if self.counts[FREE] or self.counts[USED] < len(self.words):
            self.items.grow()
        else:
            self.grow()

    def allocate(self, count: int) -> Array:
        """Allocates panes, for the caller to fill."""
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
        """Frees panes and their items."""
        self.give_back_items(self.words[panes, VALUES : VALUES + self.values])
        self.give_back_rows(panes)

    def give_back_rows(self, panes: Array) -> None:
        """Frees panes, but not their items: that is up to whoever has their words."""
        stop = self.counts[FREE] + len(panes)
        self.free[self.counts[FREE] : stop] = panes
        self.counts[FREE] = stop

    def of_keys(self, keys: Array) -> tuple[Array, Array]:
        """The panes of these keys, key after key, each from the oldest on; how many each key has."""
        found, counts = np.empty(self.live, np.int64), np.empty(len(keys), np.int64)
        total = _listed(keys, self.words, found, counts)
        return found[:total], counts

    def give_back_items(self, accumulators: Array) -> None:
        """Frees the items of these accumulators, a row each."""
        if len(self.kinds):
            _give_back_items(np.ascontiguousarray(accumulators), self.kinds, self.items.arrays)

    def are_counted(self, accumulators: Array) -> bool:
        """Whether counts in accumulators, a row each, are within their bounds. Anyone may have written them."""
        words, most = self.counters.T
        counts = accumulators[:, words]
        return bool(((counts >= 0) & (counts <= most)).all())

    def items_of(self, panes: Array) -> list[Array]:
        """The items of panes as a snapshot holds them: see `pane_items`."""
        return saved_items(self.kinds, self._accumulators_of(panes), self.items.words)

    def put_items(self, panes: Array, saved: list[Array]) -> None:
        """Adds items, checked by `are_items`, to panes without any."""
        self.words[panes, VALUES + self.own_words : VALUES + self.values] = 0
        put_items(self.kinds, saved, panes, self.words, VALUES, self.items)

    def _accumulators_of(self, panes: Array) -> Array:
        return np.ascontiguousarray(self.words[panes][:, VALUES : VALUES + self.values])


@kernel
def _give_back_items(accumulators: Any, kinds: Any, items: Any) -> None:
    for row in range(len(accumulators)):
        for kind in kinds:
            give_back(accumulators[row, kind[WORD]], items)


@kernel
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
