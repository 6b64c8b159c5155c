"""A processor's position in its log. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bettong.chaos.growth import Sample


@dataclass(frozen=True, slots=True)
class LogPosition:
    """The processor's position at a time, over all partitions of all stages.

    `lag`: records of the log that are not yet folded; `written`: all records of the log; `folded`: messages so far.
    """

    at_s: float
    lag: float
    written: float
    folded: float


def lags(positions: Iterable[LogPosition]) -> list[Sample]:
    """Records not yet folded, at each time."""
    return [Sample(each.at_s, each.lag) for each in positions]
