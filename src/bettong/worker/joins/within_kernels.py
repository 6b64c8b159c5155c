"""`join_within` over columns, as machine code: rows find their partners and are kept, and what is past is dropped.

The same as `within` does with objects, for pairs alone. What is kept: see `state.kept_pool`. `reaches`, a row a side:
how much later than a message its partners are, at least and at most.

Numba compiles this when the library is first run, not for each application, so what differs is data.
"""

from typing import Any

import numba
import numpy as np

from bettong.application.timers import NEVER
from bettong.worker.prefetching import AHEAD, CACHED_BYTES
from bettong.worker.state.kept_pool import (
    COUNT,
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

# What becomes of a row: it finds partners and is kept for others, finds some and is over, is late, or has bounds that
# end beyond 64 bits.
KEPT_ROW, PASSING, LATE, BEYOND = range(4)
# What `counts` counts: pairs, keys that are due sooner, and the pairs for which there was no room.
PAIRS, SOONER, MORE_PAIRS = range(3)
FIRST_NS, LAST_NS = range(2)


@numba.njit(cache=True)
def judge_rows(times: Any, watermarks: Any, of_right: Any, reaches: Any, latest_ns: Any, marks: Any) -> Any:
    """By row, what becomes of it; returns how many are not kept. Bounds of times after `latest_ns` end too late."""
    others = 0
    for row in range(len(times)):
        at_ns, side = times[row], np.int64(of_right[row])
        behind_ns = max(0, watermarks[row] - at_ns)
        mark = KEPT_ROW
        if behind_ns > reaches[side, LAST_NS] - reaches[side, FIRST_NS]:
            mark = LATE
        elif at_ns > latest_ns:
            mark = BEYOND
        elif at_ns + reaches[side, LAST_NS] < watermarks[row]:
            mark = PASSING
        marks[row] = mark
        others += mark != KEPT_ROW
    return others


@numba.njit(cache=True)
def pair_rows(
    start: Any,
    slots: Any,
    rows: Any,
    reaches: Any,
    keys: Any,
    pool: Any,
    pairs: Any,
    sooner: Any,
    counts: Any,
) -> Any:
    """Pairs rows with what is kept of the other side, and keeps them, from `start` on.

    `rows`: by row event time, watermark, side, mark and the row of its message where that is kept.
    `pairs`: filled with rows and their partners' messages. `sooner`: with the slots of keys that are due sooner.
    Stops before the first row for which there is too little room, and returns it: for so many pairs as `counts` says,
    or, where that is 0, for its entry.
    """
    times, watermarks, of_right, marks, messages = rows
    entries = pool[0]
    is_large, count = keys.nbytes > CACHED_BYTES, np.uint64(len(slots))
    for row in range(np.uint64(start), count):
        if is_large and row + AHEAD < count:
            ask_for(np.uint64(slots[row + AHEAD]), np.uint64(slots[row + ENTRIES_AHEAD]), keys, entries)
        slot, side, at_ns = np.uint64(slots[row]), np.int64(of_right[row]), times[row]
        own, other = SIDES + SIDE_WORDS * side, SIDES + SIDE_WORDS * (1 - side)
        from_ns, until_ns = (
            max(at_ns, watermarks[row]) + reaches[side, FIRST_NS],
            at_ns + reaches[side, LAST_NS],
        )
        begin = keys[slot, other + FIRST]
        low, high = _between(begin, begin + keys[slot, other + KEPT], from_ns, until_ns, entries)
        if counts[PAIRS] + high - low > pairs.shape[1]:
            counts[MORE_PAIRS] = high - low
            return np.int64(row)
        if marks[row] == KEPT_ROW and is_full(slot, own, keys) and not make_room(slot, own, keys, pool):
            return np.int64(row)
        first, is_ordered = counts[PAIRS], True
        for index in range(low, high):
            pairs[0, first + index - low], pairs[1, first + index - low] = row, entries[index, MESSAGE]
            is_ordered &= index == low or entries[index - 1, NUMBER] < entries[index, NUMBER]
        if not is_ordered:
            _put_in_order(first, low, high, entries, pairs)
        counts[PAIRS] += high - low
        if marks[row] == KEPT_ROW:
            at = keys[slot, own + FIRST] + keys[slot, own + KEPT]
            if at > keys[slot, own + FIRST] and entries[at - 1, TIME] > at_ns:
                at = hole_for(keys[slot, own + FIRST], at, at_ns, entries)
            entries[at, TIME], entries[at, NUMBER], entries[at, MESSAGE] = (
                at_ns,
                keys[slot, COUNT],
                messages[row],
            )
            keys[slot, own + KEPT] += 1
            keys[slot, COUNT] += 1
            if keys[slot, DUE] == NEVER:
                keys[slot, DUE] = until_ns + 1
                sooner[counts[SOONER]] = slots[row]
                counts[SOONER] += 1
    return len(slots)


@numba.njit(cache=True, inline="always")
def _between(begin: Any, end: Any, from_ns: Any, until_ns: Any, entries: Any) -> Any:
    """The first entry of these times, and the one behind the last."""
    low = high = end
    if end > begin and entries[end - 1, TIME] >= from_ns:
        low = at_or_after(entries, begin, end, from_ns)
        if entries[end - 1, TIME] > until_ns:
            high = at_or_after(entries, low, end, until_ns + 1)
    return low, high


@numba.njit(cache=True)
def _put_in_order(first: Any, low: Any, high: Any, entries: Any, pairs: Any) -> None:
    """The pairs of a row with these entries, from `first` on, in the log's order."""
    order = np.argsort(entries[low:high, NUMBER])
    for index in range(high - low):
        pairs[1, first + index] = entries[low + order[index], MESSAGE]


@numba.njit(cache=True)
def drop_past(slots: Any, dues: Any, until_ns: Any, reaches: Any, keys: Any, pool: Any, dropped: Any) -> Any:
    """Keys that were due drop what is past; until they are due later than that, or keep nothing.

    `dropped`: filled with the messages that are gone, by side. Returns how many these are.
    """
    entries = pool[0]
    counts = np.zeros(2, np.int64)
    is_large, count = keys.nbytes > CACHED_BYTES, np.uint64(len(slots))
    for index in range(count):
        if is_large and index + AHEAD < count:
            ask_for(np.uint64(slots[index + AHEAD]), np.uint64(slots[index + ENTRIES_AHEAD]), keys, entries)
        slot = np.uint64(slots[index])
        due_ns = dues[index]
        while due_ns <= until_ns:
            next_ns = NEVER
            for side in range(2):
                at, last_ns = SIDES + SIDE_WORDS * side, reaches[side, LAST_NS]
                begin, kept = keys[slot, at + FIRST], keys[slot, at + KEPT]
                gone = at_or_after(entries, begin, begin + kept, due_ns - last_ns) - begin
                for each in range(gone):
                    dropped[side][counts[side]] = entries[begin + each, MESSAGE]
                    counts[side] += 1
                keys[slot, at + FIRST] += gone
                keys[slot, at + KEPT] -= gone
                if gone < kept:
                    end_ns = entries[begin + kept - 1, TIME] + last_ns + 1
                    next_ns = end_ns if next_ns == NEVER else max(next_ns, end_ns)
            due_ns = next_ns
        for side in range(2):
            shrink(slot, SIDES + SIDE_WORDS * side, keys, pool)
        keys[slot, DUE] = due_ns
    return counts
