"""The messages that a join keeps for one partition's keys, for folds over columns: a record a key, a row a message."""

import io
from typing import Any

import numpy as np

from bettong.application.joins.states import AsOfState, KeptMessage, OuterState, TimedMessage
from bettong.application.nodes.stateful import Stateful
from bettong.application.timers import NEVER
from bettong.errors import SnapshotError
from bettong.frames.columns import Array
from bettong.schema.fields import Field, Kind
from bettong.schema.schema import Schema
from bettong.worker.jsonable import to_jsonable
from bettong.worker.state.due_table import DueTable
from bettong.worker.state.kept_pool import (
    COUNT,
    DUE,
    ENTRY_WORDS,
    KEPT,
    MESSAGE,
    NUMBER,
    SIDE_WORDS,
    SIDES,
    TIME,
    WORDS,
    KeptPool,
)
from bettong.worker.state.objects import WINDOW_TIMERS
from bettong.worker.state.stored_arrays import bytes_of, read_array
from bettong.worker.state.table import SavedStates
from bettong.worker.state.timers import without_never

_KEY = np.dtype(
    [
        (name, "<i8")
        for name in (
            *("due", "count"),
            *(f"{side}_{word}" for side in ("left", "right") for word in ("first", "kept", "segment")),
        )
    ]
)
_KEPT = [SIDES + SIDE_WORDS * side + KEPT for side in range(2)]


class JoinTable(DueTable):
    """See StateTable; `words`: see `kept_pool`. A key's state is what is kept of both sides.

    A saved record says how many messages that is, and not where they are in memory.
    """

    def __init__(
        self,
        node: Stateful,
        key: tuple[Kind, np.dtype[Any], tuple[Field, ...] | None],
        sides: tuple[Schema, Schema],
    ) -> None:
        """`key`: its kind and type, and its fields where it is a tuple. `sides`: the schemas of their messages."""
        first = np.array([(NEVER, *[0] * (WORDS - 1))], _KEY)
        super().__init__(node, key[1], key[0], key[2], first=first)
        self.pool = KeptPool(sides)

    def try_without_rows(self) -> None:
        """Runs all kernels over no rows, so that they are compiled before the first message comes."""
        none = np.empty(0, np.int64)
        self.forget_empty(np.empty(0, np.int32))
        self.pool.keep(self.words[:0], 0, none, np.empty((0, ENTRY_WORDS), np.int64))

    def _is_over(self, slots: Array) -> Any:
        words = self.words
        return words[slots, _KEPT[0]] + words[slots, _KEPT[1]] == 0

    def _drop(self, slots: Array) -> None:
        self.pool.forget(self.words[slots])
        super()._drop(slots)

    def _saved(self, slots: Array | slice) -> SavedStates:
        words = self.words[slots]
        arrays = []
        for side, columns in enumerate(self.pool.sides):
            entries = self.pool.kept(words, side)
            arrays += [np.ascontiguousarray(entries[:, :MESSAGE]), *columns.at(entries[:, MESSAGE]).columns]
        saved = np.zeros_like(words)
        shown = [DUE, COUNT, *_KEPT]
        saved[:, shown] = words[:, shown]
        return SavedStates(bytes_of(self._table.keys[slots], saved.view(_KEY).ravel(), *arrays))

    def _read_beside(self, file: io.BytesIO) -> Any:
        return [
            (read_array(file, dimensions=2), [read_array(file, dimensions=1) for _ in columns.schema.fields])
            for columns in self.pool.sides
        ]

    def _take_over(self, slots: Array, states: Array, beside: Any) -> None:
        words = states.view(np.int64).reshape(len(states), WORDS)
        counts = words[:, _KEPT]
        if (counts < 0).any() or not counts.any(axis=1).all():
            raise SnapshotError(f"state of {self.name!r}: a key that keeps nothing")
        for side, (entries, columns) in enumerate(beside):
            self._check(side, counts[:, side], entries, columns)
        # An increment holds everything that its keys keep.
        self.pool.forget(self.words[slots])
        taken = np.tile(self.first.view(np.int64), (len(slots), 1))
        taken[:, [DUE, COUNT]] = words[:, [DUE, COUNT]]
        for side, (entries, columns) in enumerate(beside):
            kept = np.empty((len(entries), ENTRY_WORDS), np.int64)
            kept[:, :MESSAGE], kept[:, MESSAGE] = entries, self.pool.sides[side].put(columns)
            self.pool.keep(taken, side, counts[:, side], kept)
        self.words[slots] = taken

    def _check(self, side: int, counts: Array, entries: Array, columns: list[Array]) -> None:
        """Raises SnapshotError unless this is what is saved of a side's messages, `counts` by key."""
        expected = [each.dtype for each in self.pool.sides[side].columns]
        found = [each.dtype for each in columns]
        if entries.dtype != np.int64 or entries.shape[1] != MESSAGE or found != expected:
            raise SnapshotError(
                f"state of {self.name!r}: messages of {entries.shape[1:]} words of {entries.dtype} and"
                f" {list(map(str, found))}, expected {MESSAGE} of int64 and {list(map(str, expected))}"
            )
        # No count is more than all, so their sum cannot overflow.
        lengths = {len(each) for each in (entries, *columns)}
        if (counts > len(entries)).any() or lengths != {counts.sum()}:
            raise SnapshotError(
                f"state of {self.name!r}: {len(entries)} messages, but not as many as its keys have"
            )

    def _jsonable(self, slot: int) -> Any:
        words = self.words[slot : slot + 1]
        state = self._node.state()
        state.due, state.count = int(words[0, DUE]), int(words[0, COUNT])
        is_outer = isinstance(state, OuterState)
        of_sides = (
            (state.left, state.left_alone if is_outer else []),
            (state.right, state.right_alone if is_outer else []),
        )
        for side, (columns, (shown, shown_alone)) in enumerate(zip(self.pool.sides, of_sides, strict=True)):
            entries = self.pool.kept(words, side)
            times, numbers, is_alone = entries[:, TIME], entries[:, NUMBER], entries[:, NUMBER] < 0
            numbers = np.where(is_alone, ~numbers, numbers)
            messages = columns.at(entries[:, MESSAGE])
            shown.extend(map(KeptMessage, times.tolist(), numbers.tolist(), messages))
            shown_alone.extend(zip(times[is_alone].tolist(), numbers[is_alone].tolist(), strict=True))
        return without_never(to_jsonable(state), WINDOW_TIMERS)


class AsOfTable(JoinTable):
    """The table of `join_as_of`: on the left what waits, on the right versions. It counts no messages."""

    def _jsonable(self, slot: int) -> Any:
        words = self.words[slot : slot + 1]
        state = AsOfState(due=int(words[0, DUE]))
        both = zip(self.pool.sides, (state.waiting, state.versions), strict=True)
        for side, (columns, shown) in enumerate(both):
            entries = self.pool.kept(words, side)
            shown.extend(map(TimedMessage, entries[:, TIME].tolist(), columns.at(entries[:, MESSAGE])))
        return without_never(to_jsonable(state), WINDOW_TIMERS)
