"""Windows of which a key has one at a time over columns: what `counts` and `ephemeral` do message by message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from bettong.application.timers import NEVER
from bettong.application.windows.kinds import Counts, Ephemeral
from bettong.application.windows.windowing import Late
from bettong.frames.columns import Array, Columns
from bettong.worker.arrays import in_both_types
from bettong.worker.batch import Batch
from bettong.worker.state.group_tables import FIRST, LAST, CountTable
from bettong.worker.state.pane_pool import DUE, MESSAGES, NEWEST, NUMBER, OLDEST, VALUES
from bettong.worker.state.pane_table import PaneTable
from bettong.worker.windows.accumulators import Accumulators, WindowWords
from bettong.worker.windows.column_windows import ClosedWindows, ColumnWindows, FiredWindows, in_order
from bettong.worker.windows.early_kernels import show_panes
from bettong.worker.windows.group_kernels import EphemeralTimes, add_to_groups, add_to_opened
from bettong.worker.windows.pane_kernels import REFUSED
from bettong.worker.windows.soonest import soonest_of_ephemeral


class FullGroups(NamedTuple):
    """Complete groups: the rows that completed them, their starts and ends, and their accumulators."""

    rows: Array
    starts: Array
    ends: Array
    kept: WindowWords


class CountColumns(ColumnWindows):
    """See ColumnWindows: groups of a fixed number of messages, with log-clock timeouts. No row is ever late."""

    def __init__(self, kind: Counts, accumulators: Accumulators, table: CountTable) -> None:
        super().__init__(0, accumulators, table)
        self._kind = kind
        self._clocked = table
        self._load = accumulators.load

    def fill(self, columns: Columns, slots: Array, times: Array) -> FullGroups:
        """Folds rows into groups of their keys, which have these slots. Items of full ones are still in use."""
        table, panes = self._table, self._table.panes
        values = self._load(columns, times)
        due_ns = NEVER if self._kind.timeout_ns is None else self._clocked.log_ns + self._kind.timeout_ns
        folds, count = self._accumulators.folds, 0
        # The system commits memory only as it is filled.
        rows = np.empty(len(slots), np.int64)
        words = np.empty((len(slots), 1 + self._accumulators.words), np.int64)

        def add(row: int, sooner: Array) -> int:
            nonlocal count
            row, count = add_to_groups(
                row,
                slots,
                self._kind.count,
                due_ns,
                values,
                folds,
                table.words,
                panes.arrays,
                sooner,
                (rows, words),
                count,
            )
            return row

        self._add_all(slots, add)
        rows, words = rows[:count], words[:count]
        if count:
            table.close(np.unique(slots[rows]))
        starts, ends = _group_bounds(words)
        return FullGroups(rows, starts, ends, WindowWords(words, panes.items.words))

    def soonest_due(self, times: Array) -> Array:
        """See ColumnWindows. Groups have no event-time timers."""
        return np.full(len(times), NEVER, np.int64)

    def close(self, log_ns: int, watermark_ns: int) -> ClosedWindows | None:  # noqa: ARG002 - see above
        """See ColumnWindows. Fires groups whose timeout is due."""
        slots, dues = self._table.take_slots_due(log_ns)
        keys, words = self._table.keys_at(slots), _remove_panes(self._table, slots)
        self._table.close(slots)
        over = FiredWindows(
            keys, dues, words[:, LAST - MESSAGES], np.arange(len(keys)), *_group_bounds(words), words
        )
        return in_order([over], self._table.panes.items.words)

    def _try_kernels(self, slots: Array, times: Array) -> None:
        self.fill(self._accumulators.nothing, slots, times)


class EphemeralColumns(ColumnWindows):
    """See ColumnWindows: ephemeral windows."""

    def __init__(self, kind: Ephemeral, late: Late, accumulators: Accumulators, table: PaneTable) -> None:
        super().__init__(0, accumulators, table)
        self._kind = kind
        self._span = EphemeralTimes(kind.trigger_ns, kind.keep_ns, kind.latest_ns, late == "fire")
        # By row of the last batch: when the window of a late one opened.
        self._opened = np.empty(0, np.int64)

    def add(self, batch: Batch, refused: Mapping[int, str]) -> Array:
        """See ColumnWindows."""
        marks = np.zeros(batch.length, np.uint8)
        marks[list(refused)] = REFUSED
        slots = self._table.slots(batch)
        self._fold(batch.columns, slots, batch.event_times(), batch.message_watermarks(), marks)
        if marks.any():
            self._table.forget_empty(slots[marks != 0])
        self._table.note_changed(slots[marks == 0])
        return marks

    def _fold(self, columns: Columns, slots: Array, times: Array, watermarks: Array, marks: Array) -> None:
        """Folds rows into the windows of their keys, which have these slots; see `add_to_opened`."""
        values, folds, table = self._accumulators.load(columns), self._accumulators.folds, self._table
        self._opened = np.empty(len(slots), np.int64)
        rows = (times, watermarks, self._opened, marks)
        self._add_all(
            slots,
            lambda row, sooner: add_to_opened(
                row, slots, rows, self._span, values, folds, table.words, table.panes.arrays, sooner
            ),
        )

    def late_windows(self, late: Array, times: Array) -> tuple[Array, Array]:  # noqa: ARG002 - the first row's counts
        """See ColumnWindows."""
        opened = self._opened[late]
        return opened, opened + self._span.trigger_ns

    def soonest_due(self, times: Array) -> Array:
        """See ColumnWindows."""
        return soonest_of_ephemeral(self._kind, times)

    def close(self, log_ns: int, watermark_ns: int) -> ClosedWindows | None:
        """See ColumnWindows. Also forgets keys whose windows have fired and are due again, without a result."""
        table, until_ns = self._table, min(watermark_ns, NEVER - 1)
        slots, dues, early = table.take_windows_due(log_ns, watermark_ns)
        if not len(slots):
            return None
        is_open = table.words[slots, OLDEST] >= 0
        fires = is_open & (dues <= until_ns)
        # A key may be forgotten at the record at which its window fires.
        gone_ns = np.where(is_open, dues + self._span.keep_ns, dues)
        is_gone = gone_ns <= until_ns
        fired = list[FiredWindows]()
        is_early = (early != NEVER) & (~is_gone | (early < gone_ns))
        if is_early.any():
            is_over = ~is_open | (fires & (dues <= early))
            own, nothing = (np.flatnonzero(is_early & each) for each in (~is_over, is_over))
            fired.append(self._fire_early(slots[own], early[own]))
            fired.append(self._without_results(slots[nothing], early[nothing], are_early=True))
        fired.append(self._fire_over_at(slots[fires], dues[fires]))
        if self._span.keep_ns:
            fired.append(self._without_results(slots[is_gone], gone_ns[is_gone], are_early=False))
        table.words[slots, DUE] = np.where(is_gone, NEVER, np.where(fires, gone_ns, dues))
        table.close(slots)
        return in_order(fired, table.panes.items.words)

    def _fire_over_at(self, slots: Array, dues: Array) -> FiredWindows:
        """Fires the windows of these keys, at these times."""
        words = _remove_panes(self._table, slots)
        every = np.arange(len(slots))
        keys = self._table.keys_at(slots)
        return FiredWindows(keys, dues, dues - 1, every, dues - self._span.trigger_ns, dues, words)

    def _without_results(self, slots: Array, dues: Array, *, are_early: bool) -> FiredWindows:
        """Firings of these keys that have no results."""
        none = np.empty(0, np.int64)
        words = np.empty((0, 1 + self._accumulators.words), np.int64)
        return FiredWindows(self._table.keys_at(slots), dues, dues, none, none, none, words, are_early)

    def _fire_early(self, slots: Array, dues: Array) -> FiredWindows:
        shown = super()._fire_early(slots, dues)
        ends = self._oldest_ends(slots)[shown.given]
        return shown._replace(starts=ends - self._span.trigger_ns, ends=ends)

    def _oldest_ends(self, slots: Array) -> Array:
        ends: Array = self._table.words[slots, DUE]
        return ends

    def _show(
        self,
        start: int,
        slots: Array,
        ends: Array,  # noqa: ARG002 - see `SessionColumns`
        found: tuple[Array, ...],
        count: int,
    ) -> tuple[int, int]:
        folds, table = self._accumulators.folds, self._table
        stopped: tuple[int, int] = show_panes(
            start, slots, NUMBER, 0, folds, table.words, table.panes.arrays, found, count
        )
        return stopped

    def _try_kernels(self, slots: Array, times: Array) -> None:
        for each in in_both_types(times):
            self._fold(self._accumulators.nothing, slots, each, times, np.empty(0, np.uint8))


def _remove_panes(table: PaneTable, slots: Array) -> Array:
    """Removes the panes of these slots, and returns their words. Their items are still in use."""
    keys, panes = table.words, table.panes
    own = keys[slots, OLDEST]
    words = panes.words[own, MESSAGES : VALUES + panes.values]
    panes.give_back_rows(own)
    keys[slots, OLDEST] = keys[slots, NEWEST] = -1
    return words


def _group_bounds(words: Array) -> tuple[Array, Array]:
    """The starts and ends of groups, from their words."""
    # A group with the greatest of all times ends at 2**63.
    return words[:, FIRST - MESSAGES], words[:, LAST - MESSAGES].astype(np.uint64) + np.uint64(1)
