"""Panes of open windows: rows of one array, those of a key linked from the oldest to the newest.

    keys, a row for each slot:   | due | oldest pane | newest pane |
    panes, a row each:           | number | older | newer | messages | accumulators ... | the same, combined ... |

All are words of 64 bits; those of accumulators may hold a float. A link of -1 is none. `number` counts panes on the
grid of the windows. Panes of sliding windows have `messages` and accumulators a second time, combined with those behind
them: see `windows.pane_kernels`.
"""

from typing import Any

import numba
import numpy as np

from bettong.frames.columns import Array

DUE, OLDEST, NEWEST = range(3)
NUMBER, OLDER, NEWER, MESSAGES, VALUES = range(5)
# What `counts` counts: panes that were ever in use, those of them that are free, and keys that are due sooner.
USED, FREE, SOONER = range(3)

_FIRST_PANES = 1024


class PanePool:
    """The panes of all keys of a partition. A pane that was freed is used again.

    `free`: the numbers of those, of which the last `counts[FREE]`th is used next.
    """

    def __init__(self, values: int, *, are_combined: bool) -> None:
        """`values`: words of accumulators. `are_combined`: whether panes have them a second time."""
        self.values = values
        width = VALUES + values + (1 + values if are_combined else 0)
        self.words = np.zeros((_FIRST_PANES, width), np.int64)
        self.free = np.zeros(_FIRST_PANES, np.int64)
        self.counts = np.zeros(3, np.int64)

    @property
    def live(self) -> int:
        """How many panes are in use."""
        return int(self.counts[USED] - self.counts[FREE])

    @property
    def arrays(self) -> tuple[Array, Array, Array, Array]:
        """As compiled code takes them: words, as integers and as floats, panes that are free, counts."""
        return self.words, self.words.view(np.float64), self.free, self.counts

    def grow(self) -> None:
        """Twice as many panes."""
        self.words = np.concatenate([self.words, np.zeros_like(self.words)])
        self.free = np.concatenate([self.free, np.zeros_like(self.free)])

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
        """These are in use no more."""
        stop = self.counts[FREE] + len(panes)
        self.free[self.counts[FREE] : stop] = panes
        self.counts[FREE] = stop

    def of_keys(self, keys: Array) -> tuple[Array, Array]:
        """The panes of these keys, rows as above, key after key, each from the oldest on; how many each key has."""
        found, counts = np.empty(self.live, np.int64), np.empty(len(keys), np.int64)
        total = _listed(keys, self.words, found, counts)
        return found[:total], counts


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
