"""Kernels of sessions over columns: add rows to sessions, and fire those that are over. As `sessions` does.

A session is a pane (see `state.pane_pool`): its number is the event time of its first message, its last word that of
its last message. A key's sessions are further apart than the gap, so a row is near two of them at most.
"""

from typing import Any, NamedTuple

import numpy as np

from bettong.application.timers import NEVER
from bettong.machine_code import kernel
from bettong.worker.prefetching import CACHED_BYTES
from bettong.worker.state.pane_links import ask_ahead, pane_at_or_before, remove_pane
from bettong.worker.state.pane_pool import DUE, MESSAGES, NEWEST, NUMBER, OLDER, OLDEST, SOONER, VALUES
from bettong.worker.windows.fold_kernels import (
    copy_accumulators,
    fold_row,
    gathers_more,
    give_back_tables,
    join_accumulators,
    make_room_for,
)
from bettong.worker.windows.pane_kernels import BEYOND, LATE, REFUSED, join_all_tables, open_pane

# What to do with a late row: leave it out, fire it as a session by itself, or add it to the oldest open session.
LEFT_OUT, ALONE, INTO_OLDEST = range(3)
# Returned instead of a pane: the row goes into none, or there is no room for it.
_NONE, _NO_ROOM = -1, -2


class SessionTimes(NamedTuple):
    """Settings of sessions: see `Sessions`.

    `wait_ns`: from the last message to when a session is due. `latest_ns`: sessions of later event times end beyond 64
    bits. `late`: what to do with a late row.
    """

    gap_ns: int
    wait_ns: int
    latest_ns: int
    late: int


@kernel
def add_to_sessions(
    start: Any,
    slots: Any,
    rows: Any,
    spans: Any,
    values: Any,
    folds: Any,
    keys: Any,
    pool: Any,
    joined: Any,
    marks: Any,
    sooner: Any,
) -> Any:
    """Folds rows from `start` on into sessions, in order; stops before the first one for which there is no room, and
    returns it.

    `rows`: event times, the watermark before each, and whether an aggregate refuses it. `marks`: by row, set where a
    row needs one. `joined`: scratch words of a session. All else: see `pane_kernels.add_rows`.
    """
    times, _, refused = rows
    panes, floats, _, _, items = pool
    gathers, last = gathers_more(folds), VALUES + folds.words
    is_large, count = keys.nbytes > CACHED_BYTES, np.uint64(len(slots))
    for row in range(np.uint64(start), count):
        if is_large:
            ask_ahead(row, slots, keys, panes)
        at_ns = times[row]
        if at_ns > spans.latest_ns:
            marks[row] = BEYOND
            continue
        slot = np.uint64(slots[row])
        pane = keys[slot, NEWEST]
        goes_on = pane >= 0 and panes[pane, NUMBER] <= at_ns <= panes[pane, last] + spans.gap_ns
        if goes_on and not refused[row]:
            panes[pane, last] = max(panes[pane, last], at_ns)
        else:
            pane = _session_of(row, slot, rows, spans, folds, keys, pool, joined, marks, sooner)
            if pane == _NO_ROOM:
                return np.int64(row)
            if pane == _NONE:
                continue
        at = np.uint64(pane)
        if gathers and not make_room_for(row, values, folds, panes, at, MESSAGES, items):
            return np.int64(row)
        fold_row(row, values, folds, panes, floats, at, items)
    return len(slots)


@kernel
def _session_of(
    row: Any,
    slot: Any,
    rows: Any,
    spans: Any,
    folds: Any,
    keys: Any,
    pool: Any,
    joined: Any,
    marks: Any,
    sooner: Any,
) -> Any:
    """The session that a row goes into, extended to cover its time; a new one where none is near."""
    times, watermarks, refused = rows
    panes, _, free, counts, _ = pool
    at_ns, last = times[row], VALUES + folds.words
    # Sessions due by the watermark fired before a row older than it, so these are open.
    pane = pane_at_or_before(keys[slot, OLDEST], keys[slot, NEWEST], at_ns + spans.gap_ns, panes)
    is_near = pane >= 0 and panes[pane, last] + spans.gap_ns >= at_ns
    if not is_near and at_ns + spans.wait_ns <= watermarks[row]:
        oldest = keys[slot, OLDEST] if spans.late == INTO_OLDEST else _NONE
        is_taken = spans.late == ALONE or oldest >= 0
        marks[row] = REFUSED if is_taken and refused[row] else LATE
        return oldest if marks[row] == LATE else _NONE
    if refused[row]:
        marks[row] = REFUSED
        return _NONE
    if not is_near:
        pane = open_pane(slot, pane, at_ns, folds, keys, pool)
        if pane < 0:
            return _NO_ROOM
        panes[pane, last] = at_ns
    older = panes[pane, OLDER]
    if older >= 0 and panes[older, last] + spans.gap_ns >= at_ns:
        if not _join_newer(older, pane, folds, pool, joined):
            return _NO_ROOM
        panes[older, last] = panes[pane, last]
        remove_pane(slot, pane, keys, panes, free, counts)
        pane = older
    panes[pane, NUMBER], panes[pane, last] = min(panes[pane, NUMBER], at_ns), max(panes[pane, last], at_ns)
    # A session that grows keeps its timer: when that is due, the new end is read.
    if panes[pane, last] + spans.wait_ns < keys[slot, DUE]:
        keys[slot, DUE] = panes[pane, last] + spans.wait_ns
        sooner[counts[SOONER]] = slot
        counts[SOONER] += 1
    return pane


@kernel
def _join_newer(older: Any, newer: Any, folds: Any, pool: Any, joined: Any) -> Any:
    """Merges a key's next session into the one before. False, and unchanged, where there is no room for its items."""
    panes, floats, _, _, items = pool
    if not join_all_tables(panes[newer, NUMBER] + 1, folds, older, panes, joined, 0, items):
        return False
    join_accumulators(folds, panes, floats, older, MESSAGES, panes, floats, newer, MESSAGES)
    give_back_tables(folds, panes, older, MESSAGES, items)
    give_back_tables(folds, panes, newer, MESSAGES, items)
    for word in range(folds.own_words, folds.words):
        panes[older, VALUES + word] = joined[0, 1 + word]
    return True


@kernel
def close_sessions(
    start: Any, due: Any, spans: Any, folds: Any, keys: Any, pool: Any, found: Any, count: Any
) -> Any:
    """Fires the sessions of keys that are due: see `pane_kernels.close_windows`."""
    panes, _, free, counts, _ = pool
    found_keys, found_starts, found_dues, words, _ = found
    last, dues = VALUES + folds.words, due.dues
    for index in range(start, len(due.slots)):
        slot = np.uint64(due.slots[index])
        while dues[index] <= due.untils[index]:
            oldest = keys[slot, OLDEST]
            over_ns = panes[oldest, last] + spans.wait_ns
            if over_ns <= dues[index]:
                if count == len(found_keys):
                    return index, count
                # The fired window takes over its tables.
                copy_accumulators(folds.words, words, count, 0, panes, oldest, MESSAGES)
                found_keys[count], found_starts[count] = index, panes[oldest, NUMBER]
                found_dues[count] = dues[index]
                count += 1
                remove_pane(slot, oldest, keys, panes, free, counts)
                oldest = keys[slot, OLDEST]
                over_ns = panes[oldest, last] + spans.wait_ns if oldest >= 0 else NEVER
            dues[index] = over_ns
        keys[slot, DUE] = dues[index]
    return len(due.slots), count
