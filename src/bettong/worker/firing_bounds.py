"""Counts, bounds and orders how often the timers of one key fire at one record.

A function may set its timer to a time that has passed: it fires again. If each time is later than those before, that
ends by itself, for the clock bounds them: the bound is large. If time stands still it never ends: the bound is small.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bettong.frames.columns import Array
from bettong.worker.fired import order_of_key

# Firings of a key in a row, none for a later time than those before: without a bound they never end.
STUCK_MAX = 1000
# Firings of a key. A timer each second catches up with a pause of eleven days, which takes its partition one to three
# minutes. One each nanosecond would fire 3.6e12 times when the clock jumps by an hour: that would take years.
FIRINGS_MAX = 1_000_000


@dataclass(slots=True)
class _KeyFirings:
    """The firings of one key at the record. `stuck`: how many in a row were not for a later time.

    `reached_ns`: the latest time, by timer: some go by the log clock and others by event time, which may be far behind.
    """

    number: int
    latest_ns: int
    count: int = 1
    stuck: int = 0
    reached_ns: dict[str, int] = field(default_factory=dict)


class FiringBounds:
    """The bounds for one call of `Operator.on_time`. Keys are independent, so each has its own."""

    def __init__(self) -> None:
        self._keys: dict[Any, _KeyFirings] = {}
        # By firing: the latest time that its key has had so far, and the key's number.
        self._latest_ns = array("q")
        self._numbers = array("q")

    def take(self, timer: str, keys: Sequence[Any], times_ns: Sequence[int]) -> dict[int, str]:
        """Counts timers of one field that fire next, at most one a key. Returns why some must not fire, by row."""
        refused = {}
        for row, (key, at_ns) in enumerate(zip(keys, times_ns, strict=True)):
            found = self._keys.get(key)
            if found is None:
                found = self._keys[key] = _KeyFirings(len(self._keys), at_ns)
            else:
                found.count += 1
                found.stuck = 0 if at_ns > found.reached_ns.get(timer, at_ns - 1) else found.stuck + 1
                found.latest_ns = max(found.latest_ns, at_ns)
                if found.stuck >= STUCK_MAX:
                    refused[row] = _stuck_reason()
                elif found.count > FIRINGS_MAX:
                    refused[row] = _many_reason()
            found.reached_ns[timer] = max(found.reached_ns.get(timer, at_ns), at_ns)
            self._latest_ns.append(found.latest_ns)
            self._numbers.append(found.number)
        return refused

    def order(self) -> Array:
        """The order of the firings by (due time, key): the numbers under which they were counted."""
        by_key = sorted(self._keys, key=order_of_key)
        ranks = np.empty(len(by_key), np.int64)
        ranks[[self._keys[key].number for key in by_key]] = np.arange(len(by_key))
        return np.lexsort((ranks[np.array(self._numbers)], np.array(self._latest_ns)))


def too_many(keys: Array) -> dict[int, str]:
    """Which firings must not happen, as `take` returns them. `keys`: by firing, in order, no key twice at one time."""
    if len(keys) <= FIRINGS_MAX:
        return {}
    order = np.argsort(keys, kind="stable")
    by_key = keys[order]
    refused = order[FIRINGS_MAX:][by_key[FIRINGS_MAX:] == by_key[:-FIRINGS_MAX]]
    return dict.fromkeys(refused.tolist(), _many_reason())


def _stuck_reason() -> str:
    return (
        f"its key's timers were set {STUCK_MAX:,} times in a row at one record to a time that had fired already. It"
        " does not fire again, and is bettong.NEVER now: set it to a later time than fired.at"
    )


def _many_reason() -> str:
    return (
        f"its key's timers fired {FIRINGS_MAX:,} times at one record, for their steps are small beside the advance of"
        " the clock. It does not fire again, and is bettong.NEVER now: set it further ahead, or count all steps that"
        " have passed in one call"
    )
