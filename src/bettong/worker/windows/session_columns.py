"""Sessions over columns: what `sessions` does message by message."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bettong.application.windows.kinds import Sessions
from bettong.application.windows.windowing import Late
from bettong.frames.columns import Array, Columns
from bettong.worker.arrays import in_both_types
from bettong.worker.batch import Batch
from bettong.worker.state.pane_pool import OLDEST, VALUES
from bettong.worker.state.pane_table import PaneTable
from bettong.worker.windows.column_windows import ColumnWindows, PaneWords
from bettong.worker.windows.early_kernels import show_panes
from bettong.worker.windows.pane_kernels import LATE, DueKeys
from bettong.worker.windows.session_kernels import (
    ALONE,
    INTO_OLDEST,
    LEFT_OUT,
    SessionTimes,
    add_to_sessions,
    close_sessions,
)
from bettong.worker.windows.soonest import soonest_of_sessions

_LATE: Mapping[Late, int] = {"drop": LEFT_OUT, "side": LEFT_OUT, "fire": ALONE, "oldest": INTO_OLDEST}


class SessionColumns(ColumnWindows):
    """See ColumnWindows. Whether a row is late depends on those before it, so rows are marked as they are added."""

    word = "session"

    def __init__(self, kind: Sessions, late: Late, accumulators: PaneWords, table: PaneTable) -> None:
        super().__init__(kind.delay_ns, accumulators, table)
        self._kind = kind
        self._spans = SessionTimes(kind.gap_ns, kind.wait_ns, kind.latest_ns, _LATE[late])
        self._last = VALUES + accumulators.words
        self._joined = np.zeros((1, 1 + accumulators.words), np.int64)

    def add(self, batch: Batch, refused: Mapping[int, str]) -> Array:
        """See ColumnWindows."""
        is_refused = np.zeros(batch.length, np.bool_)
        is_refused[list(refused)] = True
        slots = self._table.slots(batch)
        marks = self._fold(
            batch.columns, slots, (batch.event_times(), batch.message_watermarks(), is_refused)
        )
        if marks.any():
            self._table.forget_empty(slots)
        # A late row was added if its key has an open session, and only with late="oldest".
        takes_late = self._spans.late == INTO_OLDEST
        is_in = (marks == LATE) & (self._table.words[slots, OLDEST] >= 0) if takes_late else False
        self._table.note_changed(slots[is_in | (marks == 0)])
        return marks

    def late_windows(self, late: Array, times: Array) -> tuple[Array, Array]:  # noqa: ARG002 - times suffice
        """See ColumnWindows."""
        return times, times + self._spans.gap_ns + 1

    def soonest_due(self, times: Array) -> Array:
        """See ColumnWindows."""
        return soonest_of_sessions(self._kind, times)

    def _fold(self, columns: Columns, slots: Array, rows: tuple[Array, Array, Array]) -> Array:
        """Folds rows into sessions of their keys, which have these slots; `rows`: see `add_to_sessions`."""
        values, marks = self._accumulators.load(columns), np.zeros(len(slots), np.uint8)
        spans, folds, table, joined = self._spans, self._accumulators.folds, self._table, self._joined
        self._add_all(
            slots,
            lambda row, sooner: add_to_sessions(
                row,
                slots,
                rows,
                spans,
                values,
                folds,
                table.words,
                table.panes.arrays,
                joined,
                marks,
                sooner,
            ),
        )
        return marks

    def _try_kernels(self, slots: Array, times: Array) -> None:
        for each in in_both_types(times):
            self._fold(self._accumulators.nothing, slots, (each, times, np.empty(0, np.bool_)))
        self._fire_over(DueKeys(slots, times, times, times))

    def _close(self, start: int, due: DueKeys, found: tuple[Array, ...], count: int) -> tuple[int, int]:
        folds, table = self._accumulators.folds, self._table
        stopped: tuple[int, int] = close_sessions(
            start, due, self._spans, folds, table.words, table.panes.arrays, found, count
        )
        return stopped

    def _oldest_ends(self, slots: Array) -> Array:
        table = self._table
        ends: Array = table.panes.words[table.words[slots, OLDEST], self._last] + self._spans.gap_ns + 1
        return ends

    def _show(
        self,
        start: int,
        slots: Array,
        ends: Array,  # noqa: ARG002 - only windows of several panes need them
        found: tuple[Array, ...],
        count: int,
    ) -> tuple[int, int]:
        folds, table, spans = self._accumulators.folds, self._table, self._spans
        stopped: tuple[int, int] = show_panes(
            start, slots, self._last, spans.wait_ns, folds, table.words, table.panes.arrays, found, count
        )
        return stopped
