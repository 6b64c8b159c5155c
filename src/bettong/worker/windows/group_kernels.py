"""Kernels of windows over columns of which a key has one at a time: groups of messages, and ephemeral windows.

They do what `counts` and `ephemeral` do with objects. The open window is the only pane of its key (see
`state.pane_pool`). A key whose ephemeral window has fired has no pane but is still due, which says when it opened.
"""

from typing import Any, NamedTuple

import numpy as np

from bettong.application.timers import NEVER
from bettong.machine_code import kernel
from bettong.worker.prefetching import CACHED_BYTES
from bettong.worker.state.pane_links import ask_ahead, remove_pane
from bettong.worker.state.pane_pool import DUE, MESSAGES, NEWEST, SOONER
from bettong.worker.windows.fold_kernels import copy_accumulators, fold_row, gathers_more, make_room_for
from bettong.worker.windows.pane_kernels import BEYOND, LATE, REFUSED, open_pane


class EphemeralTimes(NamedTuple):
    """Settings of ephemeral windows: see `Ephemeral`. `latest_ns`: windows of later event times end beyond 64 bits.

    `late_fires`: whether a late row has a result, so that an aggregate may refuse it.
    """

    trigger_ns: int
    keep_ns: int
    latest_ns: int
    late_fires: bool


@kernel
def add_to_groups(
    start: Any,
    slots: Any,
    full: Any,
    due_ns: Any,
    values: Any,
    folds: Any,
    keys: Any,
    pool: Any,
    sooner: Any,
    found: Any,
    count: Any,
) -> Any:
    """Folds rows from `start` on into groups of `full` messages. Returns the first row for which there is no room, and
    how many groups are in `found`: the rows that completed them, and their accumulators, whose items are still in use.

    A new group is due at `due_ns`. All else: see `pane_kernels.add_rows`.
    """
    panes, floats, free, counts, items = pool
    found_rows, words = found
    is_large, gathers = keys.nbytes > CACHED_BYTES, gathers_more(folds)
    for row in range(np.uint64(start), np.uint64(len(slots))):
        if is_large:
            ask_ahead(row, slots, keys, panes)
        slot = np.uint64(slots[row])
        pane = keys[slot, NEWEST]
        if pane < 0:
            pane = open_pane(slot, -1, 0, folds, keys, pool)
            if pane < 0:
                return np.int64(row), count
            keys[slot, DUE] = due_ns
            sooner[counts[SOONER]] = slot
            counts[SOONER] += 1
        at = np.uint64(pane)
        if gathers and not make_room_for(row, values, folds, panes, at, MESSAGES, items):
            return np.int64(row), count
        fold_row(row, values, folds, panes, floats, at, items)
        if panes[at, MESSAGES] >= full:
            found_rows[count] = row
            copy_accumulators(folds.words, words, count, 0, panes, at, MESSAGES)
            count += 1
            remove_pane(slot, pane, keys, panes, free, counts)
            keys[slot, DUE] = NEVER
    return len(slots), count


@kernel
def add_to_opened(
    start: Any,
    slots: Any,
    rows: Any,
    span: Any,
    values: Any,
    folds: Any,
    keys: Any,
    pool: Any,
    sooner: Any,
) -> Any:
    """Folds rows from `start` on into the only windows of their keys; stops before the first one for which there is no
    room, and returns it.

    `rows`: event times; the watermark before each; when the window of each late row opened, filled here; and marks, at
    first those of rows that an aggregate refuses, in the end those of all rows. All else: see `pane_kernels.add_rows`.
    """
    times, watermarks, opened, marks = rows
    panes, floats, _, counts, items = pool
    is_large, gathers = keys.nbytes > CACHED_BYTES, gathers_more(folds)
    for row in range(np.uint64(start), np.uint64(len(slots))):
        if is_large:
            ask_ahead(row, slots, keys, panes)
        slot, at_ns = np.uint64(slots[row]), times[row]
        pane, due_ns = keys[slot, NEWEST], keys[slot, DUE]
        if pane < 0:
            opened[row] = at_ns if due_ns == NEVER else due_ns - span.trigger_ns - span.keep_ns
            # A window that would be over at once is not opened.
            is_over = at_ns <= NEVER - span.trigger_ns and at_ns + span.trigger_ns <= watermarks[row]
            if due_ns != NEVER or is_over:
                if marks[row] != REFUSED or not span.late_fires:
                    marks[row] = LATE
                continue
            if at_ns > span.latest_ns:
                marks[row] = BEYOND
        if marks[row]:
            continue
        if pane < 0:
            pane = open_pane(slot, -1, 0, folds, keys, pool)
            if pane < 0:
                return np.int64(row)
            keys[slot, DUE] = at_ns + span.trigger_ns
            sooner[counts[SOONER]] = slot
            counts[SOONER] += 1
        at = np.uint64(pane)
        if gathers and not make_room_for(row, values, folds, panes, at, MESSAGES, items):
            return np.int64(row)
        fold_row(row, values, folds, panes, floats, at, items)
    return len(slots)
