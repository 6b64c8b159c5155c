"""Windows over columns: they do for the rows of a batch at once what `KeyWindows` do message by message."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from bettong.application.timers import NEVER
from bettong.frames.columns import Array, Columns
from bettong.user_errors import reason_of
from bettong.worker.arrays import with_rows
from bettong.worker.batch import Batch
from bettong.worker.state.pane_pool import OLDEST, SOONER
from bettong.worker.state.pane_table import PaneTable
from bettong.worker.windows.accumulators import WindowWords
from bettong.worker.windows.fold_kernels import Folds
from bettong.worker.windows.pane_kernels import DueKeys
from bettong.worker.windows.window_rows import ends_beyond


class PaneWords(Protocol):
    """The words that panes keep of messages."""

    words: int
    folds: Folds

    @property
    def nothing(self) -> Columns:
        """Columns without messages."""

    def load(self, columns: Columns) -> tuple[Array, Array, Array]:
        """The words that each row adds, shape (words, rows): as integers, as floats, and as integers flattened."""


class ClosedWindows(NamedTuple):
    """Firings, by time, then by key: keys, when each was due, the event time of its results, and whether these are
    early: of windows that are still open.

    `given`: by result, the index of its firing, ascending; then its window's start, end and accumulators.
    """

    keys: Array
    dues: Array
    times: Array
    are_early: Array
    given: Array
    starts: Array
    ends: Array
    kept: WindowWords


class ColumnWindows:
    """The windows of one kind, all keys of one partition, whose panes are in `table`.

    `word`: what error messages call one.
    """

    word = "window"

    def __init__(self, delay_ns: int, accumulators: PaneWords, table: PaneTable) -> None:
        self._delay_ns = delay_ns
        self._accumulators = accumulators
        self._table = table

    def add(self, batch: Batch, refused: Mapping[int, str]) -> Array:
        """Adds rows to the windows of their keys; returns the mark of each row (see `pane_kernels`).

        `refused`: rows that an aggregate refuses, if they go into a window.
        """
        raise NotImplementedError

    def late_windows(self, late: Array, times: Array) -> tuple[Array, Array]:
        """Starts and ends of the windows that these late rows of the last batch have alone. `times`: of those rows."""
        raise NotImplementedError

    def soonest_due(self, times: Array) -> Array:
        """See KeyWindows."""
        raise NotImplementedError

    def beyond(self, at_ns: int) -> str:
        """The reason for which a row of that event time is refused: its window ends beyond 64 bits."""
        return reason_of(ends_beyond(at_ns, self.word))

    def close(self, log_ns: int, watermark_ns: int) -> ClosedWindows | None:
        """Fires all windows that are over by then, and early results that are due; None where there are none.

        The caller then calls `release` with the result.
        """
        table = self._table
        slots, dues, early = table.take_windows_due(log_ns, watermark_ns)
        if not len(slots):
            return None
        until_ns = min(watermark_ns, NEVER - 1)
        # Firings are in order of time: early results after the windows that are due by then, and before the others.
        due = DueKeys(slots, dues, np.minimum(early, until_ns), np.zeros(len(slots), np.int64))
        fired = [self._fire_over(due)]
        waiting = np.flatnonzero((early != NEVER) & (table.words[slots, OLDEST] >= 0))
        if len(waiting):
            due = due.take(waiting, until_ns)
            fired.append(self._fire_early(due.slots, early[waiting]))
            due.fired[:] += 1
            fired.append(self._fire_over(due))
        table.close(slots)
        return in_order(fired, table.panes.items.words)

    def _fire_over(self, due: DueKeys) -> FiredWindows:
        """Fires the windows of these keys that are over."""
        found, count = self._find_windows(
            len(due.slots), lambda index, found, count: self._close(index, due, found, count)
        )
        dues = found.dues[:count]
        ends = dues - self._delay_ns
        return FiredWindows(
            self._table.keys_at(due.slots[found.keys[:count]]),
            dues,
            ends - 1,
            np.arange(count),
            found.starts[:count],
            ends,
            found.words[:count],
        )

    def _fire_early(self, slots: Array, dues: Array) -> FiredWindows:
        """Early results of keys with open windows, which are due at these times."""
        oldest = self._oldest_ends(slots)
        ends = oldest.copy()
        found, count = self._find_windows(
            len(slots), lambda index, found, count: self._show(index, slots, ends, found, count)
        )
        return FiredWindows(
            self._table.keys_at(slots),
            dues,
            oldest - 1,
            found.keys[:count],
            found.starts[:count],
            found.dues[:count] - self._delay_ns,
            found.words[:count],
            are_early=True,
        )

    def release(self, closed: ClosedWindows) -> None:
        """Frees the items of these windows, whose results have been made."""
        self._table.panes.give_back_items(closed.kept.words[:, 1:])

    def try_without_rows(self) -> None:
        """Runs all kernels over no rows, so that they are compiled before the first message arrives."""
        none, slots = np.empty(0, np.int64), np.empty(0, np.int32)
        self._try_kernels(slots, none)
        if self._table.panes.are_shown:
            self._fire_early(slots, none)
        if len((panes := self._table.panes).kinds):
            panes.put_items(none, panes.items_of(none))
            panes.give_back(none)

    def _try_kernels(self, slots: Array, times: Array) -> None:
        """Runs the kernels of `add` and `close` over no rows, except those of early results."""
        raise NotImplementedError

    def _add_all(self, slots: Array, add: Callable[[int, Array], int]) -> None:
        """Calls `add` from the first row on, making room whenever it stops, until all rows are in windows.

        `add`: takes the row to start with, and an array that it fills with the slots of keys that are due sooner than
        before; returns the row for which there was no room.
        """
        table, panes = self._table, self._table.panes
        sooner, row = np.empty(len(slots), np.int32), 0
        panes.counts[SOONER] = 0
        while (row := add(row, sooner)) < len(slots):
            panes.make_room()
        table.note(sooner[: panes.counts[SOONER]])

    def _find_windows(
        self, keys: int, find: Callable[[int, tuple[Array, ...], int], tuple[int, int]]
    ) -> tuple[FoundWindows, int]:
        """The windows of so many keys, and how many were found. `find`: calls `_close` or `_show`."""
        found = FoundWindows(max(keys, 1), 1 + self._accumulators.words)
        index = count = 0
        while True:
            index, count = find(index, found.arrays, count)
            if index == keys:
                return found, count
            if count == len(found.keys):
                found.grow()
            else:
                self._table.panes.items.grow()

    def _close(self, start: int, due: DueKeys, found: tuple[Array, ...], count: int) -> tuple[int, int]:
        """See `close_windows`."""
        raise NotImplementedError

    def _oldest_ends(self, slots: Array) -> Array:
        """When the oldest open windows of these keys end."""
        raise NotImplementedError

    def _show(
        self, start: int, slots: Array, ends: Array, found: tuple[Array, ...], count: int
    ) -> tuple[int, int]:
        """See `show_windows`."""
        raise NotImplementedError


class FiredWindows(NamedTuple):
    """Firings as in ClosedWindows, unordered, either all early or none. `words`: the accumulators."""

    keys: Array
    dues: Array
    times: Array
    given: Array
    starts: Array
    ends: Array
    words: Array
    are_early: bool = False


def in_order(fired: Sequence[FiredWindows], items: Array) -> ClosedWindows | None:
    """Firings concatenated and sorted; None where there are none. `items`: see WindowWords."""
    keys, dues, times, starts, ends, words = (
        np.concatenate(each) if len(fired) > 1 else each[0]
        for each in zip(
            *((of.keys, of.dues, of.times, of.starts, of.ends, of.words) for of in fired), strict=True
        )
    )
    if not len(keys):
        return None
    counts = [len(of.keys) for of in fired]
    are_early = np.repeat([of.are_early for of in fired], counts)
    begins = np.cumsum([0, *counts]).tolist()
    given = np.concatenate([begin + of.given for begin, of in zip(begins, fired, strict=False)])
    if are_early.any():
        order = np.lexsort((are_early, keys, dues))
        ranks = np.empty(len(order), np.int64)
        ranks[order] = np.arange(len(order))
        chosen = np.argsort(ranks[given], kind="stable")
        given = ranks[given][chosen]
    else:
        # Each firing has one result at most.
        order = firing_order(keys, dues)
        results = np.full(len(order), -1)
        results[given] = np.arange(len(given))
        given = np.flatnonzero(results[order] >= 0)
        chosen = results[order[given]]
    kept = WindowWords(words[chosen], items)
    return ClosedWindows(
        keys[order],
        dues[order],
        times[order],
        are_early[order],
        given,
        starts[chosen],
        ends[chosen],
        kept,
    )


def firing_order(keys: Array, dues: Array) -> Array:
    """The order in which windows that are over fire; there is at least one."""
    # Where all have one time, as nearly always on a grid, sorting by key is enough, and five times as fast.
    return np.argsort(keys) if (dues == dues[0]).all() else np.lexsort((keys, dues))


class FoundWindows:
    """Arrays that kernels fill with windows that fire."""

    def __init__(self, room: int, words: int) -> None:
        self.keys = np.empty(room, np.int32)
        self.starts, self.dues = np.empty(room, np.int64), np.empty(room, np.int64)
        self.words = np.empty((room, words), np.int64)

    @property
    def arrays(self) -> tuple[Array, ...]:
        """As `close_windows` takes them."""
        return self.keys, self.starts, self.dues, self.words, self.words.view(np.float64)

    def grow(self) -> None:
        """Twice as much."""
        self.keys, self.starts, self.dues, self.words = (
            with_rows(each, 2 * len(each)) for each in (self.keys, self.starts, self.dues, self.words)
        )
