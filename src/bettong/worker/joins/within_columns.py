"""`join_within` over columns: the pairs that the rows of a batch make, all at once, as columns of both sides."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bettong.application.joins.kinds import Within
from bettong.application.timers import NEVER
from bettong.frames.columns import Array, Columns
from bettong.user_errors import reason_of
from bettong.worker.batch import Batch
from bettong.worker.joins.column_join import Pairs, TakenRows
from bettong.worker.joins.sides import SidedColumns
from bettong.worker.joins.within import beyond
from bettong.worker.joins.within_kernels import (
    BEYOND,
    KEPT_ROW,
    LATE,
    MORE_PAIRS,
    PAIRS,
    PASSING,
    SOONER,
    drop_past,
    judge_rows,
    pair_rows,
)
from bettong.worker.state.join_table import JoinTable
from bettong.worker.state.kept_pool import ENTRY_WORDS

# Pairs that a batch has room for at least; doubled as often as it needs.
_ROOM_MIN = 1024


class _Rows(NamedTuple):
    """As `pair_rows` takes them, by row; `of_right`: its side; `messages`: where it is kept."""

    times: Array
    watermarks: Array
    of_right: Array
    marks: Array
    messages: Array


class WithinColumns:
    """See ColumnJoin. Of pairs alone, so nothing comes of what time does. What is kept is in `table`."""

    def __init__(self, kind: Within, table: JoinTable) -> None:
        self._table = table
        self._reaches = np.array([kind.reach_ns(is_right=is_right) for is_right in (False, True)], np.int64)
        self._room = _ROOM_MIN
        # Of later ones the bounds lie beyond 64 bits.
        self._latest_ns = NEVER - 2 - max(abs(kind.lower_ns), abs(kind.upper_ns))

    def take(self, batch: Batch) -> TakenRows:
        """See ColumnJoin. Pairs rows with what is kept of the other side, and keeps them."""
        columns = batch.columns
        assert isinstance(columns, SidedColumns)  # noqa: S101 - a join reads nothing else
        times, watermarks, of_right = batch.event_times(), batch.message_watermarks(), columns.of_right
        marks = np.empty(len(times), np.uint8)
        others = judge_rows(times, watermarks, of_right, self._reaches, self._latest_ns, marks)
        late = taken = np.empty(0, np.int64)
        failures: list[tuple[int, str]] = []
        if others:
            late = np.flatnonzero(marks == LATE)
            failures = [
                (row, reason_of(beyond(int(times[row])))) for row in np.flatnonzero(marks == BEYOND).tolist()
            ]
            taken = np.flatnonzero(marks <= PASSING)
            if len(taken) < len(marks):
                batch = batch.take(taken)
                times, watermarks, of_right, marks = (
                    each[taken] for each in (times, watermarks, of_right, marks)
                )
        found = self._pairs(batch, _Rows(times, watermarks, of_right, marks, self._keep(batch, marks)))
        rows = found[0] if not others else taken[found[0]]
        left, right = (self._messages(batch, found, is_right=is_right) for is_right in (False, True))
        return TakenRows([Pairs(rows, left, right)], late, failures)

    def _keep(self, batch: Batch, marks: Array) -> Array:
        """By row that is kept, the row of its message."""
        columns = batch.columns
        assert isinstance(columns, SidedColumns)  # noqa: S101 - a join reads nothing else
        messages = np.zeros(batch.length, np.int64)
        for is_right, kept in enumerate(self._table.pool.sides):
            own = np.flatnonzero((columns.of_right == is_right) & (marks == KEPT_ROW))
            if len(own):
                messages[own] = kept.put(columns.of_side(own, is_right=bool(is_right)).columns)
        return messages

    def _pairs(self, batch: Batch, rows: _Rows) -> Array:
        """The rows of pairs, and the messages of their partners."""
        slots = self._table.slots(batch)
        pairs, sooner = self._pairs_of(slots, rows)
        self._table.note(sooner)
        if len(passing := np.flatnonzero(rows.marks == PASSING)):
            self._table.forget_empty(slots[passing])
        return pairs

    def _pairs_of(self, slots: Array, rows: _Rows) -> tuple[Array, Array]:
        """The same for rows whose keys have these slots, and the slots that are due sooner."""
        table = self._table
        pairs = np.empty((2, self._room), np.int64)
        sooner, counts = np.empty(len(slots), np.int32), np.zeros(3, np.int64)
        row = 0
        while True:
            row = pair_rows(
                row, slots, rows, self._reaches, table.words, table.pool.arrays, pairs, sooner, counts
            )
            if row == len(slots):
                break
            if more := int(counts[MORE_PAIRS]):
                fresh = np.empty((2, max(pairs.shape[1], more)), np.int64)
                pairs = np.concatenate([pairs, fresh], axis=1)
                counts[MORE_PAIRS] = 0
            else:
                table.pool.grow()
        # With some to spare, for nearly always the next batch of that side makes as many.
        self._room = max(_ROOM_MIN, int(counts[PAIRS]) * 5 // 4, self._room - self._room // 8)
        return pairs[:, : counts[PAIRS]], sooner[: counts[SOONER]]

    def _messages(self, batch: Batch, pairs: Array, *, is_right: bool) -> Columns:
        """Those of one side, by pair: rows of the batch, or their partners."""
        columns, kept = batch.columns, self._table.pool.sides[is_right]
        assert isinstance(columns, SidedColumns)  # noqa: S101 - a join reads nothing else
        if columns.one_side is not None:
            if columns.one_side != is_right:
                return kept.at(pairs[1])
            return columns.messages_of(pairs[0], is_right=is_right)
        are_rows = columns.of_right[pairs[0]] == is_right
        own, others = np.flatnonzero(are_rows), np.flatnonzero(~are_rows)
        parts = [columns.messages_of(pairs[0, own], is_right=is_right), kept.at(pairs[1, others])]
        return Columns.concatenated(kept.schema, parts).take(np.argsort(np.concatenate([own, others])))

    def soonest_due(self, times: Array) -> Array:
        """See ColumnJoin. Nobody sees when a message is thrown away."""
        return np.full(len(times), NEVER, np.int64)

    def close(self, watermark_ns: int) -> None:
        """See ColumnJoin. What can have no partner any more is gone."""
        slots, dues = self._table.take_slots_due(watermark_ns)
        if len(slots):
            self._drop(slots, dues, watermark_ns)
            self._table.close(slots)

    def try_without_rows(self) -> None:
        """See ColumnJoin."""
        slots, none = np.empty(0, np.int32), np.empty(0, np.int64)
        read_only = none.view()
        read_only.flags.writeable = False
        of_right, marks = np.empty(0, np.bool_), np.empty(0, np.uint8)
        # Numba tells those of frames, which nobody may write, from others.
        for times in (none, read_only):
            judge_rows(times, none, of_right, self._reaches, self._latest_ns, marks)
            self._pairs_of(slots, _Rows(times, none, of_right, marks, none))
        self._drop(slots, none, 0)
        self._table.forget_empty(slots)
        self._table.pool.keep(self._table.words[:0], 0, none, np.empty((0, ENTRY_WORDS), np.int64))

    def _drop(self, slots: Array, dues: Array, watermark_ns: int) -> None:
        table = self._table
        sides = table.pool.sides
        dropped = tuple(np.empty(side.live, np.int64) for side in sides)
        counts = drop_past(
            slots,
            dues,
            min(watermark_ns, NEVER - 1),
            self._reaches,
            table.words,
            table.pool.arrays,
            dropped,
        )
        for side, messages, count in zip(sides, dropped, counts.tolist(), strict=True):
            side.give_back(messages[:count])
