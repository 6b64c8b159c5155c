"""How the processor comes along: the messages that it takes in a second, and whether its lag grows. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from bettong.chaos.growth import Sample, growth
from bettong.chaos.log_position import LogPosition
from bettong.lab.series import LAG, TAKEN, SeriesPoint
from bettong.lab.statistics.growing import BOUNDS
from bettong.services import PROCESSOR

# A lag of less is none, in seconds' worth of messages: batches come and go, and it is sampled at any time between.
LAG_S_LEAST = 1.0
# The lag at the end is the median of so many stretches.
_LAST = 3


@dataclass(frozen=True, slots=True)
class LagTrend:
    """Of a rate that was held: by so many messages a second the lag grew, from `low` to `high` with 95 % confidence.

    `share`: the least by which it grew in all, as a part of its median. `end_s`: the messages that wait at the end, as
    seconds of the rate.
    """

    per_s: float
    low: float
    high: float
    share: float
    end_s: float

    @property
    def fault(self) -> str:
        """Why the rate is not sustained; "" where the lag does not grow, or is next to nothing."""
        if self.share <= BOUNDS[LAG] or self.end_s <= LAG_S_LEAST:
            return ""
        return (
            f"the lag grows by {self.per_s:,.0f} messages/s ({self.low:,.0f} to {self.high:,.0f}),"
            f" to {self.end_s:.1f} s of messages"
        )


def lag_trend(
    positions: Sequence[LogPosition], from_s: float, until_s: float, rate: float
) -> LagTrend | None:
    """Of the positions in that time; None where they are too few to say.

    The log counts records, which hold many messages each: how many, is known from `rate`, the messages a second that
    were sent meanwhile.
    """
    held = [each for each in positions if from_s <= each.at_s < until_s]
    written = held[-1].written - held[0].written if held else 0.0
    if not written:
        return None
    a_record = rate * (held[-1].at_s - held[0].at_s) / written
    least = LAG_S_LEAST * rate
    samples = [Sample(each.at_s - from_s, each.lag * a_record) for each in held]
    trend = growth(samples, until_s - from_s, least=least, warm_up=0.0)
    if trend is None:
        return None
    per_share = max(trend.median, least) / (until_s - from_s)
    return LagTrend(
        trend.share * per_share,
        trend.low * per_share,
        trend.high * per_share,
        trend.low,
        median(trend.points[-_LAST:]) / rate,
    )


def taken(positions: Sequence[LogPosition]) -> Iterator[SeriesPoint]:
    """Messages a second that all stages took in, each since the position before."""
    for before, now in pairwise(positions):
        rate = (now.folded - before.folded) / (now.at_s - before.at_s)
        yield SeriesPoint(now.at_s, f"{PROCESSOR.name}: {TAKEN}", rate)
