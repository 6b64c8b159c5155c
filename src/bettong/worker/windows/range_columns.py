"""Windows of a fixed size over columns: what `ranges` does message by message, for the rows of a batch at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bettong.application.timers import NEVER
from bettong.application.windows.kinds import Ranges
from bettong.frames.columns import Array, Columns
from bettong.worker.state.pane_pool import SOONER
from bettong.worker.state.pane_table import PaneTable
from bettong.worker.windows.accumulators import Accumulators, WindowWords
from bettong.worker.windows.closed_windows import ClosedWindows, firing_order
from bettong.worker.windows.pane_kernels import (
    BLOCK,
    FRONT,
    NO_BLOCK,
    Grid,
    add_rows,
    close_windows,
    find_panes,
)


class RowPanes(NamedTuple):
    """By row: the number of its pane, when its first open window is due, and its mark (see `pane_kernels`).

    `marked`: how many rows have a mark.
    """

    numbers: Array
    dues: Array
    marks: Array
    marked: int

    def take(self, rows: Array) -> RowPanes:
        """Those of some rows."""
        return RowPanes(self.numbers[rows], self.dues[rows], self.marks[rows], self.marked)


class RangeColumns:
    """See ClosingColumns; panes are in `table`."""

    def __init__(self, kind: Ranges, accumulators: Accumulators, table: PaneTable) -> None:
        latest_ns = NEVER - kind.size_ns - 2 * kind.slide_ns - kind.delay_ns
        self._kind = kind
        self._grid = Grid(
            kind.size_ns, kind.slide_ns, kind.offset_ns, kind.delay_ns, kind.pane_ns, kind.panes, latest_ns
        )
        self._accumulators = accumulators
        self._table = table
        # Of sliding windows; of restored panes it is made anew.
        self._fronts = np.empty((0, FRONT + 1 + accumulators.folds.own_words), np.int64)

    def find_panes(self, times: Array, watermarks: Array) -> RowPanes:
        """Where rows of these event times belong; `watermarks`: that before each."""
        numbers, dues = np.empty(len(times), np.int64), np.empty(len(times), np.int64)
        marks = np.empty(len(times), np.uint8)
        marked = find_panes(times, watermarks, self._grid, numbers, dues, marks)
        return RowPanes(numbers, dues, marks, marked)

    def soonest_due(self, times: Array) -> Array:
        """See ClosingColumns."""
        kind, times = self._kind, np.minimum(times, self._grid.latest_ns)
        first: Array = times + kind.slide_ns - (times - kind.offset_ns - kind.size_ns) % kind.slide_ns
        return first + kind.delay_ns

    def newest_windows(self, times: Array) -> tuple[Array, Array]:
        """The starts and ends of the last windows that cover these times."""
        starts = times - (times - self._kind.offset_ns) % self._kind.slide_ns
        return starts, starts + self._kind.size_ns

    def add(self, columns: Columns, slots: Array, rows: RowPanes) -> None:
        """Folds rows into panes of their keys, which have these slots."""
        table, panes = self._table, self._table.panes
        values = self._accumulators.load(columns)
        sooner = np.empty(len(slots), np.int32)
        panes.counts[SOONER] = 0
        self._make_room()
        fronts, row = (self._fronts, self._fronts.view(np.float64)), 0
        while True:
            row = add_rows(
                row,
                slots,
                rows[:3],
                values,
                self._accumulators.folds,
                table.words,
                panes.arrays,
                fronts,
                sooner,
            )
            if row == len(slots):
                break
            panes.make_room()
        table.note(sooner[: panes.counts[SOONER]])

    def close(self, watermark_ns: int) -> ClosedWindows | None:
        """See ClosingColumns."""
        table = self._table
        slots, dues = table.take_slots_due(watermark_ns)
        if not len(slots):
            return None
        self._make_room()
        found, count = self._fire(slots, dues, watermark_ns)
        keys = table.keys_at(found.slots[:count])
        table.close(slots)
        if not count:
            return None
        dues = found.dues[:count]
        order = firing_order(keys, dues)
        kept = WindowWords(found.words[:count][order], table.panes.items.words)
        ends = dues[order] - self._kind.delay_ns
        return ClosedWindows(
            keys[order], dues[order], ends - self._kind.size_ns, ends, np.arange(count), kept
        )

    def try_without_rows(self) -> None:
        """See ClosingColumns."""
        none = np.empty(0, np.int64)
        read_only = none.view()
        read_only.flags.writeable = False
        # Numba tells those of frames, which nobody may write, from others.
        self.find_panes(read_only, none)
        rows = self.find_panes(none, none)
        slots = np.empty(0, np.int32)
        self.add(self._accumulators.nothing, slots, rows)
        self._fire(slots, none, 0)
        self._accumulators.results(
            self._table.keys_at(slots), none, none, self._accumulators.alone(self._accumulators.nothing)
        )
        if len((panes := self._table.panes).kinds):
            panes.put_items(none, panes.items_of(none))
            panes.give_back(none)

    def _fire(self, slots: Array, dues: Array, watermark_ns: int) -> tuple[_Found, int]:
        """The windows of these keys that are over, and how many they are. `dues` are changed."""
        fronts = (self._fronts, self._fronts.view(np.float64))
        found = _Found(max(len(slots), 1), 1 + self._accumulators.words)
        index = count = 0
        while True:
            index, count = close_windows(
                index,
                slots,
                dues,
                min(watermark_ns, NEVER - 1),
                self._grid,
                self._accumulators.folds,
                self._table.words,
                self._table.panes.arrays,
                fronts,
                found.arrays,
                count,
            )
            if index == len(slots):
                return found, count
            if count == len(found.slots):
                found.grow()
            else:
                self._table.panes.items.grow()

    def _make_room(self) -> None:
        """Fronts for as many keys as there are records, where windows slide."""
        more = len(self._table.states) - len(self._fronts)
        if self._kind.panes > 1 and more > 0:
            fresh = np.zeros((more, self._fronts.shape[1]), np.int64)
            fresh[:, BLOCK] = NO_BLOCK
            self._fronts = np.concatenate([self._fronts, fresh])


class _Found:
    """Room for windows that are over."""

    def __init__(self, room: int, words: int) -> None:
        self.slots = np.empty(room, np.int32)
        self.dues = np.empty(room, np.int64)
        self.words = np.empty((room, words), np.int64)

    @property
    def arrays(self) -> tuple[Array, Array, Array, Array]:
        """As `close_windows` takes them."""
        return self.slots, self.dues, self.words, self.words.view(np.float64)

    def grow(self) -> None:
        """Twice as much."""
        self.slots, self.dues, self.words = (
            np.concatenate([each, np.empty_like(each)]) for each in (self.slots, self.dues, self.words)
        )
