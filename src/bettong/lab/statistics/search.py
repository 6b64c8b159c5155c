"""The search for the highest sustained rate: the rate to try next, from the rates tried so far. Pure.

doubles until a rate is missed, or halves until one is sustained; then bisects between the two (by their logarithms)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# Enough to get from 1 message a second to a hundred million, and then within 1 %.
PROBES_MAX = 40


@dataclass(frozen=True, slots=True)
class Probe:
    """A rate that was tried, in messages a second. `why`: why it was missed; "" if it was sustained.

    `lag_per_s`: how fast the lag grew meanwhile, in messages a second; None if unknown.
    """

    rate: float
    why: str = ""
    lag_per_s: float | None = None


def next_rate(probes: Sequence[Probe], first: float, precision: float) -> float | None:
    """The rate to try next; None when the highest is known within `precision` (0.1 is 10 %), or cannot be found."""
    if not probes:
        return first
    if len(probes) >= PROBES_MAX:
        return None
    met, missed = sustained(probes), _lowest_missed(probes)
    if met is None:
        return missed / 2 if missed is not None and missed > 1 else None
    if missed is None:
        return 2 * met
    return (met * missed) ** 0.5 if missed > met * (1 + precision) else None


def sustained(probes: Sequence[Probe]) -> float | None:
    """The highest sustained rate below all that were missed; None if there is none."""
    missed = _lowest_missed(probes)
    return max(
        (each.rate for each in probes if not each.why and (missed is None or each.rate < missed)),
        default=None,
    )


def _lowest_missed(probes: Sequence[Probe]) -> float | None:
    return min((each.rate for each in probes if each.why), default=None)
