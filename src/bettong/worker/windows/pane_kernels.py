"""Kernels of windows of a fixed size over columns: fold rows into panes, and panes into windows that are over.

They do what `ranges` and `pane_stack` do with objects. Panes: see `state.pane_pool`. Accumulators are words, one for
each operation: a row's values are folded into those of its pane, and panes into each other, with the older one first
(see `fold_kernels`).

Panes of sliding windows are combined in blocks of as many as a window has. The second accumulators of a pane combine it
with all later panes of its block. For the next block a key has, in `fronts`:

    | block | number of the first pane not included | last pane included | messages | accumulators ... |

Tables of items are not among these: those of the panes of a window are joined when it fires. Else each pane would hold
the items of all later ones a second time.

Numba compiles this when the library is first run, not for each application, so what differs is passed as data.
"""

from typing import Any, NamedTuple

import numpy as np

from bettong.application.timers import NEVER
from bettong.frames.columns import Array
from bettong.machine_code import kernel
from bettong.worker.prefetching import CACHED_BYTES
from bettong.worker.state.pane_links import ask_ahead, ask_ahead_of_closing, new_pane, pane_at_or_before
from bettong.worker.state.pane_pool import (
    DUE,
    FREE,
    MESSAGES,
    NEWER,
    NEWEST,
    NUMBER,
    OLDER,
    OLDEST,
    SHOWN,
    SOONER,
    VALUES,
)
from bettong.worker.windows.fold_kernels import (
    copy_accumulators,
    fold_row,
    gathers_more,
    give_back_tables,
    join_accumulators,
    join_tables,
    make_room_for,
)

# Marks of a row: it is in time; some of its windows are over, or all; its windows end beyond 64 bits; an aggregate
# refuses it.
IN_TIME, PARTLY_LATE, LATE, BEYOND, REFUSED = range(5)
# The words of `fronts`.
BLOCK, STOP, LAST, FRONT = range(4)
NO_BLOCK = -(2**63)


class Grid(NamedTuple):
    """Settings of windows: see `Ranges`. `latest_ns`: later event times have windows that end beyond 64 bits.

    `filled_max`: how often a key fires in a call before its windows without messages are skipped; 0: they always are.
    """

    size_ns: int
    slide_ns: int
    offset_ns: int
    delay_ns: int
    pane_ns: int
    panes: int
    latest_ns: int
    filled_max: int


class DueKeys(NamedTuple):
    """Keys of which something may be due: their slots, and when their windows are due next.

    `untils`: until when these may fire now. `fired`: how often each key has fired in this call.
    """

    slots: Array
    dues: Array
    untils: Array
    fired: Array

    def take(self, keys: Array, until_ns: int) -> "DueKeys":
        """Some of them, which may fire until then."""
        return DueKeys(self.slots[keys], self.dues[keys], np.full(len(keys), until_ns), self.fired[keys])


@kernel
def first_end(at_ns: Any, grid: Any) -> Any:
    """The end of the first window that covers a time."""
    return at_ns + grid.slide_ns - (at_ns - grid.offset_ns - grid.size_ns) % grid.slide_ns


@kernel
def find_panes(times: Any, watermarks: Any, grid: Any, numbers: Any, dues: Any, marks: Any) -> Any:
    """Fills by row its pane, when its first open window is due, and its mark; returns how many rows have a mark.

    The pane of a late row is the first one of the oldest open window.
    """
    marked, begin, end, number, due = 0, 0, 0, 0, 0
    for row in range(len(times)):
        at_ns, watermark_ns = times[row], watermarks[row]
        if at_ns > grid.latest_ns:
            marks[row] = BEYOND
            marked += 1
            continue
        # Nearly always it is the pane of the row before: a division costs more than all else here.
        if not begin <= at_ns < end:
            number = (at_ns - grid.offset_ns) // grid.pane_ns
            begin = number * grid.pane_ns + grid.offset_ns
            end = begin + grid.pane_ns
            due = first_end(at_ns, grid) + grid.delay_ns
        numbers[row], dues[row], marks[row] = number, due, IN_TIME
        if due <= watermark_ns:
            marked += 1
            last = due + (at_ns + grid.size_ns + grid.delay_ns - due) // grid.slide_ns * grid.slide_ns
            dues[row] = due + ((watermark_ns - due) // grid.slide_ns + 1) * grid.slide_ns
            marks[row] = PARTLY_LATE
            if last <= watermark_ns:
                marks[row] = LATE
                oldest = dues[row] - grid.delay_ns - grid.size_ns
                numbers[row] = (oldest - grid.offset_ns) // grid.pane_ns
    return marked


@kernel
def add_rows(
    start: Any, slots: Any, rows: Any, values: Any, folds: Any, keys: Any, pool: Any, fronts: Any, sooner: Any
) -> Any:
    """Folds rows from `start` on into panes; stops before the first one for which there is no room, and returns it.

    `rows`: what `find_panes` filled. `values` (also flattened) and `fronts`: as integers and as floats. `pool`: words
    of the panes as integers and as floats, free panes, counts, items. `sooner`: filled with the slots of keys that are
    due sooner than before.
    """
    numbers, dues, marks = rows
    panes, panes_as_floats, _, counts, items = pool
    gathers = gathers_more(folds)
    is_large, count = keys.nbytes > CACHED_BYTES, np.uint64(len(slots))
    for row in range(np.uint64(start), count):
        if is_large:
            ask_ahead(row, slots, keys, panes)
        slot = np.uint64(slots[row])
        pane = keys[slot, NEWEST]
        if pane < 0 or panes[np.uint64(pane), NUMBER] != numbers[row]:
            before = pane_at_or_before(keys[slot, OLDEST], pane, numbers[row], panes)
            if before >= 0 and panes[before, NUMBER] == numbers[row]:
                pane = before
            else:
                pane = open_pane(slot, before, numbers[row], folds, keys, pool)
                if pane < 0:
                    return np.int64(row)
                if dues[row] < keys[slot, DUE]:
                    keys[slot, DUE] = dues[row]
                    sooner[counts[SOONER]] = slot
                    counts[SOONER] += 1
        if marks[row] and len(fronts[0]):
            fronts[0][slot, BLOCK] = NO_BLOCK
        at = np.uint64(pane)
        if gathers and not make_room_for(row, values, folds, panes, at, MESSAGES, items):
            return np.int64(row)
        fold_row(row, values, folds, panes, panes_as_floats, at, items)
    return len(slots)


@kernel
def open_pane(slot: Any, before: Any, number: Any, folds: Any, keys: Any, pool: Any) -> Any:
    """Opens a pane without messages, after another one of its key or as its first; -1 where none is free."""
    panes, _, free, counts, _ = pool
    pane = new_pane(slot, before, number, keys, panes, free, counts)
    if pane >= 0:
        # Panes without early results use this word for something else, and fill it before they read it.
        panes[pane, SHOWN] = 0
        for word in range(len(folds.operations), folds.words):
            panes[pane, VALUES + word] = 0
    return pane


@kernel
def close_windows(
    start: Any, due: Any, grid: Any, folds: Any, keys: Any, pool: Any, fronts: Any, found: Any, count: Any
) -> Any:
    """Fires the windows of keys that are due, and advances `due`. Returns the key at which it ran out of room, in
    `found` or for items, and how many windows are in `found`: the index of its key, when it began and was due, and its
    accumulators (as integers and as floats). Their items are still in use.
    """
    panes, floats, _, _, items = pool
    found_keys, found_starts, found_dues, words, word_floats = found
    dues, is_large = due.dues, keys.nbytes > CACHED_BYTES
    for index in range(start, len(due.slots)):
        if is_large:
            ask_ahead_of_closing(np.uint64(index), due.slots, keys, panes)
        slot = np.uint64(due.slots[index])
        while dues[index] <= due.untils[index]:
            if count == len(found_keys):
                return index, count
            end = dues[index] - grid.delay_ns
            first = (end - grid.size_ns - grid.offset_ns) // grid.pane_ns
            oldest = keys[slot, OLDEST]
            fills = due.fired[index] < grid.filled_max
            has_messages = panes[oldest, NUMBER] < first + grid.panes
            if has_messages:
                if grid.panes == 1:
                    copy_accumulators(folds.words, words, count, 0, panes, oldest, MESSAGES)
                else:
                    if not join_all_tables(first + grid.panes, folds, oldest, panes, words, count, items):
                        return index, count
                    edge = _combine(slot, first, grid.panes, folds, oldest, panes, floats, fronts)
                    words[count, 0] = 0
                    if panes[oldest, NUMBER] < edge:
                        copy_accumulators(
                            folds.own_words, words, count, 0, panes, oldest, VALUES + folds.words
                        )
                    if fronts[0][slot, FRONT]:
                        join_accumulators(
                            folds, words, word_floats, count, 0, fronts[0], fronts[1], slot, FRONT
                        )
            elif grid.filled_max:
                words[count] = 0
            if has_messages or grid.filled_max:
                found_keys[count], found_starts[count] = index, end - grid.size_ns
                found_dues[count] = dues[index]
                due.fired[index] += 1
                count += 1
            dues[index] = _advance_key(slot, first, end, grid, folds, keys, pool, fills)
            if dues[index] == NEVER and len(fronts[0]):
                fronts[0][slot, BLOCK] = NO_BLOCK
        keys[slot, DUE] = dues[index]
    return len(due.slots), count


@kernel
def join_all_tables(stop: Any, folds: Any, oldest: Any, panes: Any, words: Any, row: Any, items: Any) -> Any:
    """Joins the tables of a key's panes before `stop` to those of a window. False, and none, without room for all."""
    if folds.own_words == folds.words:
        return True
    for word in range(folds.own_words, folds.words):
        words[row, 1 + word] = 0
    pane = oldest
    while pane >= 0 and panes[pane, NUMBER] < stop:
        if not join_tables(folds, words, row, 0, panes, pane, MESSAGES, items):
            give_back_tables(folds, words, row, 0, items)
            return False
        pane = panes[pane, NEWER]
    return True


@kernel
def _advance_key(
    slot: Any, first: Any, end: Any, grid: Any, folds: Any, keys: Any, pool: Any, fills: Any
) -> Any:
    """Frees the panes that only fired windows needed; returns when the next window is due, NEVER where none is open.

    `end`: of the window that just fired. `fills`: the next one may be without messages.
    """
    panes, _, free, counts, items = pool
    behind = first + grid.slide_ns // grid.pane_ns
    pane = keys[slot, OLDEST]
    while pane >= 0 and panes[pane, NUMBER] < behind:
        free[counts[FREE]] = pane
        counts[FREE] += 1
        # Where a pane is a window, the fired window has taken over its tables.
        if grid.panes > 1:
            give_back_tables(folds, panes, pane, MESSAGES, items)
        pane = panes[pane, NEWER]
    keys[slot, OLDEST] = pane
    if pane < 0:
        keys[slot, NEWEST] = -1
        return NEVER
    panes[pane, OLDER] = -1
    next_end = end + grid.slide_ns
    if not fills and panes[pane, NUMBER] >= behind + grid.panes:
        next_end = max(next_end, first_end(panes[pane, NUMBER] * grid.pane_ns + grid.offset_ns, grid))
    return next_end + grid.delay_ns


@kernel
def _combine(
    slot: Any, first: Any, count: Any, folds: Any, oldest: Any, panes: Any, floats: Any, fronts: Any
) -> Any:
    """Advances what is combined of a key to the window of `count` panes from `first` on. Returns the end of its block.

    The window combines the second accumulators of the oldest pane, if that is before this end, and the front.
    """
    ints = fronts[0]
    block = first // count
    edge = (block + 1) * count
    if ints[slot, BLOCK] != block:
        ints[slot, BLOCK], ints[slot, STOP], ints[slot, LAST], ints[slot, FRONT] = block, edge, -1, 0
        _combine_block(slot, folds, oldest, panes, floats, ints)
    pane = oldest
    if panes[oldest, NUMBER] < ints[slot, STOP]:
        pane = panes[ints[slot, LAST], NEWER]
    while pane >= 0 and panes[pane, NUMBER] < first + count:
        join_accumulators(folds, ints, fronts[1], slot, FRONT, panes, floats, pane, MESSAGES)
        ints[slot, LAST] = pane
        pane = panes[pane, NEWER]
    ints[slot, STOP] = max(ints[slot, STOP], first + count)
    return edge


@kernel
def _combine_block(slot: Any, folds: Any, oldest: Any, panes: Any, floats: Any, ints: Any) -> None:
    """Combines each pane of a key's block with the later ones."""
    stop, combined = ints[slot, STOP], VALUES + folds.words
    if panes[oldest, NUMBER] >= stop:
        return
    pane = oldest
    while panes[pane, NEWER] >= 0 and panes[panes[pane, NEWER], NUMBER] < stop:
        pane = panes[pane, NEWER]
    ints[slot, LAST] = pane
    copy_accumulators(folds.own_words, panes, pane, combined, panes, pane, MESSAGES)
    while pane != oldest:
        newer, pane = pane, panes[pane, OLDER]
        copy_accumulators(folds.own_words, panes, pane, combined, panes, pane, MESSAGES)
        join_accumulators(folds, panes, floats, pane, combined, panes, floats, newer, combined)
