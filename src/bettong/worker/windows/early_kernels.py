"""Kernels of early results of open windows over columns. They do what `ranges` and `sessions` do with objects.

A pane has changed where it has more messages than when it was last shown (see `state.pane_pool`). An early result is a
copy, tables of items included: the pane keeps its own.
"""

from typing import Any

import numpy as np

from bettong.machine_code import kernel
from bettong.worker.state.pane_pool import MESSAGES, NEWER, NUMBER, OLDEST, SHOWN
from bettong.worker.windows.fold_kernels import join_accumulators
from bettong.worker.windows.pane_kernels import first_end, join_all_tables


@kernel
def show_windows(
    start: Any, slots: Any, ends: Any, grid: Any, folds: Any, keys: Any, pool: Any, found: Any, count: Any
) -> Any:
    """Copies to `found` the open windows of keys that have a changed pane: see `pane_kernels.close_windows`.

    `ends`: by key, when the first window ends that was not visited; advanced with the windows.
    """
    panes, floats, _, _, items = pool
    found_keys, found_starts, found_dues, words, word_floats = found
    for index in range(start, len(slots)):
        oldest = keys[np.uint64(slots[index]), OLDEST]
        first = pane = oldest
        while pane >= 0:
            begin = panes[pane, NUMBER] * grid.pane_ns + grid.offset_ns
            has_changed = panes[pane, SHOWN] != panes[pane, MESSAGES]
            if has_changed:
                ends[index] = max(ends[index], first_end(begin, grid))
            while has_changed and ends[index] - grid.size_ns <= begin:
                number = (ends[index] - grid.size_ns - grid.offset_ns) // grid.pane_ns
                while first != pane and panes[first, NUMBER] < number:
                    first = panes[first, NEWER]
                if count == len(found_keys) or not _put(
                    first, number + grid.panes, folds, panes, floats, words, word_floats, count, items
                ):
                    return index, count
                found_keys[count], found_starts[count] = index, ends[index] - grid.size_ns
                found_dues[count] = ends[index] + grid.delay_ns
                count += 1
                ends[index] += grid.slide_ns
            pane = panes[pane, NEWER]
        pane = oldest
        while pane >= 0:
            panes[pane, SHOWN] = panes[pane, MESSAGES]
            pane = panes[pane, NEWER]
    return len(slots), count


@kernel
def show_panes(
    start: Any, slots: Any, last: Any, wait_ns: Any, folds: Any, keys: Any, pool: Any, found: Any, count: Any
) -> Any:
    """The same where each pane is a window, which begins at its number, and is due `wait_ns` after word `last`."""
    panes, floats, _, _, items = pool
    found_keys, found_starts, found_dues, words, word_floats = found
    for index in range(start, len(slots)):
        pane = keys[np.uint64(slots[index]), OLDEST]
        while pane >= 0:
            if panes[pane, SHOWN] != panes[pane, MESSAGES]:
                if count == len(found_keys) or not _put(
                    pane, panes[pane, NUMBER] + 1, folds, panes, floats, words, word_floats, count, items
                ):
                    return index, count
                found_keys[count], found_starts[count] = index, panes[pane, NUMBER]
                found_dues[count] = panes[pane, last] + wait_ns
                count += 1
                panes[pane, SHOWN] = panes[pane, MESSAGES]
            pane = panes[pane, NEWER]
    return len(slots), count


@kernel
def _put(
    pane: Any,
    stop: Any,
    folds: Any,
    panes: Any,
    floats: Any,
    words: Any,
    word_floats: Any,
    row: Any,
    items: Any,
) -> Any:
    """Combines panes from one on to before number `stop` in a row of `words`; False without room for their items."""
    if not join_all_tables(stop, folds, pane, panes, words, row, items):
        return False
    words[row, 0] = 0
    while pane >= 0 and panes[pane, NUMBER] < stop:
        join_accumulators(folds, words, word_floats, row, 0, panes, floats, pane, MESSAGES)
        pane = panes[pane, NEWER]
    return True
