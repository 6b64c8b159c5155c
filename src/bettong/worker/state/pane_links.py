"""The panes of a key, linked from its oldest to its newest, as machine code. See `pane_pool`."""

from typing import Any

import numpy as np

from bettong.machine_code import inlined, kernel
from bettong.worker.prefetching import AHEAD, prefetch
from bettong.worker.state.pane_pool import FREE, MESSAGES, NEWER, NEWEST, NUMBER, OLDER, OLDEST, USED

# How many rows ahead to prefetch a pane: half as many as for its key, which says where it is.
_PANES_AHEAD = AHEAD // np.uint64(2)
# And for the panes that this one is linked to.
_LINKED_AHEAD = AHEAD // np.uint64(4)


@inlined
def _ask_for(pane: Any, panes: Any) -> None:
    """Prefetches a pane; for the first one where there is none."""
    prefetch(panes, np.uint64(max(pane, 0)))


@kernel
def ask_ahead(row: Any, slots: Any, keys: Any, panes: Any) -> None:
    """Prefetches the key of a later row, and the newest pane of a row whose key was prefetched before."""
    if row + AHEAD < np.uint64(len(slots)):
        prefetch(keys, np.uint64(slots[row + AHEAD]))
        _ask_for(keys[np.uint64(slots[row + _PANES_AHEAD]), NEWEST], panes)


@kernel
def ask_ahead_of_closing(row: Any, slots: Any, keys: Any, panes: Any) -> None:
    """The same for the key, for its oldest and newest panes, and then for those that are linked to these."""
    if row + AHEAD < np.uint64(len(slots)):
        prefetch(keys, np.uint64(slots[row + AHEAD]))
        slot = np.uint64(slots[row + _PANES_AHEAD])
        _ask_for(keys[slot, OLDEST], panes)
        _ask_for(keys[slot, NEWEST], panes)
        slot = np.uint64(slots[row + _LINKED_AHEAD])
        _ask_for(panes[np.uint64(max(keys[slot, OLDEST], 0)), NEWER], panes)
        _ask_for(panes[np.uint64(max(keys[slot, NEWEST], 0)), OLDER], panes)


@kernel
def pane_at_or_before(oldest: Any, newest: Any, number: Any, panes: Any) -> Any:
    """The last pane of a key whose number is not greater, -1 where there is none: searched from the nearer end."""
    if newest < 0 or panes[oldest, NUMBER] > number:
        return -1
    if panes[newest, NUMBER] - number <= number - panes[oldest, NUMBER]:
        pane = newest
        while panes[pane, NUMBER] > number:
            pane = panes[pane, OLDER]
        return pane
    pane = oldest
    while panes[panes[pane, NEWER], NUMBER] <= number:
        pane = panes[pane, NEWER]
    return pane


@kernel
def new_pane(slot: Any, before: Any, number: Any, keys: Any, panes: Any, free: Any, counts: Any) -> Any:
    """Adds a pane without messages, after another one of its key or as its first; -1 where none is free."""
    if counts[FREE]:
        counts[FREE] -= 1
        pane = free[counts[FREE]]
    elif counts[USED] < len(panes):
        pane = counts[USED]
        counts[USED] += 1
    else:
        return -1
    behind = keys[slot, OLDEST] if before < 0 else panes[before, NEWER]
    panes[pane, NUMBER], panes[pane, MESSAGES] = number, 0
    panes[pane, OLDER], panes[pane, NEWER] = before, behind
    if before < 0:
        keys[slot, OLDEST] = pane
    else:
        panes[before, NEWER] = pane
    if behind < 0:
        keys[slot, NEWEST] = pane
    else:
        panes[behind, OLDER] = pane
    return pane


@kernel
def remove_pane(slot: Any, pane: Any, keys: Any, panes: Any, free: Any, counts: Any) -> None:
    """Removes and frees a pane, but not its items."""
    before, behind = panes[pane, OLDER], panes[pane, NEWER]
    if before < 0:
        keys[slot, OLDEST] = behind
    else:
        panes[before, NEWER] = behind
    if behind < 0:
        keys[slot, NEWEST] = before
    else:
        panes[behind, OLDER] = before
    free[counts[FREE]] = pane
    counts[FREE] += 1
