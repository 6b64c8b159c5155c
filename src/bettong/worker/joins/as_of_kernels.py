"""Kernels of `join_as_of` over columns: versions of a table are kept, and messages wait for the watermark.

They do what `as_of` does with objects. Kept messages: see `state.kept_pool`; the left side holds messages that wait,
the right one versions, of which no two have one time. The numbers of messages are not used.

Numba compiles this when the library is first run, not for each application, so what differs is passed as data.
`tolerance_ns`: NEVER without one.
"""

from typing import Any

import numpy as np

from bettong.application.timers import NEVER
from bettong.machine_code import inlined, kernel
from bettong.worker.joins.as_of import SPARE_VERSIONS
from bettong.worker.prefetching import AHEAD, CACHED_BYTES
from bettong.worker.state.kept_pool import (
    DUE,
    ENTRIES_AHEAD,
    FIRST,
    KEPT,
    MESSAGE,
    NUMBER,
    SIDE_WORDS,
    SIDES,
    TIME,
    ask_for,
    at_or_after,
    hole_for,
    is_full,
    make_room,
    shrink,
)

WAITING, VERSIONS = SIDES, SIDES + SIDE_WORDS
# Marks of a row: it is kept, is paired at once, or is late.
TAKEN, AT_ONCE, LATE = range(3)
# Indexes of `counts`: pairs, keys that are due sooner, versions out of reach, messages that have waited, and firings.
PAIRS, SOONER, PAST, WAITED, FIRINGS = range(5)
# Stands for the version of a pair without one.
NO_VERSION = -1


@kernel
def take_rows(
    start: Any,
    slots: Any,
    rows: Any,
    tolerance_ns: Any,
    keys: Any,
    pool: Any,
    marks: Any,
    pairs: Any,
    sooner: Any,
    past: Any,
    counts: Any,
) -> Any:
    """Adds rows in order, from `start` on; returns the first one for which there are too few entries.

    `rows`: by row time, watermark, side, and the row of its message. `marks`: set where one is not TAKEN. `pairs`:
    filled with rows and messages of versions; `sooner`: with slots due sooner; `past`: with versions' messages to free.
    """
    times, watermarks, of_right, messages = rows
    entries = pool[0]
    is_large, count = keys.nbytes > CACHED_BYTES, np.uint64(len(slots))
    for row in range(np.uint64(start), count):
        if is_large and row + AHEAD < count:
            ask_for(np.uint64(slots[row + AHEAD]), np.uint64(slots[row + ENTRIES_AHEAD]), keys, entries)
        slot, at_ns, reached_ns = np.uint64(slots[row]), times[row], watermarks[row]
        begin = keys[slot, VERSIONS + FIRST]
        end = begin + keys[slot, VERSIONS + KEPT]
        side = VERSIONS if of_right[row] else WAITING
        if at_ns < reached_ns:
            if not of_right[row]:
                found = _valid(entries, begin, end, at_ns, reached_ns, tolerance_ns)
                marks[row] = LATE if found == NO_VERSION else AT_ONCE
                if found != NO_VERSION:
                    pairs[0, counts[PAIRS]], pairs[1, counts[PAIRS]] = row, entries[found, MESSAGE]
                    counts[PAIRS] += 1
                continue
            if _is_out_of_reach(entries, begin, end, at_ns, reached_ns, tolerance_ns):
                marks[row] = LATE
                past[counts[PAST]] = messages[row]
                counts[PAST] += 1
                continue
        if is_full(slot, side, keys) and not make_room(slot, side, keys, pool):
            return np.int64(row)
        due_ns = NEVER
        if of_right[row]:
            _put_version(slot, at_ns, messages[row], keys, entries, past, counts)
            asked_ns = reached_ns
            if keys[slot, WAITING + KEPT]:
                asked_ns = min(asked_ns, entries[keys[slot, WAITING + FIRST], TIME])
            _forget_before(slot, asked_ns, keys, entries, past, counts)
            if keys[slot, DUE] == NEVER:
                due_ns = _droppable_ns(slot, tolerance_ns, keys, entries)
        else:
            _insert(slot, WAITING, at_ns, messages[row], keys, entries)
            due_ns = at_ns + 1
        if due_ns < keys[slot, DUE]:
            keys[slot, DUE] = due_ns
            sooner[counts[SOONER]] = slots[row]
            counts[SOONER] += 1
    return len(slots)


@kernel
def close_keys(
    slots: Any,
    dues: Any,
    until_ns: Any,
    tolerance_ns: Any,
    emits_alone: Any,
    keys: Any,
    pool: Any,
    firings: Any,
    pairs: Any,
    gone: Any,
    counts: Any,
) -> None:
    """Fires keys that are due, until each is due later than `until_ns`, or has no timer.

    `firings`: filled with slots, when each was due, and the latest due time of its key so far. `pairs`: with numbers of
    firings, messages, and those of their versions. `gone`: with messages that have waited, and those of versions out of
    reach.
    """
    entries = pool[0]
    waited, past = gone
    is_large, count = keys.nbytes > CACHED_BYTES, np.uint64(len(slots))
    for index in range(count):
        if is_large and index + AHEAD < count:
            ask_for(np.uint64(slots[index + AHEAD]), np.uint64(slots[index + ENTRIES_AHEAD]), keys, entries)
        slot = np.uint64(slots[index])
        due_ns = latest_ns = dues[index]
        while due_ns <= until_ns:
            latest_ns = max(latest_ns, due_ns)
            firing = counts[FIRINGS]
            firings[0, firing], firings[1, firing], firings[2, firing] = slots[index], due_ns, latest_ns
            counts[FIRINGS] += 1
            begin = keys[slot, VERSIONS + FIRST]
            end = begin + keys[slot, VERSIONS + KEPT]
            while keys[slot, WAITING + KEPT] and entries[keys[slot, WAITING + FIRST], TIME] < due_ns:
                first = keys[slot, WAITING + FIRST]
                at_ns, message = entries[first, TIME], entries[first, MESSAGE]
                found = _valid(entries, begin, end, at_ns, at_ns, tolerance_ns)
                if found != NO_VERSION or emits_alone:
                    pair = counts[PAIRS]
                    version = NO_VERSION if found == NO_VERSION else entries[found, MESSAGE]
                    pairs[0, pair], pairs[1, pair], pairs[2, pair] = firing, message, version
                    counts[PAIRS] += 1
                waited[counts[WAITED]] = message
                counts[WAITED] += 1
                keys[slot, WAITING + FIRST] += 1
                keys[slot, WAITING + KEPT] -= 1
            _forget_before(slot, due_ns, keys, entries, past, counts)
            if tolerance_ns != NEVER:
                until = at_or_after(entries, keys[slot, VERSIONS + FIRST], end, due_ns - tolerance_ns)
                _drop_first(slot, until, keys, entries, past, counts)
            if keys[slot, WAITING + KEPT]:
                due_ns = entries[keys[slot, WAITING + FIRST], TIME] + 1
            else:
                due_ns = _droppable_ns(slot, tolerance_ns, keys, entries)
        for side in range(2):
            shrink(slot, SIDES + SIDE_WORDS * side, keys, pool)
        keys[slot, DUE] = due_ns


@inlined
def _after(entries: Any, begin: Any, end: Any, at_ns: Any) -> Any:
    """The first entry of a later time; `end` where there is none."""
    if begin == end or entries[end - 1, TIME] <= at_ns:
        return end
    return at_or_after(entries, begin, end, at_ns + 1)


@inlined
def _valid(entries: Any, begin: Any, end: Any, at_ns: Any, reached_ns: Any, tolerance_ns: Any) -> Any:
    """The version that was valid then; NO_VERSION if there is none, or if an earlier version may have been dropped."""
    found = _after(entries, begin, end, reached_ns) - 1
    if found < begin or entries[found, TIME] < reached_ns - tolerance_ns or entries[found, TIME] > at_ns:
        return NO_VERSION
    return found


@inlined
def _is_out_of_reach(
    entries: Any, begin: Any, end: Any, at_ns: Any, reached_ns: Any, tolerance_ns: Any
) -> Any:
    """Whether no message that is not late can need a version of that time."""
    found = _after(entries, begin, end, reached_ns) - 1
    return at_ns < reached_ns - tolerance_ns or (found >= begin and entries[found, TIME] > at_ns)


@inlined
def _droppable_ns(slot: Any, tolerance_ns: Any, keys: Any, entries: Any) -> Any:
    """When versions can be dropped, all or all but the last one, if no message arrives until then."""
    kept = keys[slot, VERSIONS + KEPT]
    if kept == 0 or (tolerance_ns == NEVER and kept <= SPARE_VERSIONS):
        return NEVER
    last_ns = entries[keys[slot, VERSIONS + FIRST] + kept - 1, TIME]
    return last_ns if tolerance_ns == NEVER else last_ns + tolerance_ns + 1


@inlined
def _insert(slot: Any, side: Any, at_ns: Any, message: Any, keys: Any, entries: Any) -> None:
    """Inserts an entry behind all of that side that are not later. There must be room."""
    first = keys[slot, side + FIRST]
    at = first + keys[slot, side + KEPT]
    if at > first and entries[at - 1, TIME] > at_ns:
        at = hole_for(first, at, at_ns, entries)
    entries[at, TIME], entries[at, NUMBER], entries[at, MESSAGE] = at_ns, 0, message
    keys[slot, side + KEPT] += 1


@inlined
def _put_version(
    slot: Any, at_ns: Any, message: Any, keys: Any, entries: Any, past: Any, counts: Any
) -> None:
    """Adds a version; of versions of one time, the last one in the log is kept."""
    first = keys[slot, VERSIONS + FIRST]
    end = first + keys[slot, VERSIONS + KEPT]
    if end > first and entries[end - 1, TIME] >= at_ns:
        known = at_or_after(entries, first, end, at_ns)
        if entries[known, TIME] == at_ns:
            past[counts[PAST]] = entries[known, MESSAGE]
            counts[PAST] += 1
            entries[known, MESSAGE] = message
            return
    _insert(slot, VERSIONS, at_ns, message, keys, entries)


@inlined
def _forget_before(slot: Any, at_ns: Any, keys: Any, entries: Any, past: Any, counts: Any) -> None:
    """Drops versions that only messages before that time need: the last one at or before it stays."""
    first = keys[slot, VERSIONS + FIRST]
    end = first + keys[slot, VERSIONS + KEPT]
    if end - first > 1 and entries[first + 1, TIME] <= at_ns:
        _drop_first(slot, _after(entries, first, end, at_ns) - 1, keys, entries, past, counts)


@inlined
def _drop_first(slot: Any, until: Any, keys: Any, entries: Any, past: Any, counts: Any) -> None:
    """Drops the versions before that entry."""
    first = keys[slot, VERSIONS + FIRST]
    for each in range(first, until):
        past[counts[PAST]] = entries[each, MESSAGE]
        counts[PAST] += 1
    keys[slot, VERSIONS + FIRST] = until
    keys[slot, VERSIONS + KEPT] -= until - first
