"""`join_as_of` over columns: keeps the rows of a batch, and pairs them when the watermark has passed them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bettong.application.joins.joined import Joined
from bettong.application.joins.kinds import AsOf
from bettong.application.timers import NEVER
from bettong.frames.columns import Array, Columns
from bettong.user_errors import reason_of
from bettong.worker.arrays import in_both_types
from bettong.worker.batch import Batch
from bettong.worker.joins.as_of import beyond
from bettong.worker.joins.as_of_kernels import (
    FIRINGS,
    LATE,
    NO_VERSION,
    PAIRS,
    PAST,
    SOONER,
    TAKEN,
    WAITED,
    close_keys,
    take_rows,
)
from bettong.worker.joins.column_join import AddedRows, FiredKeys, keep_messages
from bettong.worker.joins.pair_columns import PairColumns
from bettong.worker.joins.sides import sides_of
from bettong.worker.state.join_table import AsOfTable


class _Rows(NamedTuple):
    """The argument of `take_rows`, by row; `of_right`: its side; `messages`: where it may be kept."""

    times: Array
    watermarks: Array
    of_right: Array
    messages: Array


class AsOfColumns:
    """See ColumnJoin. Kept messages are in `table`."""

    def __init__(self, node: Joined, table: AsOfTable) -> None:
        assert isinstance(node.kind, AsOf)  # noqa: S101 - it is one
        self._table = table
        self._tolerance_ns = NEVER if node.kind.tolerance_ns is None else node.kind.tolerance_ns
        self._emits_alone = node.how == "left"
        self._latest_ns = node.kind.latest_ns
        self._nothing = Columns.of_messages(node.sides[0], [])

    def add(self, batch: Batch) -> AddedRows:
        """See ColumnJoin. A late message is paired at once, if its version is still kept."""
        columns = sides_of(batch)
        times, watermarks, of_right = batch.event_times(), batch.message_watermarks(), columns.of_right
        failures: list[tuple[int, str]] = []
        chosen: Array | None = None
        if len(times) and times.max() > self._latest_ns:
            failures = [
                (row, reason_of(beyond(int(times[row]))))
                for row in np.flatnonzero(times > self._latest_ns).tolist()
            ]
            chosen = np.flatnonzero(times <= self._latest_ns)
            batch = batch.take(chosen)
            times, watermarks, of_right = (each[chosen] for each in (times, watermarks, of_right))
        slots = self._table.slots(batch)
        # Keeps all versions, and the messages of the stream that wait.
        messages = keep_messages(self._table.pool, sides_of(batch), of_right | (times >= watermarks))
        rows = _Rows(times, watermarks, of_right, messages)
        marks, pairs, sooner, past = self._add_rows(slots, rows)
        self._table.note(sooner)
        late = np.flatnonzero(marks == LATE)
        if len(late):
            self._table.forget_empty(slots[late])
        versions = self._table.pool.sides[True].at(pairs[1])
        self._table.pool.sides[True].give_back(past)
        if chosen is not None:
            late, pairs[0] = chosen[late], chosen[pairs[0]]
        left = columns.of_side(pairs[0], is_right=False) if len(pairs[0]) else self._nothing
        made = PairColumns.of_left(pairs[0], left, versions, np.zeros(versions.length, np.bool_))
        return AddedRows(made, late, failures)

    def _add_rows(self, slots: Array, rows: _Rows) -> tuple[Array, Array, Array, Array]:
        """The mark of each row; rows and versions of pairs; slots that are due sooner; versions to free."""
        table, count = self._table, len(slots)
        marks, sooner = np.full(count, TAKEN, np.uint8), np.empty(count, np.int32)
        pairs, past = np.empty((2, count), np.int64), np.empty(table.pool.sides[True].live, np.int64)
        counts = np.zeros(5, np.int64)
        row = 0
        while (
            row := take_rows(
                row,
                slots,
                rows,
                self._tolerance_ns,
                table.words,
                table.pool.arrays,
                marks,
                pairs,
                sooner,
                past,
                counts,
            )
        ) < count:
            table.pool.grow()
        return marks, pairs[:, : counts[PAIRS]], sooner[: counts[SOONER]], past[: counts[PAST]]

    def soonest_due(self, times: Array) -> Array:
        """See ColumnJoin."""
        return np.minimum(times, self._latest_ns) + 1

    def close(self, watermark_ns: int, *, reports_all: bool) -> FiredKeys | None:
        """See ColumnJoin. Pairs waiting messages with the versions of their time; drops versions out of reach."""
        table = self._table
        slots, dues = table.take_slots_due(watermark_ns)
        if not len(slots):
            return None
        messages, versions = table.pool.sides
        firings, pairs, waited, past = self._close(slots, dues, watermark_ns)
        fired = self._fired(firings, pairs) if reports_all or pairs.shape[1] else None
        messages.give_back(waited)
        versions.give_back(past)
        table.close(slots)
        return fired

    def _fired(self, firings: Array, pairs: Array) -> FiredKeys:
        """The firings, sorted. Their messages must not have been freed."""
        messages, versions = self._table.pool.sides
        keys, dues = self._table.keys_at(firings[0]), firings[1]
        order = _in_order(keys, firings[2])
        # Pairs of one firing lie one behind the other, those of the first firing first.
        counts = np.bincount(pairs[0], minlength=len(order))
        starts, counts = (np.cumsum(counts) - counts)[order], counts[order]
        rows = np.repeat(np.arange(len(order)), counts)
        _, found, valid = pairs[:, np.arange(len(rows)) + (starts - np.cumsum(counts) + counts)[rows]]
        alone = valid == NO_VERSION
        right = versions.at(np.where(alone, 0, valid))
        made = PairColumns.of_left(rows, messages.at(found), right, alone)
        return FiredKeys(keys[order], dues[order], dues[order] - 1, (made,))

    def _close(self, slots: Array, dues: Array, watermark_ns: int) -> tuple[Array, Array, Array, Array]:
        """Firings and pairs, see `close_keys`; messages that have waited, and versions to free."""
        table = self._table
        waiting, versions = (side.live for side in table.pool.sides)
        # A key fires for each time of its messages, and once before and once after these for its versions.
        firings = np.empty((3, waiting + 2 * len(slots)), np.int64)
        pairs, gone = (
            np.empty((3, waiting), np.int64),
            (np.empty(waiting, np.int64), np.empty(versions, np.int64)),
        )
        counts = np.zeros(5, np.int64)
        close_keys(
            slots,
            dues,
            min(watermark_ns, NEVER - 1),
            self._tolerance_ns,
            self._emits_alone,
            table.words,
            table.pool.arrays,
            firings,
            pairs,
            gone,
            counts,
        )
        waited, past = gone[0][: counts[WAITED]], gone[1][: counts[PAST]]
        return firings[:, : counts[FIRINGS]], pairs[:, : counts[PAIRS]], waited, past

    def try_without_rows(self) -> None:
        """See ColumnJoin."""
        slots, none = np.empty(0, np.int32), np.empty(0, np.int64)
        for times in in_both_types(none):
            self._add_rows(slots, _Rows(times, none, np.empty(0, np.bool_), none))
        self._close(slots, none, 0)
        self._table.try_without_rows()


def _in_order(keys: Array, times: Array) -> Array:
    """The order of firings by time, then by key; stable within a key."""
    order = np.argsort(times, kind="stable")
    in_order = times[order]
    # Where all times differ, or all are equal, one sort is enough, which is faster.
    if (in_order[1:] != in_order[:-1]).all():
        return order
    if in_order[0] == in_order[-1]:
        return np.argsort(keys, kind="stable")
    return np.lexsort((keys, times))
