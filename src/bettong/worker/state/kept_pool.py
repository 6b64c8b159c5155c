"""Messages that a join keeps of both sides: rows of one array, those of a key's side contiguous, and in order of time.

    keys, a row for each slot:   | due | count | left: first | kept | segment | right: first | kept | segment |
    entries, a row each:         | event time | number | message |

All are words of 64 bits. `count`: how many messages the key has had; `number`: which one of these it is. The entries of
a side are `kept` rows from `first` on, in a segment of their own (see `segments`), freed when the side keeps nothing,
and exchanged for one twice, or half, as long when it is full, or nearly empty. So a search is a bisection. `segment`: 0
without one.

`message`: its row in the columns of its side. The `number` of a message that may be a result alone, and had no partner
yet, is inverted, `~number`: below 0.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bettong.frames.columns import Array, Columns
from bettong.machine_code import inlined, kernel
from bettong.schema.schema import Schema
from bettong.worker.arrays import with_rows
from bettong.worker.prefetching import AHEAD, prefetch
from bettong.worker.state.segments import allocate_segment, free_segment, no_segments

DUE, COUNT, SIDES = range(3)
# The words of a side, from `SIDES + SIDE_WORDS * side` on.
FIRST, KEPT, SEGMENT, SIDE_WORDS = range(4)
WORDS = SIDES + 2 * SIDE_WORDS
TIME, NUMBER, MESSAGE, ENTRY_WORDS = range(4)

_FIRST_ENTRIES = 4096
_FIRST_MESSAGES = 1024
# How many rows ahead to prefetch entries: half as many as for their key, which says where they are.
ENTRIES_AHEAD = AHEAD // np.uint64(2)
# The least segment has 2**2 rows.
_LEAST_POWER = 2


class KeptPool:
    """The kept messages of all keys of a partition. `used`: how many entries were ever part of a segment."""

    def __init__(self, sides: tuple[Schema, Schema]) -> None:
        self.entries = np.zeros((_FIRST_ENTRIES, ENTRY_WORDS), np.int64)
        self.sides = tuple(MessageColumns(schema) for schema in sides)
        self._spare, self._used = no_segments()

    @property
    def arrays(self) -> tuple[Array, Array, Array]:
        """As kernels take them: entries; see `no_segments`."""
        return self.entries, self._spare, self._used

    @property
    def used(self) -> int:
        """How many entries were ever part of a segment."""
        return int(self._used[0])

    def grow(self) -> None:
        """Doubles the entries."""
        self.entries = with_rows(self.entries, 2 * len(self.entries))

    def kept(self, words: Array, side: int) -> Array:
        """The entries of one side of keys, given by their words: key after key, each by time."""
        at = SIDES + SIDE_WORDS * side
        counts = words[:, at + KEPT]
        starts = np.repeat(words[:, at + FIRST] - np.cumsum(counts) + counts, counts)
        return self.entries[starts + np.arange(len(starts))]

    def keep(self, words: Array, side: int, counts: Array, entries: Array) -> None:
        """Stores entries of a side of keys, given by their words: `counts` by key. They must keep nothing of it yet."""
        at = SIDES + SIDE_WORDS * side
        row = 0
        while (row := _put(row, words, at, counts, entries, self.arrays)) < len(words):
            self.grow()

    def forget(self, words: Array) -> None:
        """Frees what keys, given by their words, keep. The words still say what they kept."""
        for side, columns in enumerate(self.sides):
            columns.give_back(self.kept(words, side)[:, MESSAGE])
            segments = np.ascontiguousarray(words[:, SIDES + SIDE_WORDS * side + SEGMENT])
            _give_back_all(segments, self.entries, self._spare)


class MessageColumns:
    """Messages of one schema as columns. Freed rows are used again."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.columns: list[Any] = [np.zeros(_FIRST_MESSAGES, field.dtype) for field in schema.fields]
        self._free = np.empty(0, np.int64)
        self._free_count = self._used = 0

    @property
    def live(self) -> int:
        """How many messages there are."""
        return self._used - self._free_count

    def put(self, columns: Sequence[Any]) -> Array:
        """Stores messages; returns their rows."""
        rows = self._allocate_rows(len(columns[0]))
        for own, column in zip(self.columns, columns, strict=True):
            own[rows] = column
        return rows

    def at(self, rows: Array) -> Columns:
        """The messages in some rows."""
        return Columns(self.schema, len(rows), tuple(column.take(rows) for column in self.columns))

    def give_back(self, rows: Array) -> None:
        """Frees the rows of messages."""
        stop = self._free_count + len(rows)
        if stop > len(self._free):
            self._free = with_rows(self._free, 2 * stop)
        self._free[self._free_count : stop] = rows
        self._free_count = stop

    def _allocate_rows(self, count: int) -> Array:
        taken = np.empty(count, np.int64)
        again = min(count, self._free_count)
        self._free_count -= again
        taken[:again] = self._free[self._free_count : self._free_count + again]
        taken[again:] = self._used + np.arange(count - again)
        self._used += count - again
        if self._used > (room := len(self.columns[0])):
            room = max(2 * room, self._used)
            self.columns = [with_rows(each, room) for each in self.columns]
        return taken


@inlined
def is_full(slot: Any, at: Any, keys: Any) -> Any:
    """Whether there is no room after the entries of a side, whose words begin at `at` in the key's."""
    segment = keys[slot, at + SEGMENT]
    end = keys[slot, at + FIRST] + keys[slot, at + KEPT]
    return segment == 0 or end == (segment >> 6) + (1 << (segment & 63))


@kernel
def make_room(slot: Any, at: Any, keys: Any, pool: Any) -> Any:
    """Makes room after the entries of a side that has none.

    Returns False where there are too few entries: then nothing has changed.
    """
    entries, spare, used = pool
    segment, first, kept = keys[slot, at + SEGMENT], keys[slot, at + FIRST], keys[slot, at + KEPT]
    power = segment & 63
    to, taken = segment >> 6, segment
    if not segment or 2 * kept > 1 << power:
        taken = allocate_segment(power + 1 if segment else _LEAST_POWER, entries[:, TIME], spare, used)
        if taken == 0:
            return False
        to = taken >> 6
    _move(first, to, kept, entries)
    if taken != segment:
        free_segment(segment, entries[:, TIME], spare)
    keys[slot, at + FIRST], keys[slot, at + SEGMENT] = to, taken
    return True


@kernel
def shrink(slot: Any, at: Any, keys: Any, pool: Any) -> None:
    """Frees the segment of a side that keeps nothing; replaces one that is nearly empty by a shorter one."""
    entries, spare, used = pool
    segment, kept = keys[slot, at + SEGMENT], keys[slot, at + KEPT]
    power = segment & 63
    if kept == 0:
        free_segment(segment, entries[:, TIME], spare)
        keys[slot, at + FIRST], keys[slot, at + SEGMENT] = 0, 0
    elif power > _LEAST_POWER and 4 * kept <= 1 << power:
        taken = allocate_segment(power - 1, entries[:, TIME], spare, used)
        if taken:
            _move(keys[slot, at + FIRST], taken >> 6, kept, entries)
            free_segment(segment, entries[:, TIME], spare)
            keys[slot, at + FIRST], keys[slot, at + SEGMENT] = taken >> 6, taken


@inlined
def ask_for(later: Any, sooner: Any, keys: Any, entries: Any) -> None:
    """Prefetches the key of a later row, which lies in two cache lines, and the entries of a sooner one."""
    prefetch(keys, later)
    prefetch(keys, later + np.uint64(1))
    for side in range(2):
        at = SIDES + SIDE_WORDS * side
        prefetch(entries, np.uint64(keys[sooner, at + FIRST]))
        prefetch(entries, np.uint64(keys[sooner, at + FIRST] + keys[sooner, at + KEPT]))


@inlined
def at_or_after(entries: Any, begin: Any, end: Any, at_ns: Any) -> Any:
    """The first entry of that time or a later one; `end` where there is none."""
    while begin < end:
        middle = (begin + end) >> 1
        if entries[middle, TIME] < at_ns:
            begin = middle + 1
        else:
            end = middle
    return begin


@kernel
def hole_for(first: Any, end: Any, at_ns: Any, entries: Any) -> Any:
    """Makes room for an entry of that time, after all that are not later, and returns its row."""
    hole = at_or_after(entries, first, end, at_ns + 1)
    for at in range(end, hole, -1):
        for word in range(ENTRY_WORDS):
            entries[at, word] = entries[at - 1, word]
    return hole


@kernel
def _move(start: Any, to: Any, count: Any, entries: Any) -> None:
    """Copies entries, in their order: towards the start of their segment, or to another one."""
    for index in range(count):
        for word in range(ENTRY_WORDS):
            entries[to + index, word] = entries[start + index, word]


@kernel
def _put(start: Any, words: Any, at: Any, counts: Any, kept: Any, pool: Any) -> Any:
    """See KeptPool.keep; stops before the first key for which there are too few entries, and returns it."""
    entries, spare, used = pool
    begin = counts[:start].sum()
    for row in range(start, len(words)):
        if counts[row]:
            power = _LEAST_POWER
            while 1 << power < counts[row]:
                power += 1
            segment = allocate_segment(power, entries[:, TIME], spare, used)
            if segment == 0:
                return row
            words[row, at + FIRST], words[row, at + SEGMENT] = segment >> 6, segment
            for index in range(counts[row]):
                for word in range(ENTRY_WORDS):
                    entries[(segment >> 6) + index, word] = kept[begin + index, word]
        words[row, at + KEPT] = counts[row]
        begin += counts[row]
    return len(words)


@kernel
def _give_back_all(segments: Any, entries: Any, spare: Any) -> None:
    for index in range(len(segments)):
        free_segment(segments[index], entries[:, TIME], spare)
