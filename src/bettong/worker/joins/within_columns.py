"""`join_within` over columns: makes the pairs of a batch, and messages that stay alone, as columns of both sides."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bettong.application.joins.kinds import How, Within
from bettong.application.timers import NEVER
from bettong.frames.columns import Array, Columns
from bettong.user_errors import reason_of
from bettong.worker.arrays import in_both_types
from bettong.worker.batch import Batch
from bettong.worker.joins.column_join import AddedRows, FiredKeys, keep_messages
from bettong.worker.joins.pair_columns import PairColumns, interleaved
from bettong.worker.joins.reaches import reaches
from bettong.worker.joins.sides import sides_of
from bettong.worker.joins.within import beyond
from bettong.worker.joins.within_kernels import (
    ALONE,
    BEYOND,
    FIRED,
    KEPT_ROW,
    LATE,
    MORE_PAIRS,
    NO_MESSAGE,
    PAIRS,
    PASSING,
    SOONER,
    drop_past,
    mark_rows,
    pair_rows,
)
from bettong.worker.kernel import BOTH, LEFT_LACKS, RIGHT_LACKS
from bettong.worker.state.join_table import JoinTable

# The least room for the pairs of a batch; it grows as needed.
_ROOM_MIN = 1024


class _Rows(NamedTuple):
    """The argument of `pair_rows`, by row; `of_right`: its side; `messages`: where its message is kept."""

    times: Array
    watermarks: Array
    of_right: Array
    marks: Array
    messages: Array


class WithinColumns:
    """See ColumnJoin. Kept messages are in `table`."""

    def __init__(self, kind: Within, how: How, table: JoinTable) -> None:
        self._table = table
        own = reaches(kind, how)
        self.soonest_due = own.soonest_due
        self._reaches, self._latest_ns = np.array([own.left, own.right], np.int64), own.latest_ns
        self._room = _ROOM_MIN

    def add(self, batch: Batch) -> AddedRows:
        """See ColumnJoin. Pairs rows with the kept messages of the other side, and keeps them."""
        columns = sides_of(batch)
        times, watermarks, of_right = batch.event_times(), batch.message_watermarks(), columns.of_right
        marks = np.empty(len(times), np.uint8)
        others = mark_rows(times, watermarks, of_right, self._reaches, self._latest_ns, marks)
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
        messages = keep_messages(self._table.pool, sides_of(batch), marks == KEPT_ROW)
        found = self._pairs(batch, _Rows(times, watermarks, of_right, marks, messages))
        rows = found[0] if not others else taken[found[0]]
        left, right = (self._messages(batch, found, is_right=is_right) for is_right in (False, True))
        lacks, alone = np.full(len(rows), BOTH, np.uint8), np.flatnonzero(found[1] == NO_MESSAGE)
        lacks[alone] = _lacks(of_right[found[0, alone]])
        return AddedRows(PairColumns(rows, left, right, lacks), late, failures)

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
        # With some to spare: nearly always the next batch of that side makes as many pairs.
        self._room = max(_ROOM_MIN, int(counts[PAIRS]) * 5 // 4, self._room - self._room // 8)
        return pairs[:, : counts[PAIRS]], sooner[: counts[SOONER]]

    def _messages(self, batch: Batch, pairs: Array, *, is_right: bool) -> Columns:
        """By pair, the message of one side: a row of the batch, or a partner; an arbitrary one where there is none."""
        columns, kept = sides_of(batch), self._table.pool.sides[is_right]
        if columns.one_side is not None:
            if columns.one_side != is_right:
                return kept.at(pairs[1])
            return columns.messages_of(pairs[0], is_right=is_right)
        are_rows = columns.of_right[pairs[0]] == is_right
        own, others = np.flatnonzero(are_rows), np.flatnonzero(~are_rows)
        return interleaved(
            (own, columns.messages_of(pairs[0, own], is_right=is_right)), (others, kept.at(pairs[1, others]))
        )

    def close(self, watermark_ns: int, *, reports_all: bool) -> FiredKeys | None:
        """See ColumnJoin. Drops messages that can have no partner any more."""
        slots, dues = self._table.take_slots_due(watermark_ns)
        if not len(slots):
            return None
        found = self._drop(slots, dues, watermark_ns, reports_all=reports_all)
        self._table.close(slots)
        return found

    def try_without_rows(self) -> None:
        """See ColumnJoin."""
        slots, none = np.empty(0, np.int32), np.empty(0, np.int64)
        of_right, marks = np.empty(0, np.bool_), np.empty(0, np.uint8)
        for times in in_both_types(none):
            mark_rows(times, none, of_right, self._reaches, self._latest_ns, marks)
            self._pairs_of(slots, _Rows(times, none, of_right, marks, none))
        self._drop(slots, none, 0, reports_all=True)
        self._table.try_without_rows()

    def _drop(self, slots: Array, dues: Array, watermark_ns: int, *, reports_all: bool) -> FiredKeys | None:
        table = self._table
        sides = table.pool.sides
        dropped = tuple(np.empty(side.live, np.int64) for side in sides)
        # Each firing of a key but the first drops a message, which bounds their number.
        live = sum(map(len, dropped))
        fired, alone = np.empty((2, len(slots) + live), np.int64), np.empty((3, live), np.int64)
        counts = drop_past(
            slots,
            dues,
            min(watermark_ns, NEVER - 1),
            self._reaches,
            table.words,
            table.pool.arrays,
            dropped,
            fired,
            alone,
        )
        found = None
        if reports_all or counts[ALONE]:
            found = self._fired(fired[:, : counts[FIRED]], alone[:, : counts[ALONE]])
        for side, messages, count in zip(sides, dropped, counts.tolist(), strict=False):
            side.give_back(messages[:count])
        return found

    def _fired(self, fired: Array, alone: Array) -> FiredKeys:
        """The firings, sorted. The messages that stay alone must not have been freed."""
        keys, dues = self._table.keys_at(fired[0]), fired[1]
        # The left side of a key comes before the right one, which is due at the same time.
        order = np.lexsort((keys, dues))
        ranks = np.empty(len(order), np.int64)
        ranks[order] = np.arange(len(order))
        rows, of_right, messages = ranks[alone[0]], alone[1] == 1, alone[2]
        by_row = np.argsort(rows, kind="stable")
        rows, of_right, messages = rows[by_row], of_right[by_row], messages[by_row]
        left, right = (
            side.at(np.where(of_right == is_right, messages, 0))
            for is_right, side in enumerate(self._table.pool.sides)
        )
        pairs = PairColumns(rows, left, right, _lacks(of_right))
        return FiredKeys(keys[order], dues[order], dues[order] - 1, (pairs,))


def _lacks(of_right: Array) -> Array:
    """Which side's message is missing for messages that are alone, by the side of each."""
    return np.where(of_right, LEFT_LACKS, RIGHT_LACKS).astype(np.uint8)
