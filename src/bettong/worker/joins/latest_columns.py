"""`join_latest` over columns: the rows of a batch look up the table's messages, and update them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from bettong.application.joins.joined import Joined
from bettong.application.timers import NEVER
from bettong.frames.columns import Array, Columns
from bettong.worker.batch import Batch
from bettong.worker.joins.column_join import AddedRows
from bettong.worker.joins.latest_kernels import (
    DELETES,
    ENDED,
    FAILED,
    FINDS,
    RENEWED,
    RENEWS,
    UNKNOWN,
    look_up,
    settle,
)
from bettong.worker.joins.pair_columns import PairColumns, interleaved
from bettong.worker.joins.sides import SidedColumns, sides_of
from bettong.worker.state.latest_table import NONE, LatestTable

# Of a batch of the table's messages: the rows that delete, and the rows for which the predicate failed, and why.
Deletes = Callable[[Batch], tuple[Array, Sequence[tuple[int, str]]]]


class LatestColumns:
    """See ColumnJoin. It has no timers and no late rows. `deletes`: None where no message deletes."""

    def __init__(self, node: Joined, table: LatestTable, deletes: Deletes | None) -> None:
        self._table = table
        self._deletes = deletes
        self._emits_alone = node.how == "left"
        self._nothing = Columns.of_messages(node.sides[0], [])

    def add(self, batch: Batch) -> AddedRows:
        """See ColumnJoin."""
        columns = sides_of(batch)
        of_right = columns.of_right
        left, right = np.flatnonzero(~of_right), np.flatnonzero(of_right)
        does = np.where(of_right, RENEWS, FINDS).astype(np.uint8)
        failures = self._mark_deletions(batch, right, does)
        slots = self._slots(batch, left, right)
        found = np.empty(len(slots), np.int64)
        look_up(slots, does, self._table.held, found)
        pairs = self._pairs(columns, left, slots, found)
        self._update_table(columns, right, slots)
        return AddedRows(pairs, np.empty(0, np.int64), failures)

    def _mark_deletions(self, batch: Batch, right: Array, does: Array) -> Sequence[tuple[int, str]]:
        """Sets in `does` which messages of the table delete; returns those for which that failed, and why."""
        if self._deletes is None or not len(right):
            return ()
        columns = sides_of(batch)
        rows, failed = self._deletes(batch.derived(columns.of_side(right, is_right=True), right))
        does[right[rows]] = DELETES
        failures = [(int(right[row]), reason) for row, reason in failed]
        does[[row for row, _ in failures]] = FAILED
        return failures

    def _slots(self, batch: Batch, left: Array, right: Array) -> Array:
        """By row, the slot of its key; -1 where a message of the stream finds none."""
        if not len(left):
            return self._table.open(batch).slots
        if not len(right):
            return self._table.find(batch)
        slots = np.empty(batch.length, np.int32)
        slots[right] = self._table.open(batch.take(right)).slots
        slots[left] = self._table.find(batch.take(left))
        return slots

    def _pairs(self, columns: SidedColumns, left: Array, slots: Array, found: Array) -> PairColumns:
        """Rows of the stream with the messages that they found; in a left join also those that found none."""
        rows = left if self._emits_alone else left[found[left] != NONE]
        alone = found[rows] == NONE
        of_stream = columns.of_side(rows, is_right=False) if len(rows) else self._nothing
        of_table = self._of_table(columns, np.where(alone, 0, slots[rows]), found[rows])
        return PairColumns.of_left(rows, of_stream, of_table, alone)

    def _of_table(self, columns: SidedColumns, slots: Array, found: Array) -> Columns:
        """The messages of these slots, each as it was when a row found it; an arbitrary one where it found none."""
        of_batch = np.flatnonzero(found > NONE)
        if not len(of_batch):
            return self._table.at(slots)
        kept = np.flatnonzero(found <= NONE)
        return interleaved(
            (of_batch, columns.messages_of(found[of_batch] - 1, is_right=True)),
            (kept, self._table.at(slots[kept])),
        )

    def _update_table(self, columns: SidedColumns, right: Array, slots: Array) -> None:
        """Stores the newest messages in the table, and drops keys without one."""
        if not len(right):
            return
        renewed, dropped = np.empty(len(right), np.int64), np.empty((2, len(right)), np.int32)
        counts = np.zeros(3, np.int64)
        settle(slots, right, self._table.held, renewed, dropped, counts)
        if counts[RENEWED]:
            rows = renewed[: counts[RENEWED]]
            self._table.put(slots[rows], columns.messages_of(rows, is_right=True))
        if counts[ENDED] or counts[UNKNOWN]:
            self._table.drop(dropped[0, : counts[ENDED]], dropped[1, : counts[UNKNOWN]])

    def soonest_due(self, times: Array) -> Array:
        """See ColumnJoin."""
        return np.full(len(times), NEVER, np.int64)

    def close(self, watermark_ns: int, *, reports_all: bool) -> None:  # noqa: ARG002
        """See ColumnJoin."""
        raise AssertionError(f"nothing is due at {watermark_ns}")

    def try_without_rows(self) -> None:
        """See ColumnJoin."""
        slots, none = np.empty(0, np.int32), np.empty(0, np.int64)
        held = self._table.held
        look_up(slots, np.empty(0, np.uint8), held, none)
        settle(slots, none, held, none, np.empty((2, 0), np.int32), np.zeros(3, np.int64))
