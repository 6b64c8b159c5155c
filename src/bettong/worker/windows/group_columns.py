"""Windows of which a key has one at a time over columns: what `counts` and `ephemeral` do message by message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from bettong.application.timers import NEVER
from bettong.application.windows.kinds import Counts, Ephemeral
from bettong.application.windows.windowing import Late
from bettong.frames.columns import Array, Columns
from bettong.worker.array_types import in_both_types
from bettong.worker.batch import Batch
from bettong.worker.state.group_tables import FIRST, LAST, CountTable
from bettong.worker.state.pane_pool import DUE, MESSAGES, NEWEST, OLDEST, VALUES
from bettong.worker.state.pane_table import PaneTable
from bettong.worker.windows.accumulators import Accumulators, WindowWords
from bettong.worker.windows.column_windows import ClosedWindows, ColumnWindows, firing_order
from bettong.worker.windows.group_kernels import EphemeralTimes, add_to_groups, add_to_opened
from bettong.worker.windows.pane_kernels import REFUSED


class FullGroups(NamedTuple):
    """Groups that rows made full: those rows, the starts and ends of the groups, and what they kept."""

    rows: Array
    starts: Array
    ends: Array
    kept: WindowWords


class CountColumns(ColumnWindows):
    """See ColumnWindows: groups of so many messages, which go by the log clock. None is ever late."""

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
        # Memory is taken as it is filled.
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
        starts, ends = _covered(words)
        return FullGroups(rows, starts, ends, WindowWords(words, panes.items.words))

    def soonest_due(self, times: Array) -> Array:
        """See ColumnWindows. Nothing is, by event time."""
        return np.full(len(times), NEVER, np.int64)

    def close(self, clock_ns: int) -> ClosedWindows | None:
        """See ColumnWindows. Groups whose time is over."""
        slots, dues = self._table.take_slots_due(clock_ns)
        if not len(slots):
            return None
        keys = self._table.keys_at(slots)
        order = firing_order(keys, dues)
        kept = _kept(self._table, slots[order])
        self._table.close(slots)
        return ClosedWindows(keys[order], *_covered(kept.words), dues[order], np.arange(len(order)), kept)

    def _try_kernels(self, slots: Array, times: Array) -> None:
        self.fill(self._accumulators.nothing, slots, times)


class EphemeralColumns(ColumnWindows):
    """See ColumnWindows: ephemeral windows."""

    def __init__(self, kind: Ephemeral, late: Late, accumulators: Accumulators, table: PaneTable) -> None:
        super().__init__(0, accumulators, table)
        latest_ns = NEVER - 1 - kind.trigger_ns - kind.keep_ns
        self._span = EphemeralTimes(kind.trigger_ns, kind.keep_ns, latest_ns, late == "fire")
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
        trigger_ns = self._span.trigger_ns
        return np.minimum(times, NEVER - 1 - trigger_ns) + trigger_ns

    def close(self, clock_ns: int) -> ClosedWindows | None:
        """See ColumnWindows. Keys whose windows fired before are forgotten, which gives nothing."""
        table, span = self._table, self._span
        slots, dues = table.take_slots_due(clock_ns)
        if not len(slots):
            return None
        is_open = table.words[slots, OLDEST] >= 0
        fired, fired_ns = slots[is_open], dues[is_open]
        forgotten_ns = fired_ns + span.keep_ns if span.keep_ns else np.full(len(fired), NEVER)
        # Forgotten at the same record.
        is_gone = forgotten_ns <= min(clock_ns, NEVER - 1)
        keys = table.keys_at(np.concatenate([slots, fired[is_gone]]))
        dues = np.concatenate([dues, forgotten_ns[is_gone]])
        has_result = np.concatenate([is_open, np.zeros(np.count_nonzero(is_gone), np.bool_)])
        order = firing_order(keys, dues)
        given = np.flatnonzero(has_result[order])
        kept = _kept(table, slots[order[given]])
        table.words[fired, DUE] = np.where(is_gone, NEVER, forgotten_ns)
        table.close(slots)
        opened = (dues - span.trigger_ns - np.where(has_result, 0, span.keep_ns))[order]
        return ClosedWindows(keys[order], opened, opened + span.trigger_ns, dues[order], given, kept)

    def _try_kernels(self, slots: Array, times: Array) -> None:
        for each in in_both_types(times):
            self._fold(self._accumulators.nothing, slots, each, times, np.empty(0, np.uint8))


def _kept(table: PaneTable, slots: Array) -> WindowWords:
    """What the windows of these slots keep, whose panes they have no more. Their items are still in use."""
    keys, panes = table.words, table.panes
    own = keys[slots, OLDEST]
    words = panes.words[own, MESSAGES : VALUES + panes.values]
    panes.give_back_rows(own)
    keys[slots, OLDEST] = keys[slots, NEWEST] = -1
    return WindowWords(words, panes.items.words)


def _covered(words: Array) -> tuple[Array, Array]:
    """The starts and ends of groups, of whose words these are."""
    # Behind the last of all times a group ends at 2**63.
    return words[:, FIRST - MESSAGES], words[:, LAST - MESSAGES].astype(np.uint64) + np.uint64(1)
