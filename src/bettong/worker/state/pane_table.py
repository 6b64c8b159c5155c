"""The open windows of one partition's keys, for folds over columns: a record a key, and a row of an array a pane."""

import io
from collections.abc import Callable
from typing import Any

import numpy as np

from bettong.application.nodes.stateful import Stateful
from bettong.application.timers import NEVER
from bettong.application.windows.states import RangeState
from bettong.errors import SnapshotError
from bettong.frames.columns import Array
from bettong.frames.composite_keys import unpacked
from bettong.schema.fields import Field, Kind
from bettong.worker.batch import Batch, FrameKeys
from bettong.worker.fired import rows_of_column
from bettong.worker.jsonable import to_jsonable
from bettong.worker.state.objects import WINDOW_TIMERS
from bettong.worker.state.pane_pool import MESSAGES, NEWER, NUMBER, OLDER, OLDEST, VALUES, PanePool
from bettong.worker.state.records import RecordTable
from bettong.worker.state.stored_arrays import bytes_of, read_array
from bettong.worker.state.table import SavedStates
from bettong.worker.state.timers import without_never

_WORDS = ("due", "oldest", "newest")
_KEY = np.dtype([(word, "<i8") for word in _WORDS])


class PaneTable(RecordTable):
    """See StateTable. A key's state is its panes; saved, each record says where they begin, and how many they are."""

    def __init__(
        self,
        node: Stateful,
        key: tuple[Kind, np.dtype[Any], tuple[Field, ...] | None],
        panes: PanePool,
        shown: Callable[[Array], list[Any]],
    ) -> None:
        """`key`: its kind and type, and its fields where it is a tuple.

        `shown`: the accumulators of a pane, from its words, as JSON can hold them.
        """
        super().__init__(node, key[1], key[0], key[2], first=np.array([(NEVER, -1, -1)], _KEY))
        self.panes = panes
        self._shown = shown

    @property
    def words(self) -> Array:
        """The records of keys as words: see `pane_pool`."""
        words: Array = self.states.view(np.int64).reshape(-1, len(_WORDS))
        return words

    def slots(self, batch: Batch) -> Array:
        """The slot of each row's key, whose panes may change from now on; `note` has to follow. New keys have none."""
        slots = self._table.slots(self._column_of(batch))
        self._make_room()
        if self._changed is not None:
            self._changed[slots] = True
        return slots

    def note(self, slots: Array) -> None:
        """These are due sooner than before."""
        if self._timers is not None:
            self._timers.note(slots, self.states)

    def take_slots_due(self, watermark_ns: int) -> tuple[Array, Array]:
        """The slots of keys that are due by that watermark, and when. They are NEVER now; `close` has to follow."""
        assert self._timers is not None  # noqa: S101 - windows have one
        slots, at_ns, _ = self._timers.take(0, watermark_ns, self.states)
        if self._changed is not None:
            self._changed[slots] = True
        return slots, at_ns

    def keys_at(self, slots: Array) -> Array:
        """The keys of these slots, as the column of `fired`."""
        return self._keys_at(slots).astype(self.fired.fields[0].dtype)

    def keys_of(self, batch: Batch) -> Array:
        """The keys of a batch, in the same form."""
        return self._column_of(batch).astype(self.fired.fields[0].dtype)

    def rows_of(self, keys: Array, dues: Array) -> Batch:
        """Rows of `fired`, of keys in that form."""
        rows = rows_of_column(self.fired, keys, dues)
        if self._parts is None:
            return rows
        values: list[Any] = list(unpacked(self._parts, keys))
        known = FrameKeys(rows.keys.entry, rows.columns, _values=values, are_fired=True)
        return Batch(rows.columns, known, times=rows.times)

    def close(self, slots: Array) -> None:
        """Those that `take_slots_due` gave have fired: the keys without panes are gone, the others due again."""
        is_over = self.words[slots, OLDEST] < 0
        over = slots[is_over]
        self._deleted += len(over)
        self._end(over)
        self.note(slots[~is_over])

    def _drop(self, slots: Array) -> None:
        self.panes.give_back(self.panes.of_keys(self.words[slots])[0])
        super()._drop(slots)

    def _saved(self, slots: Array | slice) -> SavedStates:
        states = self.states[slots].copy()
        panes, counts = self.panes.of_keys(states.view(np.int64).reshape(-1, len(_WORDS)))
        states["oldest"], states["newest"] = np.cumsum(counts) - counts, counts
        words = self.panes.words[panes][:, [NUMBER, *self._accumulated]]
        return SavedStates(bytes_of(self._table.keys[slots], states, words))

    @property
    def _accumulated(self) -> range:
        return range(MESSAGES, VALUES + self.panes.values)

    def _read_beside(self, file: io.BytesIO) -> Any:
        return read_array(file, dimensions=2)

    def _take_over(self, slots: Array, states: Array, beside: Any) -> None:
        starts, counts = states["oldest"], states["newest"]
        width = 1 + len(self._accumulated)
        if beside.dtype != np.int64 or beside.shape[1:] != (width,) or (counts < 1).any():
            raise SnapshotError(
                f"state of {self.name!r}: panes of {beside.shape[1:]} words of {beside.dtype}, expected {width} of"
                " int64, and one or more a key"
            )
        # None is more than all: so their sum is what it seems.
        if (
            (counts > len(beside)).any()
            or len(beside) != counts.sum()
            or not np.array_equal(starts, np.cumsum(counts) - counts)
        ):
            raise SnapshotError(f"state of {self.name!r}: {len(beside)} panes, but not those of its keys")
        # An increment holds all panes of its keys.
        self.panes.give_back(self.panes.of_keys(self.words[slots])[0])
        panes = self.panes.take(len(beside))
        words = self.panes.words
        words[panes, NUMBER] = beside[:, 0]
        words[panes[:, None], self._accumulated] = beside[:, 1:]
        words[panes, OLDER], words[panes, NEWER] = np.roll(panes, 1), np.roll(panes, -1)
        oldest, newest = panes[starts], panes[starts + counts - 1]
        words[oldest, OLDER] = words[newest, NEWER] = -1
        self.states[slots] = states
        self.states["oldest"][slots], self.states["newest"][slots] = oldest, newest

    def _jsonable(self, slot: int) -> Any:
        keys = self.words[slot : slot + 1]
        panes = self.panes.words[self.panes.of_keys(keys)[0]]
        accumulators = {int(pane[NUMBER]): self._shown(pane[MESSAGES:]) for pane in panes}
        state = RangeState(due=int(self.states["due"][slot]), panes=accumulators)
        return without_never(to_jsonable(state), WINDOW_TIMERS)
