"""Windows over columns: what the plain ones do message by message, for the rows of a batch at once."""

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


class PaneWords(Protocol):
    """What panes keep of messages: so many words."""

    words: int
    folds: Folds

    @property
    def nothing(self) -> Columns:
        """No messages."""

    def load(self, columns: Columns) -> tuple[Array, Array, Array]:
        """What is added of each row, shape (words, rows): as integers, as floats, and in one row."""


class ClosedWindows(NamedTuple):
    """What fired, by time, then by key: keys, when each was due, the event time of what it gives, and whether that is
    early: of windows that are still open.

    `given`: by result, which of these it is of, in their order; then when its window began and ended, and what it kept.
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
    """Of one kind, all keys of one partition, whose panes are in `table`.

    `word`: what a person calls one.
    """

    word = "window"

    def __init__(self, delay_ns: int, accumulators: PaneWords, table: PaneTable) -> None:
        self._delay_ns = delay_ns
        self._accumulators = accumulators
        self._table = table

    def add(self, batch: Batch, refused: Mapping[int, str]) -> Array:
        """Puts rows into windows of their keys; by row, the mark of what is to say of it (see `pane_kernels`).

        `refused`: rows that an aggregate refuses, if they come into a window.
        """
        raise NotImplementedError

    def late_windows(self, late: Array, times: Array) -> tuple[Array, Array]:
        """The starts and ends of windows of these rows of the last batch, by themselves. `times`: of those rows."""
        raise NotImplementedError

    def soonest_due(self, times: Array) -> Array:
        """See KeyWindows."""
        raise NotImplementedError

    def beyond(self, at_ns: int) -> str:
        """Why a row of that event time is refused that comes into none."""
        return reason_of(
            ValueError(f"its event time is {at_ns} ns: its {self.word} ends after the year 2262")
        )

    def close(self, log_ns: int, watermark_ns: int) -> ClosedWindows | None:
        """Fires all windows that are over by then, and early results that are due; None where there are none.

        `release` has to follow.
        """
        table = self._table
        slots, dues, early = table.take_windows_due(log_ns, watermark_ns)
        if not len(slots):
            return None
        until_ns = min(watermark_ns, NEVER - 1)
        # What is due first fires first: early results behind the windows that are due by then, and before the others.
        due = DueKeys(slots, dues, np.minimum(early, until_ns), np.zeros(len(slots), np.int64))
        fired = [self._over(due)]
        waiting = np.flatnonzero((early != NEVER) & (table.words[slots, OLDEST] >= 0))
        if len(waiting):
            due = due.take(waiting, until_ns)
            fired.append(self._so_far(due.slots, early[waiting]))
            due.fired[:] += 1
            fired.append(self._over(due))
        table.close(slots)
        return in_order(fired, table.panes.items.words)

    def _over(self, due: DueKeys) -> FiredWindows:
        """Fires the windows of these keys that are over."""
        found, count = self._find(
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

    def _so_far(self, slots: Array, dues: Array) -> FiredWindows:
        """Early results of keys that have open windows, and are due for them at these times."""
        oldest = self._oldest_ends(slots)
        ends = oldest.copy()
        found, count = self._find(
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
        """The results of these windows were made: nothing is kept of them any more."""
        self._table.panes.give_back_items(closed.kept.words[:, 1:])

    def try_without_rows(self) -> None:
        """Runs all of it over nothing, so that machine code is there before the first message comes."""
        none, slots = np.empty(0, np.int64), np.empty(0, np.int32)
        self._try_kernels(slots, none)
        if self._table.panes.are_shown:
            self._so_far(slots, none)
        if len((panes := self._table.panes).kinds):
            panes.put_items(none, panes.items_of(none))
            panes.give_back(none)

    def _try_kernels(self, slots: Array, times: Array) -> None:
        """`add` and `close` of nothing, but for early results."""
        raise NotImplementedError

    def _add_all(self, slots: Array, add: Callable[[int, Array], int]) -> None:
        """Calls for rows from one on, until they are all in windows.

        `add`: takes what it fills with the slots of keys that are due sooner than before, and gives the row before
        which there was no room.
        """
        table, panes = self._table, self._table.panes
        sooner, row = np.empty(len(slots), np.int32), 0
        panes.counts[SOONER] = 0
        while (row := add(row, sooner)) < len(slots):
            panes.make_room()
        table.note(sooner[: panes.counts[SOONER]])

    def _find(
        self, keys: int, find: Callable[[int, tuple[Array, ...], int], tuple[int, int]]
    ) -> tuple[FoundWindows, int]:
        """Windows of so many keys, and how many they are. `find`: calls `_close` or `_show`."""
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
    """The same as ClosedWindows, in no order: of windows that are over, or early. `words`: of what was kept."""

    keys: Array
    dues: Array
    times: Array
    given: Array
    starts: Array
    ends: Array
    words: Array
    are_early: bool = False


def in_order(fired: Sequence[FiredWindows], items: Array) -> ClosedWindows | None:
    """What fired, put together; None where nothing did. `items`: see WindowWords."""
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
        # Each gives one result at most.
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
    """The order of windows that are over, of which there are some."""
    # Of one time, as nearly always on a grid, keys are sorted alone, which is five times as fast.
    return np.argsort(keys) if (dues == dues[0]).all() else np.lexsort((keys, dues))


class FoundWindows:
    """Room for windows that are over."""

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
