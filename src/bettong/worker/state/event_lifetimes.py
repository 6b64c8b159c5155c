"""Which states have outlived their time to live by event time: the same as `lifetimes`, in no order.

Messages come in any order of event time, so a key's newest one says nothing of where it stands among others. What is
kept of many keys is a time that none of them is before; it costs a look at them when that time is over.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any

import numpy as np

from bettong.application.timers import NEVER
from bettong.frames.columns import Array
from bettong.worker.batch import Batch, NoKey
from bettong.worker.state.block_bounds import BlockBounds
from bettong.worker.state.lifetimes import NO_KEY_NS, KeyClocks, SlotClocks

# Entries of a heap beyond twice its keys: so few that to make it anew would cost more than they do.
_SPARE = 64


class EventKeyLifetimes(KeyClocks):
    """Of a table whose keys are Python objects."""

    def __init__(self, ttl_ns: int) -> None:
        super().__init__(ttl_ns)
        # (time, number, key): the key's last message is not before that time. Numbers, so that keys are never compared.
        self._heap: list[tuple[int, int, Any]] = []
        self._numbers = count()

    def renew(self, messages: Iterable[tuple[Any, int]]) -> None:
        """These keys have messages of these times. Raises what a key raises that has no hash, and renews none."""
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

    def restart(self, key: Any, newest_ns: int) -> None:
        """The state of a key has ended, and messages up to that time have come since."""
        self._add(key, newest_ns)

    def expired(self, watermark_ns: int) -> list[Any]:
        """The watermark is there now: the keys whose time is over. They are forgotten."""
        until_ns, found = watermark_ns - self._ttl_ns, []
        while self._heap and self._heap[0][0] <= until_ns:
            _, number, key = heappop(self._heap)
            last_ns = self._last_ns.get(key)
            if last_ns is None:
                continue
            if last_ns <= until_ns:
                found.append(key)
                del self._last_ns[key]
            else:
                heappush(self._heap, (last_ns, number, key))
        return found

    @property
    def due_ns(self) -> int | None:
        """The watermark at which the next key's time is over, or some time before; None without a key."""
        return self._heap[0][0] + self._ttl_ns if self._heap else None

    def load(self, keys: Collection[Any], last_ns: Array) -> None:
        """Takes over what was stored for these keys."""
        for key, at_ns in zip(keys, last_ns.tolist(), strict=True):
            self._add(key, at_ns)

    def _add(self, key: Any, at_ns: int) -> None:
        self._last_ns[key] = at_ns
        heappush(self._heap, (at_ns, next(self._numbers), key))
        if len(self._heap) > 2 * len(self._last_ns) + _SPARE:
            self._heap = [(at, next(self._numbers), each) for each, at in self._last_ns.items()]
            heapify(self._heap)


def newest_behind(batch: Batch) -> list[int | None]:
    """By row, the newest event time among the rows behind it that have its key; None where there is none."""
    found: list[int | None] = []
    newest: dict[Any, int] = {}
    for key, at_ns in zip(reversed(batch.key_values()), reversed(batch.event_times().tolist()), strict=True):
        if isinstance(key, NoKey):
            found.append(None)
            continue
        found.append(newest.get(key))
        newest[key] = max(at_ns, newest.get(key, at_ns))
    return found[::-1]


class EventSlotLifetimes(SlotClocks):
    """Of a table whose keys have slots of an array."""

    def __init__(self, ttl_ns: int) -> None:
        super().__init__(ttl_ns)
        self._bounds = BlockBounds()

    def grow(self, slots: int) -> None:
        """There are so many slots now."""
        super().grow(slots)
        self._bounds.grow(slots)

    def renew(self, slots: Array, times_ns: Array) -> None:
        """The keys of these slots have messages of these times."""
        np.maximum.at(self._last_ns, slots, times_ns)
        self._bounds.lower(self._last_ns, slots)

    def restart(self, slots: Array, times_ns: Array) -> None:
        """The states at these slots have ended, and messages of these times have come since."""
        self.forget(slots)
        self.renew(slots, times_ns)

    def expired(self, watermark_ns: int) -> Array:
        """The watermark is there now: the slots of keys whose time is over."""
        over = self._bounds.due(self._last_ns, max(watermark_ns - self._ttl_ns, NO_KEY_NS))
        found: Array = over[self._last_ns[over] != NO_KEY_NS]
        return found

    @property
    def due_ns(self) -> int | None:
        """The watermark at which the next key's time is over, or some time before; None without a key."""
        first_ns = self._bounds.first_ns
        return first_ns + self._ttl_ns if first_ns != NEVER else None

    def load(self, slots: Array, last_ns: Array) -> None:
        """Takes over what was stored for the keys at these slots."""
        self._last_ns[slots] = last_ns
        self._bounds.lower(self._last_ns, slots)
