"""Finds the slots of an array whose times have come, without reading all those that have not.

A lower bound of the times is kept for each block of 1024 slots. Only blocks whose bound has come are searched.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bettong.application.timers import NEVER
from bettong.frames.columns import Array
from bettong.machine_code import allocating, kernel

_BLOCK_BITS = 10
_BLOCK = 1 << _BLOCK_BITS
_SHIFT = np.uint64(_BLOCK_BITS)


class BlockBounds:
    """The bounds of an array of times, kept by its owner. A slot without a time has NEVER; `due` may return others."""

    def __init__(self) -> None:
        self._bounds = np.zeros(0, np.int64)

    def grow(self, slots: int) -> None:
        """Makes room for that many slots; the new ones have no time."""
        more = -(-slots // _BLOCK) - len(self._bounds)
        if more > 0:
            self._bounds = np.concatenate([self._bounds, np.full(more, NEVER)])

    def rebuild(self, times_ns: Array) -> None:
        """Finds all bounds anew."""
        self._bounds = np.zeros(0, np.int64)
        self.grow(len(times_ns))
        _find_bounds(times_ns, self._bounds)

    def lower(self, times_ns: Array, slots: Array) -> None:
        """Lowers bounds: the times of these slots may have changed."""
        _lower_bounds(times_ns, self._bounds, slots)

    def rebuild_blocks(self, times_ns: Array, slots: Array) -> None:
        """Finds the bounds anew for the blocks of these slots, given in order, whose times may be later now."""
        _find_again(times_ns, self._bounds, slots)

    @property
    def first_ns(self) -> int:
        """The earliest time, or some time before; NEVER without one."""
        return int(self._bounds.min(initial=NEVER))

    def due(self, times_ns: Array, until_ns: int) -> Array:
        """The slots whose time is not later than `until_ns`. They are not found again until `lower` names them."""
        found: Array = _due(times_ns, self._bounds, until_ns)
        return found


@kernel
def _find_bounds(times: Any, bounds: Any) -> None:
    for slot in range(np.uint64(len(times))):
        bounds[slot >> _SHIFT] = min(bounds[slot >> _SHIFT], times[slot])


@kernel
def _lower_bounds(times: Any, bounds: Any, slots: Any) -> None:
    for row in range(len(slots)):
        slot = np.uint64(slots[row])
        bounds[slot >> _SHIFT] = min(bounds[slot >> _SHIFT], times[slot])


@kernel
def _find_again(times: Any, bounds: Any, slots: Any) -> None:
    last = -1
    for row in range(len(slots)):
        block = slots[row] >> _BLOCK_BITS
        if block == last:
            continue
        last, least = block, NEVER
        for slot in range(block << _BLOCK_BITS, min((block + 1) << _BLOCK_BITS, len(times))):
            least = min(least, times[slot])
        bounds[block] = least


@allocating
def _due(times: Any, bounds: Any, until_ns: Any) -> Any:
    """Also brings the bounds of the blocks that were read to the earliest of the other times."""
    found, count = np.empty(16, np.int32), 0
    for block in range(len(bounds)):
        if bounds[block] > until_ns:
            continue
        least = NEVER
        for slot in range(block << _BLOCK_BITS, min((block + 1) << _BLOCK_BITS, len(times))):
            if times[slot] > until_ns:
                least = min(least, times[slot])
                continue
            if count == len(found):
                found = np.concatenate((found, np.empty_like(found)))
            found[count] = slot
            count += 1
        bounds[block] = least
    return found[:count].copy()
