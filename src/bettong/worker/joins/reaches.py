"""How far from a message of `join_within` its partners may be, and how long it is kept for them: see `within`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bettong.application.joins.kinds import How, Within, alone_sides
from bettong.application.timers import NEVER
from bettong.frames.columns import Array


class Reach(NamedTuple):
    """The reach of a side: how much later than a message its partners are, least and most; how long it is kept.

    `emits_alone`: whether a message without a partner is a result.
    """

    first_ns: int
    last_ns: int
    kept_ns: int
    emits_alone: bool


class Reaches(NamedTuple):
    """The reaches of both sides. `latest_ns`: the bounds of later messages lie beyond 64 bits."""

    left: Reach
    right: Reach
    latest_ns: int

    def of_side(self, *, is_right: bool) -> Reach:
        """The reach of one side."""
        return self.right if is_right else self.left

    def soonest_due(self, times: Array) -> Array:
        """See Operator. NEVER for an inner join: when it drops a message makes no result."""
        found = np.full(len(times), NEVER, np.int64)
        known = np.minimum(times, self.latest_ns)
        for each in (self.left, self.right):
            if each.emits_alone:
                np.minimum(found, known + each.kept_ns + 1, out=found)
        return found


def reaches(kind: Within, how: How) -> Reaches:
    """The reaches of a join."""
    left, right = (
        Reach(first_ns, last_ns, max(0, last_ns) if emits_alone else last_ns, emits_alone)
        for (first_ns, last_ns), emits_alone in (
            (kind.reach_ns(is_right=is_right), alone_sides(how)[is_right]) for is_right in (False, True)
        )
    )
    return Reaches(left, right, NEVER - 2 - max(abs(kind.lower_ns), abs(kind.upper_ns)))
