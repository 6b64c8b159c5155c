"""`join_window` over columns: rows go into panes as in compiled windows, and windows that are over make pairs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bettong.application.joins.kinds import How, InWindow, alone_sides
from bettong.frames.columns import Array, Columns
from bettong.worker.batch import Batch
from bettong.worker.firing_bounds import too_many
from bettong.worker.joins.column_join import AddedRows, FiredKeys
from bettong.worker.joins.pair_columns import PairColumns
from bettong.worker.joins.pane_messages import ListedMessages, PaneMessages
from bettong.worker.kernel import BOTH, LEFT_LACKS, RIGHT_LACKS
from bettong.worker.state.pane_table import PaneTable
from bettong.worker.windows.accumulators import WindowWords
from bettong.worker.windows.compiled_kinds import spanning_windows
from bettong.worker.windows.pane_kernels import BEYOND, LATE, PARTLY_LATE

# Pairs made as columns at a time: some megabytes, however many messages a window has.
_PAIRS_MAX = 65_536


class WindowColumns:
    """See ColumnJoin. Open windows are in `table`."""

    def __init__(self, kind: InWindow, how: How, messages: PaneMessages, table: PaneTable) -> None:
        self._messages = messages
        self._windows = spanning_windows(kind.windowing, messages, table)
        self.soonest_due = self._windows.soonest_due
        self._left_emits_alone, self._right_emits_alone = alone_sides(how)
        none, left, right = np.empty(0, np.int64), messages.nothing.left, messages.nothing.right
        assert left is not None and right is not None  # noqa: S101, PT018 - it has both
        self._no_pairs = PairColumns(none, left, right, none.astype(np.uint8))

    def add(self, batch: Batch) -> AddedRows:
        """See ColumnJoin. A window has no results before it is over."""
        marks = self._windows.add(batch, {})
        late = beyond = np.empty(0, np.int64)
        partly_late = 0
        if marks.any():
            late, beyond = np.flatnonzero(marks == LATE), np.flatnonzero(marks == BEYOND)
            partly_late = int(np.count_nonzero(marks == PARTLY_LATE))
        times = batch.event_times()
        failures = [(row, self._windows.beyond(times[row])) for row in beyond.tolist()]
        return AddedRows(self._no_pairs, late, failures, partly_late)

    def close(self, watermark_ns: int, *, reports_all: bool) -> FiredKeys | None:  # noqa: ARG002 - it always does
        """See ColumnJoin. Each key fires once for each of its windows."""
        # None of these timers follows the log clock.
        closed = self._windows.close(0, watermark_ns)
        if closed is None:
            return None
        left, right = self._messages.listed(closed.kept)
        self._windows.release(closed)
        pairs = self._pairs(left, right)
        return FiredKeys(closed.keys, closed.dues, closed.times, pairs, too_many(closed.keys))

    def try_without_rows(self) -> None:
        """See ColumnJoin."""
        self._windows.try_without_rows()
        nothing = WindowWords(np.empty((0, 1 + self._messages.words), np.int64), np.empty(0, np.int64))
        self._messages.listed(nothing)

    def _pairs(self, left: ListedMessages, right: ListedMessages) -> Iterator[PairColumns]:
        """Window by window, pairs each message of the left side with all of the right one, or none."""
        lefts, rights = left.counts, right.counts
        counts = lefts * rights
        if self._left_emits_alone:
            counts += np.where(rights == 0, lefts, 0)
        if self._right_emits_alone:
            counts += np.where(lefts == 0, rights, 0)
        stops = np.cumsum(counts)
        for start in range(0, int(stops[-1]), _PAIRS_MAX):
            pairs = np.arange(start, min(start + _PAIRS_MAX, int(stops[-1])))
            rows = np.searchsorted(stops, pairs, side="right")
            of_left, of_right = np.divmod(pairs - (stops - counts)[rows], np.maximum(rights[rows], 1))
            lacks = np.where(lefts[rows] == 0, LEFT_LACKS, np.where(rights[rows] == 0, RIGHT_LACKS, BOTH))
            yield PairColumns(
                rows,
                _of_windows(left, rows, of_left),
                _of_windows(right, rows, of_right),
                lacks.astype(np.uint8),
            )


def _of_windows(side: ListedMessages, rows: Array, numbers: Array) -> Columns:
    """The message of each of these windows at its number; the message of zeros for a window without any."""
    starts = np.cumsum(side.counts) - side.counts
    last = side.columns.length - 1
    return side.columns.take(np.where(side.counts[rows] > 0, starts[rows] + numbers, last))
