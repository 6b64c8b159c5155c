"""Which states have outlived their time to live by event time: as in `lifetimes`, but in no order.

Messages come in any order of event time, so the key of the newest one need not live longest. A lower bound of times
is kept for many keys at once: they are checked only when it has passed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import numpy as np

from bettong.application.timers import NEVER
from bettong.frames.columns import Array
from bettong.user_errors import ANY_ERROR
from bettong.worker.batch import Batch, NoKey
from bettong.worker.lazy_heap import LazyHeap
from bettong.worker.state.block_bounds import BlockBounds
from bettong.worker.state.lifetimes import NO_KEY_NS, KeyLifetimes, SlotLifetimes


class EventKeyLifetimes(KeyLifetimes):
    """See KeyLifetimes."""

    by_event = True

    def __init__(self, ttl_ns: int) -> None:
        super().__init__(ttl_ns)
        self._oldest = LazyHeap(self._last_of)
        # What `_newest_behind` returns for the open batch, once a state was deleted in it.
        self._behind: list[int | None] | None = None

    def open(self, batch: Batch, *, renews: bool) -> None:
        """See KeyLifetimes."""
        self._behind = None
        if not renews:
            return
        messages = list(zip(batch.key_values(), batch.event_times().tolist(), strict=True))
        try:
            self._renew(messages)
        except ANY_ERROR:  # a NoKey raises what the user's function raised
            self._renew(each for each in messages if not isinstance(each[0], NoKey))

    def _renew(self, messages: Iterable[tuple[Any, int]]) -> None:
        """Renews keys by the times of their messages. Raises what a key without a hash raises, and renews none."""
        newest: dict[Any, int] = {}
        for key, at_ns in messages:
            if at_ns >= newest.get(key, 0):
                newest[key] = at_ns
        for key, at_ns in newest.items():
            known = self._last_ns.get(key)
            if known is None:
                self._add(key, at_ns)
            elif known < at_ns:
                self._last_ns[key] = at_ns

    def restart(self, key: Any, batch: Batch, row: int) -> None:
        """See KeyLifetimes."""
        if self._behind is None:
            self._behind = _newest_behind(batch)
        if (newest_ns := self._behind[row]) is not None:
            self._add(key, newest_ns)

    def expired(self, watermark_ns: int) -> list[Any]:
        """See KeyLifetimes."""
        until_ns, found = watermark_ns - self._ttl_ns, []
        while (oldest := self._oldest.first(until_ns)) is not None:
            self._oldest.drop_first()
            found.append(oldest[1])
            del self._last_ns[oldest[1]]
        return found

    @property
    def due_ns(self) -> int | None:
        """See KeyLifetimes."""
        bound_ns = self._oldest.bound_ns
        return bound_ns + self._ttl_ns if bound_ns != NEVER else None

    def load(self, keys: Collection[Any], last_ns: Array) -> None:
        """See KeyLifetimes."""
        for key, at_ns in zip(keys, last_ns.tolist(), strict=True):
            self._add(key, at_ns)

    def _add(self, key: Any, at_ns: int) -> None:
        self._last_ns[key] = at_ns
        self._oldest.push(key, at_ns)
        self._oldest.compact(len(self._last_ns))

    def _last_of(self, key: Any) -> int:
        return self._last_ns.get(key, NEVER)


def _newest_behind(batch: Batch) -> list[int | None]:
    """By row, the newest event time of its key's rows after it; None where there are none."""
    found: list[int | None] = []
    newest: dict[Any, int] = {}
    for key, at_ns in zip(reversed(batch.key_values()), reversed(batch.event_times().tolist()), strict=True):
        if isinstance(key, NoKey):
            found.append(None)
            continue
        found.append(newest.get(key))
        newest[key] = max(at_ns, newest.get(key, at_ns))
    return found[::-1]


class EventSlotLifetimes(SlotLifetimes):
    """See SlotLifetimes."""

    by_event = True

    def __init__(self, ttl_ns: int) -> None:
        super().__init__(ttl_ns)
        self._bounds = BlockBounds()

    def grow(self, slots: int) -> None:
        """See SlotLifetimes."""
        super().grow(slots)
        self._bounds.grow(slots)

    def renew(self, slots: Array, batch: Batch) -> None:
        """See SlotLifetimes."""
        self._renew(slots, batch.event_times())

    def _renew(self, slots: Array, times_ns: Array) -> None:
        np.maximum.at(self._last_ns, slots, times_ns)
        self._bounds.lower(self._last_ns, slots)

    def restart(self, slots: Array, batch: Batch, rows: Array) -> None:
        """See SlotLifetimes."""
        ends = np.full(len(self._last_ns), len(slots))
        ends[slots[rows]] = rows
        behind = np.flatnonzero(ends[slots] < np.arange(len(slots)))
        if len(behind):
            self.forget(slots[behind])
            self._renew(slots[behind], batch.event_times()[behind])

    def expired(self, watermark_ns: int) -> Array:
        """See SlotLifetimes."""
        over = self._bounds.due(self._last_ns, max(watermark_ns - self._ttl_ns, NO_KEY_NS))
        found: Array = over[self._last_ns[over] != NO_KEY_NS]
        return found

    @property
    def due_ns(self) -> int | None:
        """See SlotLifetimes."""
        first_ns = self._bounds.first_ns
        return first_ns + self._ttl_ns if first_ns != NEVER else None

    def load(self, slots: Array, last_ns: Array) -> None:
        """See SlotLifetimes."""
        self._last_ns[slots] = last_ns
        self._bounds.lower(self._last_ns, slots)
