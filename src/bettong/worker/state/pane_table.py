"""The open windows of one partition's keys, for folds over columns: a record a key, and a row of an array a pane."""

import io
from collections.abc import Callable
from typing import Any

import numpy as np

from bettong.application.nodes.stateful import Stateful
from bettong.application.timers import NEVER
from bettong.application.windows.states import RangeState, SessionState
from bettong.application.windows.windowed import Windowed
from bettong.errors import SnapshotError
from bettong.frames.columns import Array
from bettong.frames.composite_keys import unpacked
from bettong.schema.fields import Field, Kind
from bettong.worker.batch import Batch, FrameKeys
from bettong.worker.fired import rows_of_column
from bettong.worker.jsonable import to_jsonable
from bettong.worker.state.due_table import DueTable
from bettong.worker.state.objects import WINDOW_TIMERS
from bettong.worker.state.pane_items import are_items, arrays_of
from bettong.worker.state.pane_pool import (
    DUE,
    MESSAGES,
    NEWER,
    NEWEST,
    NUMBER,
    OLDER,
    OLDEST,
    SHOWN,
    VALUES,
    PanePool,
)
from bettong.worker.state.stored_arrays import bytes_of, read_array
from bettong.worker.state.table import SavedStates
from bettong.worker.state.timers import without_never


class PaneTable(DueTable):
    """See StateTable; `words`: see `pane_pool`. A key's state is its panes.

    A record has a due time for each of the computation's timers, by their names. A saved one says where its panes
    begin, and how many they are.
    """

    def __init__(
        self,
        node: Stateful,
        key: tuple[Kind, np.dtype[Any], tuple[Field, ...] | None],
        panes: PanePool,
        shown: Callable[[Array, Array], list[Any]],
    ) -> None:
        """`key`: its kind and type, and its fields where it is a tuple.

        `shown`: the accumulators of a pane, from its words and all items, as JSON can hold them.
        """
        due, *early = [timer.field for timer in node.timers] or ["due"]
        record = np.dtype([(name, "<i8") for name in (due, "oldest", "newest", *early)])
        first = np.array([(NEVER, -1, -1, *[NEVER] * len(early))], record)
        super().__init__(node, key[1], key[0], key[2], first=first)
        self._early_ns = node.windowing.early_ns if isinstance(node, Windowed) else None
        self.panes = panes
        self._shown = shown

    def keys_of(self, batch: Batch) -> Array:
        """The keys of a batch, in the form of `fired`."""
        return self._column_of(batch).astype(self.fired.fields[0].dtype)

    def rows_of(self, keys: Array, dues: Array) -> Batch:
        """Rows of `fired`, of keys in that form."""
        rows = rows_of_column(self.fired, keys, dues)
        if self._parts is None:
            return rows
        values: list[Any] = list(unpacked(self._parts, keys))
        known = FrameKeys(rows.keys.entry, rows.columns, _values=values, are_fired=True)
        return Batch(rows.columns, known, times=rows.times)

    def note_changed(self, slots: Array) -> None:
        """Windows of the keys at these slots have changed: makes their early results due, if they have any."""
        if self._early_ns is not None:
            waiting = slots[self.states["early"][slots] == NEVER]
            self.states["early"][waiting] = self.log_ns + self._early_ns
            self.note(waiting)

    def take_windows_due(self, log_ns: int, watermark_ns: int) -> tuple[Array, Array, Array]:
        """The slots of keys with windows or early results due by then, and when their windows and early ones are.

        Early results that are not due yet: NEVER. Those that are due are NEVER in the record from now on. The caller
        sets when the windows of each record are due, then calls `close`.
        """
        slots, at_ns, timers = self._take_due(log_ns, watermark_ns)
        if self._early_ns is None:
            return slots, at_ns, np.full(len(slots), NEVER)
        dues = np.where(timers == 0, at_ns, self.words[slots, DUE])
        early = np.where(timers == 1, at_ns, self.states["early"][slots])
        is_due = early <= min(log_ns, NEVER - 1)
        self.states["early"][slots[is_due]] = NEVER
        return slots, dues, np.where(is_due, early, NEVER)

    def close(self, slots: Array) -> None:
        """See DueTable. Makes `due` exact again: without the early results of removed keys."""
        super().close(slots)
        if self._timers is not None and self._early_ns is not None:
            self._timers.make_exact(slots, self.states)

    def _is_over(self, slots: Array) -> Any:
        return self.words[slots, OLDEST] < 0

    def _drop(self, slots: Array) -> None:
        self.panes.give_back(self.panes.of_keys(self.words[slots])[0])
        super()._drop(slots)

    def _saved(self, slots: Array | slice) -> SavedStates:
        states = self.states[slots].copy()
        panes, counts = self.panes.of_keys(_words(states))
        states["oldest"], states["newest"] = np.cumsum(counts) - counts, counts
        words = self.panes.words[panes][:, self.panes.saved]
        return SavedStates(bytes_of(self._table.keys[slots], states, words, *self.panes.items_of(panes)))

    def _read_beside(self, file: io.BytesIO) -> Any:
        panes = read_array(file, dimensions=2)
        return panes, [read_array(file, dimensions=2) for _ in range(arrays_of(self.panes.kinds))]

    def _take_over(self, slots: Array, states: Array, beside: Any) -> None:
        beside, items = beside
        starts, counts = states["oldest"], states["newest"]
        width = len(self.panes.saved)
        dues = _words(states)[:, DUE]
        if beside.dtype != np.int64 or beside.shape[1:] != (width,) or not self._are_open(dues, counts):
            raise SnapshotError(
                f"state of {self.name!r}: panes of {beside.shape[1:]} words of {beside.dtype}, expected {width} of"
                " int64, and as many a key as its windows have"
            )
        # No count is more than all, so their sum cannot overflow.
        if (
            (counts > len(beside)).any()
            or len(beside) != counts.sum()
            or not np.array_equal(starts, np.cumsum(counts) - counts)
        ):
            raise SnapshotError(
                f"state of {self.name!r}: {len(beside)} panes, but not as many as its keys have"
            )
        if not self.panes.are_counted(beside[:, VALUES - MESSAGES + 1 :]):
            raise SnapshotError(f"state of {self.name!r}: more values of an aggregate than it keeps")
        if not are_items(self.panes.kinds, items, len(beside)):
            raise SnapshotError(f"state of {self.name!r}: items of no aggregate that it has")
        # An increment holds all panes of its keys.
        self.panes.give_back(self.panes.of_keys(self.words[slots])[0])
        panes = self.panes.allocate(len(beside))
        words = self.panes.words
        words[panes[:, None], self.panes.saved] = beside
        words[panes, OLDER], words[panes, NEWER] = np.roll(panes, 1), np.roll(panes, -1)
        if items:
            self.panes.put_items(panes, items)
        has_panes = counts > 0
        starts, counts = starts[has_panes], counts[has_panes]
        oldest, newest = panes[starts], panes[starts + counts - 1]
        words[oldest, OLDER] = words[newest, NEWER] = -1
        self.states[slots] = states
        self.words[slots, OLDEST] = self.words[slots, NEWEST] = -1
        self.states["oldest"][slots[has_panes]], self.states["newest"][slots[has_panes]] = oldest, newest

    def _are_open(self, dues: Array, counts: Array) -> bool:  # noqa: ARG002 - it decides for other windows
        """Whether keys may be due then and have that many panes. Anyone may have written them."""
        return bool((counts >= 1).all())

    def _jsonable(self, slot: int) -> Any:
        keys = self.words[slot : slot + 1]
        panes = self.panes.words[self.panes.of_keys(keys)[0]]
        state = self._state(int(keys[0, DUE]), panes)
        if self._early_ns is not None:
            state.early = int(self.states["early"][slot])
        return without_never(to_jsonable(state), WINDOW_TIMERS)

    def _state(self, due_ns: int, panes: Array) -> Any:
        """The state that plain Python would keep for such a key."""
        shown, numbers = [self._accumulator(pane) for pane in panes], panes[:, NUMBER].tolist()
        changed = panes[:, SHOWN] != panes[:, MESSAGES] if self.panes.are_shown else None
        if not self.panes.are_sessions:
            waiting = panes[changed, NUMBER].tolist() if changed is not None else []
            return RangeState(due=due_ns, panes=dict(zip(numbers, shown, strict=True)), changed=waiting)
        ends = panes[:, VALUES + self.panes.values].tolist()
        flags = changed.tolist() if changed is not None else [True] * len(panes)
        sessions = [[*each] for each in zip(numbers, ends, shown, flags, strict=True)]
        return SessionState(due=due_ns, sessions=sessions)

    def _accumulator(self, pane: Array) -> list[Any]:
        return self._shown(pane[MESSAGES:], self.panes.items.words)


def _words(states: Array) -> Array:
    words: Array = states.view(np.int64).reshape(len(states), states.itemsize // 8)
    return words
