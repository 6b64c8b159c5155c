"""Windows of a fixed size over columns: what `ranges` does message by message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from bettong.application.windows.kinds import Ranges
from bettong.application.windows.windowing import Windowing
from bettong.frames.columns import Array, Columns
from bettong.worker import firing_bounds
from bettong.worker.arrays import in_both_types, with_rows
from bettong.worker.batch import Batch
from bettong.worker.state.pane_pool import DUE
from bettong.worker.state.pane_table import PaneTable
from bettong.worker.windows.column_windows import ColumnWindows, PaneWords
from bettong.worker.windows.early_kernels import show_windows
from bettong.worker.windows.pane_kernels import (
    BEYOND,
    BLOCK,
    FRONT,
    LATE,
    NO_BLOCK,
    REFUSED,
    DueKeys,
    Grid,
    add_rows,
    close_windows,
    find_panes,
)
from bettong.worker.windows.soonest import soonest_of_ranges


class RowPanes(NamedTuple):
    """By row: the number of its pane, when its first open window is due, and its mark (see `pane_kernels`)."""

    numbers: Array
    dues: Array
    marks: Array

    def take(self, rows: Array) -> RowPanes:
        """The same for some of the rows."""
        return RowPanes(self.numbers[rows], self.dues[rows], self.marks[rows])


class RangeColumns(ColumnWindows):
    """See ColumnWindows."""

    def __init__(self, kind: Ranges, windowing: Windowing, accumulators: PaneWords, table: PaneTable) -> None:
        super().__init__(kind.delay_ns, accumulators, table)
        self._kind = kind
        self._late = windowing.late
        self._grid = Grid(
            kind.size_ns,
            kind.slide_ns,
            kind.offset_ns,
            kind.delay_ns,
            kind.pane_ns,
            kind.panes,
            kind.latest_ns,
            firing_bounds.FIRINGS_MAX if windowing.emit_empty else 0,
        )
        # For sliding windows only; rebuilt after panes are restored.
        self._fronts = np.empty((0, FRONT + 1 + accumulators.folds.own_words), np.int64)

    def add(self, batch: Batch, refused: Mapping[int, str]) -> Array:
        """See ColumnWindows."""
        rows, marked = self._find_panes(batch.event_times(), batch.message_watermarks())
        marks, kept = rows.marks, batch
        if marked or refused:
            is_late = marks == LATE
            is_out = marks == BEYOND
            left_alone = is_out | is_late if self._late in ("drop", "side") else is_out
            marks[[row for row in refused if not left_alone[row]]] = REFUSED
            is_out |= marks == REFUSED
            if self._late != "oldest":
                is_out |= is_late
            if is_out.any():
                chosen = np.flatnonzero(~is_out)
                kept, rows = batch.take(chosen), rows.take(chosen)
        if kept.length:
            slots = self._table.slots(kept)
            self._fold(kept.columns, slots, rows)
            self._table.note_changed(slots)
        return marks

    def late_windows(self, late: Array, times: Array) -> tuple[Array, Array]:  # noqa: ARG002 - times suffice
        """See ColumnWindows."""
        starts = times - (times - self._kind.offset_ns) % self._kind.slide_ns
        return starts, starts + self._kind.size_ns

    def soonest_due(self, times: Array) -> Array:
        """See ColumnWindows."""
        return soonest_of_ranges(self._kind, times)

    def _find_panes(self, times: Array, watermarks: Array) -> tuple[RowPanes, int]:
        """The panes of rows of these event times, and how many rows have a mark; `watermarks`: the one before each."""
        numbers, dues = np.empty(len(times), np.int64), np.empty(len(times), np.int64)
        marks = np.empty(len(times), np.uint8)
        marked = find_panes(times, watermarks, self._grid, numbers, dues, marks)
        return RowPanes(numbers, dues, marks), marked

    def _fold(self, columns: Columns, slots: Array, rows: RowPanes) -> None:
        """Folds rows into panes of their keys, which have these slots."""
        values, fronts = self._accumulators.load(columns), self._front_views()
        folds, table = self._accumulators.folds, self._table
        self._add_all(
            slots,
            lambda row, sooner: add_rows(
                row, slots, rows[:3], values, folds, table.words, table.panes.arrays, fronts, sooner
            ),
        )

    def _try_kernels(self, slots: Array, times: Array) -> None:
        own, read_only = in_both_types(times)
        self._find_panes(read_only, times)
        self._fold(self._accumulators.nothing, slots, self._find_panes(own, times)[0])
        self._fire_over(DueKeys(slots, times, times, times))

    def _close(self, start: int, due: DueKeys, found: tuple[Array, ...], count: int) -> tuple[int, int]:
        folds, table, fronts = self._accumulators.folds, self._table, self._front_views()
        stopped: tuple[int, int] = close_windows(
            start, due, self._grid, folds, table.words, table.panes.arrays, fronts, found, count
        )
        return stopped

    def _oldest_ends(self, slots: Array) -> Array:
        ends: Array = self._table.words[slots, DUE] - self._delay_ns
        return ends

    def _show(
        self, start: int, slots: Array, ends: Array, found: tuple[Array, ...], count: int
    ) -> tuple[int, int]:
        folds, table = self._accumulators.folds, self._table
        stopped: tuple[int, int] = show_windows(
            start, slots, ends, self._grid, folds, table.words, table.panes.arrays, found, count
        )
        return stopped

    def _front_views(self) -> tuple[Array, Array]:
        """The fronts of all keys, where windows slide: as integers and as floats."""
        known, keys = len(self._fronts), len(self._table.states)
        if self._kind.panes > 1 and keys > known:
            self._fronts = with_rows(self._fronts, keys)
            self._fronts[known:, BLOCK] = NO_BLOCK
        return self._fronts, self._fronts.view(np.float64)
