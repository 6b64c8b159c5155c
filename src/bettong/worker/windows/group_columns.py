"""Windows of which a key has one at a time over columns: what `counts` and `ephemeral` do message by message."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bettong.application.timers import NEVER
from bettong.application.windows.kinds import Counts, Ephemeral
from bettong.frames.columns import Array, Columns
from bettong.worker.state.group_tables import FIRST, LAST, CountTable
from bettong.worker.state.pane_pool import DUE, MESSAGES, NEWEST, OLDEST, SOONER, VALUES
from bettong.worker.state.pane_table import PaneTable
from bettong.worker.windows.accumulators import Accumulators, WindowWords
from bettong.worker.windows.closed_windows import ClosedWindows, firing_order
from bettong.worker.windows.group_kernels import Span, add_to_groups, add_to_opened
from bettong.worker.windows.pane_kernels import REFUSED


class FullGroups(NamedTuple):
    """Groups that rows made full: those rows, the starts and ends of the groups, and what they kept."""

    rows: Array
    starts: Array
    ends: Array
    kept: WindowWords


class CountColumns:
    """Groups of so many messages. See ClosingColumns; panes are in `table`. They go by the log clock."""

    def __init__(self, kind: Counts, accumulators: Accumulators, table: CountTable) -> None:
        self._kind = kind
        self._accumulators = accumulators
        self._table = table

    def add(self, columns: Columns, slots: Array, times: Array) -> FullGroups:
        """Folds rows into groups of their keys, which have these slots. Items of full ones are still in use."""
        table, panes = self._table, self._table.panes
        values = self._accumulators.load(columns, times)
        due_ns = NEVER if self._kind.timeout_ns is None else table.log_ns + self._kind.timeout_ns
        sooner = np.empty(len(slots), np.int32)
        # Memory is taken as it is filled.
        rows = np.empty(len(slots), np.int64)
        words = np.empty((len(slots), 1 + self._accumulators.words), np.int64)
        panes.counts[SOONER] = row = count = 0
        while True:
            row, count = add_to_groups(
                row,
                slots,
                self._kind.count,
                due_ns,
                values,
                self._accumulators.folds,
                table.words,
                panes.arrays,
                sooner,
                (rows, words),
                count,
            )
            if row == len(slots):
                break
            panes.make_room()
        table.note(sooner[: panes.counts[SOONER]])
        rows, words = rows[:count], words[:count]
        if count:
            table.close(np.unique(slots[rows]))
        starts, ends = _covered(words)
        return FullGroups(rows, starts, ends, WindowWords(words, panes.items.words))

    def soonest_due(self, times: Array) -> Array:
        """See ClosingColumns. Nothing is, by event time."""
        return np.full(len(times), NEVER, np.int64)

    def close(self, clock_ns: int) -> ClosedWindows | None:
        """See ClosingColumns. Groups whose time is over."""
        slots, dues = self._table.take_slots_due(clock_ns)
        if not len(slots):
            return None
        keys = self._table.keys_at(slots)
        order = firing_order(keys, dues)
        kept = _kept(self._table, slots[order])
        self._table.close(slots)
        return ClosedWindows(keys[order], dues[order], *_covered(kept.words), np.arange(len(order)), kept)

    def try_without_rows(self) -> None:
        """See ClosingColumns."""
        none = np.empty(0, np.int64)
        self.add(self._accumulators.nothing, np.empty(0, np.int32), none)
        _try_panes(self._accumulators, self._table)


class EphemeralColumns:
    """Ephemeral windows. See ClosingColumns; panes are in `table`. They go by event time."""

    def __init__(
        self, kind: Ephemeral, accumulators: Accumulators, table: PaneTable, *, late_gives: bool
    ) -> None:
        """`late_gives`: see Span."""
        latest_ns = NEVER - 1 - kind.trigger_ns - kind.keep_ns
        self._span = Span(kind.trigger_ns, kind.keep_ns, latest_ns, late_gives)
        self._accumulators = accumulators
        self._table = table

    def add(
        self, columns: Columns, slots: Array, times: Array, watermarks: Array, refused: Array
    ) -> tuple[Array, Array]:
        """Folds rows into the windows of their keys, which have these slots; `watermarks`: that before each.

        Gives their marks, and when the window of each late row opened. `refused`: the rows that an aggregate refuses.
        """
        table, panes = self._table, self._table.panes
        values = self._accumulators.load(columns)
        opened, marks = np.empty(len(slots), np.int64), np.zeros(len(slots), np.uint8)
        marks[refused] = REFUSED
        sooner = np.empty(len(slots), np.int32)
        panes.counts[SOONER] = row = 0
        while True:
            row = add_to_opened(
                row,
                slots,
                (times, watermarks, opened, marks),
                self._span,
                values,
                self._accumulators.folds,
                table.words,
                panes.arrays,
                sooner,
            )
            if row == len(slots):
                break
            panes.make_room()
        table.note(sooner[: panes.counts[SOONER]])
        if marks.any():
            table.forget_empty(slots[marks != 0])
        return marks, opened

    def soonest_due(self, times: Array) -> Array:
        """See ClosingColumns."""
        trigger_ns = self._span.trigger_ns
        return np.minimum(times, NEVER - 1 - trigger_ns) + trigger_ns

    def covered(self, opened: Array) -> tuple[Array, Array]:
        """The starts and ends of windows that opened then."""
        return opened, opened + self._span.trigger_ns

    def close(self, clock_ns: int) -> ClosedWindows | None:
        """See ClosingColumns. Keys whose windows fired before are forgotten, which gives nothing."""
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
        gives = np.concatenate([is_open, np.zeros(np.count_nonzero(is_gone), np.bool_)])
        order = firing_order(keys, dues)
        given = np.flatnonzero(gives[order])
        kept = _kept(table, slots[order[given]])
        table.words[fired, DUE] = np.where(is_gone, NEVER, forgotten_ns)
        table.close(slots)
        opened = dues - span.trigger_ns - np.where(gives, 0, span.keep_ns)
        return ClosedWindows(keys[order], dues[order], *self.covered(opened[order]), given, kept)

    def try_without_rows(self) -> None:
        """See ClosingColumns."""
        none = np.empty(0, np.int64)
        read_only = none.view()
        read_only.flags.writeable = False
        # Numba tells those of frames, which nobody may write, from others.
        for times in (none, read_only):
            self.add(self._accumulators.nothing, np.empty(0, np.int32), times, none, none)
        _try_panes(self._accumulators, self._table)


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


def _try_panes(accumulators: Accumulators, table: PaneTable) -> None:
    """Makes results of nothing, and writes and reads nothing."""
    none = np.empty(0, np.int64)
    keys = table.keys_at(np.empty(0, np.int32))
    accumulators.results(keys, none, none, accumulators.alone(accumulators.nothing))
    if len((panes := table.panes).kinds):
        panes.put_items(none, panes.items_of(none))
        panes.give_back(none)
