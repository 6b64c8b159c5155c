"""Windows over columns: what the plain ones do message by message, for the rows of a batch at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

import numpy as np

from bettong.application.timers import NEVER
from bettong.frames.columns import Array, Columns
from bettong.user_errors import reason_of
from bettong.worker.batch import Batch
from bettong.worker.state.pane_pool import SOONER
from bettong.worker.state.pane_table import PaneTable
from bettong.worker.windows.accumulators import WindowWords
from bettong.worker.windows.fold_kernels import Folds


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
    """Windows that were over, by time, then by key: keys, when each began, ended and was due.

    `given`: which of them give results, and what those kept.
    """

    keys: Array
    starts: Array
    ends: Array
    dues: Array
    given: Array
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

    def close(self, clock_ns: int) -> ClosedWindows | None:
        """Fires all windows that are over by then; None where none is. `release` has to follow.

        `clock_ns`: of the clock by which they go.
        """
        table = self._table
        slots, dues = table.take_slots_due(clock_ns)
        if not len(slots):
            return None
        found, count = self._fire(slots, dues, clock_ns)
        keys = table.keys_at(found.slots[:count])
        table.close(slots)
        if not count:
            return None
        dues = found.dues[:count]
        order = firing_order(keys, dues)
        kept = WindowWords(found.words[:count][order], table.panes.items.words)
        starts, dues = found.starts[:count][order], dues[order]
        return ClosedWindows(keys[order], starts, dues - self._delay_ns, dues, np.arange(count), kept)

    def release(self, closed: ClosedWindows) -> None:
        """The results of these windows were made: nothing is kept of them any more."""
        self._table.panes.give_back_items(closed.kept.words[:, 1:])

    def try_without_rows(self) -> None:
        """Runs all of it over nothing, so that machine code is there before the first message comes."""
        none, slots = np.empty(0, np.int64), np.empty(0, np.int32)
        self._try_kernels(slots, none)
        if len((panes := self._table.panes).kinds):
            panes.put_items(none, panes.items_of(none))
            panes.give_back(none)

    def _try_kernels(self, slots: Array, times: Array) -> None:
        """`add` and `close` of nothing."""
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

    def _fire(self, slots: Array, dues: Array, watermark_ns: int) -> tuple[FoundWindows, int]:
        """The windows of these keys that are over, and how many they are. `dues` are changed."""
        found = FoundWindows(max(len(slots), 1), 1 + self._accumulators.words)
        index = count = 0
        while True:
            index, count = self._close(index, slots, dues, min(watermark_ns, NEVER - 1), found.arrays, count)
            if index == len(slots):
                return found, count
            if count == len(found.slots):
                found.grow()
            else:
                self._table.panes.items.grow()

    def _close(
        self, start: int, slots: Array, dues: Array, until_ns: int, found: tuple[Array, ...], count: int
    ) -> tuple[int, int]:
        """See `close_windows`."""
        raise NotImplementedError


def firing_order(keys: Array, dues: Array) -> Array:
    """The order of windows that are over, of which there are some."""
    # Of one time, as nearly always on a grid, keys are sorted alone, which is five times as fast.
    return np.argsort(keys) if (dues == dues[0]).all() else np.lexsort((keys, dues))


class FoundWindows:
    """Room for windows that are over."""

    def __init__(self, room: int, words: int) -> None:
        self.slots = np.empty(room, np.int32)
        self.starts, self.dues = np.empty(room, np.int64), np.empty(room, np.int64)
        self.words = np.empty((room, words), np.int64)

    @property
    def arrays(self) -> tuple[Array, ...]:
        """As `close_windows` takes them."""
        return self.slots, self.starts, self.dues, self.words, self.words.view(np.float64)

    def grow(self) -> None:
        """Twice as much."""
        self.slots, self.starts, self.dues, self.words = (
            np.concatenate([each, np.empty_like(each)])
            for each in (self.slots, self.starts, self.dues, self.words)
        )
