"""The processor's progress: how many messages it takes in each second, and whether its lag grows. Pure."""

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

# A smaller lag does not count, in seconds of messages: batches come and go, and samples fall anywhere between them.
LAG_S_LEAST = 1.0
# The lag at the end is the median of so many stretches.
_LAST = 3


@dataclass(frozen=True, slots=True)
class LagTrend:
    """The trend of the lag at a constant rate: its slope, messages a second, is `low` to `high` with 95 % confidence.

    `share`: the lower end of its growth in all, as a share of its median. `end_s`: the lag at the end, in seconds of
    messages at that rate.
    """

    per_s: float
    low: float
    high: float
    share: float
    end_s: float

    @property
    def fault(self) -> str:
        """Why the rate is not sustained; "" if the lag does not grow, or is next to nothing."""
        if self.share <= BOUNDS[LAG] or self.end_s <= LAG_S_LEAST:
            return ""
        return (
            f"the lag grows by {self.per_s:,.0f} messages/s ({self.low:,.0f} to {self.high:,.0f}),"
            f" to {self.end_s:.1f} s of messages"
        )


def lag_trend(
    positions: Sequence[LogPosition], from_s: float, until_s: float, rate: float
) -> LagTrend | None:
    """The trend of the lag between two times; None if there are too few positions.

    The log counts records, which hold many messages each; how many follows from `rate`, the messages that were sent a
    second meanwhile.
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


def throughput_points(positions: Sequence[LogPosition]) -> Iterator[SeriesPoint]:
    """Messages a second that all stages took in, each point since the position before."""
    for before, now in pairwise(positions):
        rate = (now.folded - before.folded) / (now.at_s - before.at_s)
        yield SeriesPoint(now.at_s, f"{PROCESSOR.name}: {TAKEN}", rate)
