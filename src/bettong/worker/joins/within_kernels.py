"""Kernels of `join_within` over columns: pair rows with kept messages, keep them, and drop those that are past.

They do what `within` does with objects. Kept messages: see `state.kept_pool`. `reaches`: a `Reach` a side, as a row.

Numba compiles this when the library is first run, not for each application, so what differs is passed as data.
"""

from typing import Any

import numpy as np

from bettong.application.timers import NEVER
from bettong.machine_code import allocating, inlined, kernel
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

# Marks of a row: it is paired and kept for later partners; it is paired only, since its reach is over; it is late; its
# bounds end beyond 64 bits.
KEPT_ROW, PASSING, LATE, BEYOND = range(4)
# Indexes of `counts`: pairs, keys that are due sooner, and the pairs for which there was no room.
PAIRS, SOONER, MORE_PAIRS = range(3)
FIRST_NS, LAST_NS, KEPT_NS, EMITS_ALONE = range(4)
# Stands for the partner's message where a row stays alone.
NO_MESSAGE = -1
# What `drop_past` counts: dropped messages of each side, firings of keys, and messages that stay alone.
LEFT_GONE, RIGHT_GONE, FIRED, ALONE = range(4)


@kernel
def mark_rows(times: Any, watermarks: Any, of_right: Any, reaches: Any, latest_ns: Any, marks: Any) -> Any:
    """Fills the mark of each row; returns how many are not kept. Bounds of times after `latest_ns` exceed 64 bits."""
    others = 0
    for row in range(len(times)):
        at_ns, side = times[row], np.int64(of_right[row])
        behind_ns = max(0, watermarks[row] - at_ns)
        mark = KEPT_ROW
        if behind_ns > reaches[side, LAST_NS] - reaches[side, FIRST_NS]:
            mark = LATE
        elif at_ns > latest_ns:
            mark = BEYOND
        elif at_ns + reaches[side, KEPT_NS] < watermarks[row]:
            mark = PASSING
        marks[row] = mark
        others += mark != KEPT_ROW
    return others


@kernel
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
    """Pairs rows from `start` on with the kept messages of the other side, and keeps them.

    `rows`: by row event time, watermark, side, mark and the row of its message where that is kept.
    `pairs`: filled with rows and their partners' messages, and with rows that stay alone. `sooner`: with the slots of
    keys that are due sooner.
    Stops before the first row for which there is too little room, and returns it: room for the pairs that
    `counts[MORE_PAIRS]` counts, or, where that is 0, for its entry.
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
        is_alone = reaches[side, EMITS_ALONE] != 0 and low == high
        made = 1 if is_alone and marks[row] == PASSING else high - low
        if counts[PAIRS] + made > pairs.shape[1]:
            counts[MORE_PAIRS] = made
            return np.int64(row)
        if marks[row] == KEPT_ROW and is_full(slot, own, keys) and not make_room(slot, own, keys, pool):
            return np.int64(row)
        first, is_ordered = counts[PAIRS], True
        if made > high - low:
            pairs[0, first], pairs[1, first] = row, NO_MESSAGE
        for index in range(low, high):
            if entries[index, NUMBER] < 0:
                entries[index, NUMBER] = ~entries[index, NUMBER]
            pairs[0, first + index - low], pairs[1, first + index - low] = row, entries[index, MESSAGE]
            is_ordered &= index == low or entries[index - 1, NUMBER] < entries[index, NUMBER]
        if not is_ordered:
            _put_in_order(first, low, high, entries, pairs)
        counts[PAIRS] += made
        if marks[row] == KEPT_ROW:
            number = keys[slot, COUNT]
            _keep(slot, own, at_ns, ~number if is_alone else number, messages[row], keys, entries)
            due_ns = at_ns + reaches[side, KEPT_NS] + 1
            if keys[slot, DUE] == NEVER or (is_alone and due_ns < keys[slot, DUE]):
                keys[slot, DUE] = due_ns
                sooner[counts[SOONER]] = slots[row]
                counts[SOONER] += 1
    return len(slots)


@inlined
def _between(begin: Any, end: Any, from_ns: Any, until_ns: Any, entries: Any) -> Any:
    """The first entry of these times, and the one behind the last."""
    low = high = end
    if end > begin and entries[end - 1, TIME] >= from_ns:
        low = at_or_after(entries, begin, end, from_ns)
        if entries[end - 1, TIME] > until_ns:
            high = at_or_after(entries, low, end, until_ns + 1)
    return low, high


@allocating
def _put_in_order(first: Any, low: Any, high: Any, entries: Any, pairs: Any) -> None:
    """Sorts the pairs of a row with these entries, from `first` on, by the order of the log."""
    order = np.argsort(entries[low:high, NUMBER])
    for index in range(high - low):
        pairs[1, first + index] = entries[low + order[index], MESSAGE]


@inlined
def _keep(slot: Any, own: Any, at_ns: Any, number: Any, message: Any, keys: Any, entries: Any) -> None:
    """Adds an entry to a side, whose words of the key begin at `own`. There must be room for it."""
    at = keys[slot, own + FIRST] + keys[slot, own + KEPT]
    if at > keys[slot, own + FIRST] and entries[at - 1, TIME] > at_ns:
        at = hole_for(keys[slot, own + FIRST], at, at_ns, entries)
    entries[at, TIME], entries[at, NUMBER], entries[at, MESSAGE] = at_ns, number, message
    keys[slot, own + KEPT] += 1
    keys[slot, COUNT] += 1


@allocating
def drop_past(
    slots: Any,
    dues: Any,
    until_ns: Any,
    reaches: Any,
    keys: Any,
    pool: Any,
    dropped: Any,
    fired: Any,
    alone: Any,
) -> Any:
    """Drops past messages of keys that are due, until each is due later than `until_ns` or keeps nothing.

    `dropped`: filled with the dropped messages, by side. `fired`: with the slot of a key and when it was due, for each
    time that it was. `alone`: with the messages that stay alone: index in `fired`, side and message.
    Returns how many these are.
    """
    entries = pool[0]
    counts, firsts = np.zeros(4, np.int64), np.empty(2, np.int64)
    is_large, count = keys.nbytes > CACHED_BYTES, np.uint64(len(slots))
    for index in range(count):
        if is_large and index + AHEAD < count:
            ask_for(np.uint64(slots[index + AHEAD]), np.uint64(slots[index + ENTRIES_AHEAD]), keys, entries)
        slot = np.uint64(slots[index])
        due_ns = dues[index]
        for side in range(2):
            firsts[side] = keys[slot, SIDES + SIDE_WORDS * side + FIRST]
        while due_ns <= until_ns:
            due_ns = _fire(slot, due_ns, reaches, keys, entries, dropped, fired, alone, counts, firsts)
        for side in range(2):
            shrink(slot, SIDES + SIDE_WORDS * side, keys, pool)
        keys[slot, DUE] = due_ns
    return counts


@inlined
def _fire(
    slot: Any,
    due_ns: Any,
    reaches: Any,
    keys: Any,
    entries: Any,
    dropped: Any,
    fired: Any,
    alone: Any,
    counts: Any,
    firsts: Any,
) -> Any:
    """Fires a key that is due; returns when it is due next. `firsts`: by side, the entry before which none is alone."""
    fired[0, counts[FIRED]], fired[1, counts[FIRED]] = slot, due_ns
    before = counts[ALONE]
    end_ns = alone_ns = NEVER
    for side in range(2):
        at, kept_ns = SIDES + SIDE_WORDS * side, reaches[side, KEPT_NS]
        begin, kept = keys[slot, at + FIRST], keys[slot, at + KEPT]
        gone = at_or_after(entries, begin, begin + kept, due_ns - kept_ns) - begin
        if reaches[side, EMITS_ALONE] != 0:
            first = _first_alone(entries, firsts[side], begin + kept)
            if counts[ALONE] > before and first < begin + gone:
                # The left side fires first; the right one next, since the key is due again.
                gone = 0
            while first < begin + gone:
                alone[0, counts[ALONE]], alone[1, counts[ALONE]] = counts[FIRED], side
                alone[2, counts[ALONE]] = entries[first, MESSAGE]
                counts[ALONE] += 1
                first = _first_alone(entries, first + 1, begin + kept)
            if first < begin + kept:
                alone_ns = min(alone_ns, entries[first, TIME] + kept_ns + 1)
            firsts[side] = first
        for each in range(gone):
            dropped[side][counts[side]] = entries[begin + each, MESSAGE]
            counts[side] += 1
        keys[slot, at + FIRST] += gone
        keys[slot, at + KEPT] -= gone
        if gone < kept:
            side_ns = entries[begin + kept - 1, TIME] + kept_ns + 1
            end_ns = side_ns if end_ns == NEVER else max(end_ns, side_ns)
    counts[FIRED] += 1
    return end_ns if alone_ns == NEVER else alone_ns


@inlined
def _first_alone(entries: Any, begin: Any, end: Any) -> Any:
    """The first entry of a message that had no partner yet; `end` where there is none."""
    while begin < end and entries[begin, NUMBER] >= 0:
        begin += 1
    return begin
