"""How long recovery from each fault took. Pure.

Recovery counts from the end of a fault (a kill; the end of a pause, cut, delay ...) until a result is delivered of a
message that was due after that moment. Results of older messages do not count.
"""

from __future__ import annotations

import statistics
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Arrival:
    """Results of messages due at `due_s` were delivered at `at_s`. Both on one clock."""

    at_s: float
    due_s: float


@dataclass(frozen=True, slots=True)
class FaultSpan:
    """When a fault began, and when it was over."""

    begun_s: float
    ended_s: float


@dataclass(frozen=True, slots=True)
class Recovery:
    """`seconds` is None when no newer result came. `alone`: no other fault overlapped it."""

    seconds: float | None
    alone: bool


def newest_first_seen(arrivals: Iterable[Arrival]) -> list[Arrival]:
    """The arrivals that brought a newer result than all before them. Ascending in both fields."""
    found: list[Arrival] = []
    for arrival in sorted(arrivals, key=lambda each: each.at_s):
        if not found or arrival.due_s > found[-1].due_s:
            found.append(arrival)
    return found


def recoveries(faults: Sequence[FaultSpan], arrivals: Sequence[Arrival]) -> list[Recovery]:
    """The recovery of each fault, in the order of `faults`. `arrivals` as `newest_first_seen` returns them."""
    dues = [arrival.due_s for arrival in arrivals]
    found = []
    for fault in faults:
        index = bisect_right(dues, fault.ended_s)
        recovered_s = arrivals[index].at_s if index < len(arrivals) else None
        until_s = recovered_s if recovered_s is not None else float("inf")
        # An earlier fault that was not recovered from when this one began overlaps it, too.
        others = [other for other in faults if other is not fault]
        alone = not any(
            other.begun_s <= until_s and _recovered_s(other, arrivals, dues) >= fault.begun_s
            for other in others
        )
        seconds = recovered_s - fault.ended_s if recovered_s is not None else None
        found.append(Recovery(seconds, alone))
    return found


def _recovered_s(fault: FaultSpan, arrivals: Sequence[Arrival], dues: Sequence[float]) -> float:
    index = bisect_right(dues, fault.ended_s)
    return arrivals[index].at_s if index < len(arrivals) else float("inf")


def median_and_max(seconds: Sequence[float]) -> tuple[float, float] | None:
    """Median and maximum; None without values."""
    return (statistics.median(seconds), max(seconds)) if seconds else None
