"""How often the timers of one key fire at one record: counted, bounded, and put in order.

A function may set its timer again, for a time that has come: it fires once more. That ends by itself where each time
is later than those before, for the clock bounds them. So what stands still has a small bound, what gets on a large one.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bettong.frames.columns import Array
from bettong.worker.fired import order_of_key

# Firings of a key in a row, none of them for a later time than those before: without a bound there is no end to them.
STUCK_MAX = 1000
# Firings of a key. What rings each second catches up with a pause of eleven days, while its partition waits for one to
# three minutes. A clock that jumps by an hour has 3.6e12 times for what goes on by a nanosecond: that would take years.
FIRINGS_MAX = 1_000_000


@dataclass(slots=True)
class _KeyFirings:
    """Of one key at the record. `stuck`: how many in a row were not for a later time.

    `reached_ns`: by timer, for some go by the log clock and others by event time, which may be far behind.
    """

    number: int
    latest_ns: int
    count: int = 1
    stuck: int = 0
    reached_ns: dict[str, int] = field(default_factory=dict)


class FiringBounds:
    """Of one call of `Operator.on_time`. Keys have nothing to do with one another, so each has bounds of its own."""

    def __init__(self) -> None:
        self._keys: dict[Any, _KeyFirings] = {}
        # By firing: the latest time that its key has had so far, and the key's number.
        self._latest_ns = array("q")
        self._numbers = array("q")

    def take(self, timer: str, keys: Sequence[Any], times_ns: Sequence[int]) -> dict[int, str]:
        """These timers of one field fire next, each of another key. Returns those that must not: by row, the reason."""
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
                    refused[row] = _stuck()
                elif found.count > FIRINGS_MAX:
                    refused[row] = _many()
            found.reached_ns[timer] = max(found.reached_ns.get(timer, at_ns), at_ns)
            self._latest_ns.append(found.latest_ns)
            self._numbers.append(found.number)
        return refused

    def order(self) -> Array:
        """The firings as a queue of (due time, key) gives them, each by its number as it was taken."""
        by_key = sorted(self._keys, key=order_of_key)
        ranks = np.empty(len(by_key), np.int64)
        ranks[[self._keys[key].number for key in by_key]] = np.arange(len(by_key))
        return np.lexsort((ranks[np.array(self._numbers)], np.array(self._latest_ns)))


def too_many(keys: Array) -> dict[int, str]:
    """Of firings in their order, by key, none for a time that was there before: those that must not, as in `take`."""
    if len(keys) <= FIRINGS_MAX:
        return {}
    order = np.argsort(keys, kind="stable")
    by_key = keys[order]
    refused = order[FIRINGS_MAX:][by_key[FIRINGS_MAX:] == by_key[:-FIRINGS_MAX]]
    return dict.fromkeys(refused.tolist(), _many())


def _stuck() -> str:
    return (
        f"{STUCK_MAX:,} times in a row at one record its key's timers were set to a time that had fired already. It"
        " does not fire once more, and is bettong.NEVER now: set it to a later time than fired.at"
    )


def _many() -> str:
    return (
        f"its key's timers fired {FIRINGS_MAX:,} times at one record, for their steps are small beside what the clock"
        " went on by. It does not fire once more, and is bettong.NEVER now: set it further ahead, or count in one call"
        " the steps that are over"
    )
