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
from bettong.schema.fields import Field, Kind
from bettong.worker.batch import Batch
from bettong.worker.jsonable import to_jsonable
from bettong.worker.state.due_table import DueTable
from bettong.worker.state.objects import WINDOW_TIMERS
from bettong.worker.state.pane_items import are_items, arrays_of
from bettong.worker.state.pane_pool import MESSAGES, NEWER, NUMBER, OLDER, OLDEST, VALUES, PanePool
from bettong.worker.state.stored_arrays import bytes_of, read_array
from bettong.worker.state.table import SavedStates
from bettong.worker.state.timers import without_never

_WORDS = ("due", "oldest", "newest")
_KEY = np.dtype([(word, "<i8") for word in _WORDS])


class PaneTable(DueTable):
    """See StateTable; `words`: see `pane_pool`. A key's state is its panes.

    Saved, each record says where they begin, and how many they are.
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
        super().__init__(node, key[1], key[0], key[2], first=np.array([(NEVER, -1, -1)], _KEY))
        self.panes = panes
        self._shown = shown

    def keys_of(self, batch: Batch) -> Array:
        """The keys of a batch, as `keys_at` gives those of slots."""
        return self._column_of(batch).astype(self.fired.fields[0].dtype)

    def _is_over(self, slots: Array) -> Any:
        return self.words[slots, OLDEST] < 0

    def _drop(self, slots: Array) -> None:
        self.panes.give_back(self.panes.of_keys(self.words[slots])[0])
        super()._drop(slots)

    def _saved(self, slots: Array | slice) -> SavedStates:
        states = self.states[slots].copy()
        panes, counts = self.panes.of_keys(states.view(np.int64).reshape(-1, len(_WORDS)))
        states["oldest"], states["newest"] = np.cumsum(counts) - counts, counts
        words = self.panes.words[panes][:, [NUMBER, *self._accumulated]]
        return SavedStates(bytes_of(self._table.keys[slots], states, words, *self.panes.items_of(panes)))

    @property
    def _accumulated(self) -> range:
        return range(MESSAGES, VALUES + self.panes.own_words)

    def _read_beside(self, file: io.BytesIO) -> Any:
        panes = read_array(file, dimensions=2)
        return panes, [read_array(file, dimensions=2) for _ in range(arrays_of(self.panes.kinds))]

    def _take_over(self, slots: Array, states: Array, beside: Any) -> None:
        beside, items = beside
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
        if not self.panes.are_counted(beside[:, VALUES - MESSAGES + 1 :]):
            raise SnapshotError(f"state of {self.name!r}: more values of an aggregate than it keeps")
        if not are_items(self.panes.kinds, items, len(beside)):
            raise SnapshotError(f"state of {self.name!r}: items of no aggregate that it has")
        # An increment holds all panes of its keys.
        self.panes.give_back(self.panes.of_keys(self.words[slots])[0])
        panes = self.panes.take(len(beside))
        words = self.panes.words
        words[panes, NUMBER] = beside[:, 0]
        words[panes[:, None], self._accumulated] = beside[:, 1:]
        words[panes, OLDER], words[panes, NEWER] = np.roll(panes, 1), np.roll(panes, -1)
        if items:
            self.panes.put_items(panes, items)
        oldest, newest = panes[starts], panes[starts + counts - 1]
        words[oldest, OLDER] = words[newest, NEWER] = -1
        self.states[slots] = states
        self.states["oldest"][slots], self.states["newest"][slots] = oldest, newest

    def _jsonable(self, slot: int) -> Any:
        keys = self.words[slot : slot + 1]
        panes = self.panes.words[self.panes.of_keys(keys)[0]]
        accumulators = {
            int(pane[NUMBER]): self._shown(pane[MESSAGES:], self.panes.items.words) for pane in panes
        }
        state = RangeState(due=int(self.states["due"][slot]), panes=accumulators)
        return without_never(to_jsonable(state), WINDOW_TIMERS)
