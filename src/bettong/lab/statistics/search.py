"""The highest rate that a system sustains: which one to try next, by what was tried. Pure.

doubles while the objective is met, halves while it is missed, then divides what lies between (by its logarithm)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# Enough to come from 1 message a second to a hundred million, and then to 1 %.
PROBES_MAX = 40


@dataclass(frozen=True, slots=True)
class Probe:
    """A rate that was tried, in messages a second. `why`: what was missed; "" where the objective was met.

    `lag_per_s`: by so many messages a second the lag grew meanwhile; None where nobody knows.
    """

    rate: float
    why: str = ""
    lag_per_s: float | None = None


def next_rate(probes: Sequence[Probe], first: float, precision: float) -> float | None:
    """What to try next; None when it is known within `precision` (0.1 is 10 %), or nothing more is to be learnt."""
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
    """The highest rate below all that missed; None when none met the objective."""
    missed = _lowest_missed(probes)
    return max(
        (each.rate for each in probes if not each.why and (missed is None or each.rate < missed)),
        default=None,
    )


def _lowest_missed(probes: Sequence[Probe]) -> float | None:
    return min((each.rate for each in probes if each.why), default=None)
