"""States that are words of 64 bits, one of them the time at which the key is due: for folds over columns."""

from typing import Any

import numpy as np

from bettong.frames.columns import Array
from bettong.worker.batch import Batch
from bettong.worker.state.records import RecordTable


class DueTable(RecordTable):
    """See StateTable. What a record refers to is kept beside the records."""

    @property
    def words(self) -> Array:
        """The records of keys as words, a row each."""
        words: Array = self.states.view(np.int64).reshape(len(self.states), -1)
        return words

    def slots(self, batch: Batch) -> Array:
        """The slot of each row's key, whose state may change from now on; call `note` then. New keys get a slot."""
        slots = self._table.slots(self._column_of(batch))
        self._make_room()
        if self._changed is not None:
            self._changed[slots] = True
        return slots

    def note(self, slots: Array) -> None:
        """The keys at these slots are due sooner than before."""
        if self._timers is not None:
            self._timers.note(slots, self.states)

    def take_slots_due(self, clock_ns: int) -> tuple[Array, Array]:
        """The slots of keys that are due by then, and when. Their time is NEVER from now on; call `close` then.

        `clock_ns`: of the clock by which the table's only timer goes.
        """
        slots, at_ns, _ = self._take_due(clock_ns, clock_ns)
        return slots, at_ns

    def _take_due(self, log_ns: int, watermark_ns: int) -> tuple[Array, Array, Array]:
        """See SlotTimers.take_due."""
        assert self._timers is not None  # noqa: S101 - nothing is due without one
        due = self._timers.take_due(log_ns, watermark_ns, self.states)
        if self._changed is not None:
            self._changed[due[0]] = True
        return due

    def close(self, slots: Array) -> None:
        """The slots that were due have fired: removes keys that keep nothing, and notes when the others are due."""
        is_over = self._is_over(slots)
        over = slots[is_over]
        self._deleted += len(over)
        self._end(over)
        self.note(slots[~is_over])

    def forget_empty(self, slots: Array) -> None:
        """Removes the keys of those slots, which rows have just got, that keep nothing."""
        self._drop(np.unique(slots[self._is_over(slots)]))

    def _is_over(self, slots: Array) -> Any:
        """By slot, whether its key keeps nothing."""
        raise NotImplementedError
