"""Whether memory, latency or lag of a run grow, or its throughput falls: slopes, with 95 % intervals. Pure."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bettong.chaos.following import JAVA, LAG_RECORDS_LEAST, LATENCY_S_LEAST, MEMORY_MB_LEAST
from bettong.chaos.growth import JAVA_WARM_UP, WARM_UP, Growth, Sample, growth
from bettong.lab.series import LAG, LATENCY, MEMORY, TAKEN, SeriesPoint

# How much each may grow over a run, as a share of its median; below 0: how much it may fall. The end of the slope's
# interval that is worse counts.
BOUNDS = {MEMORY: 0.1, LATENCY: 0.25, LAG: 0.25, TAKEN: -0.1}
# The smallest median that growth is a share of, so that noise around almost nothing is no growth.
_LEAST = {MEMORY: MEMORY_MB_LEAST, LATENCY: LATENCY_S_LEAST * 1e3, LAG: LAG_RECORDS_LEAST, TAKEN: 1.0}
# The value of a stretch of time. Throughput comes in batches: their mean counts.
_VALUES_OF: Mapping[str, Callable[[list[float]], float]] = {
    MEMORY: min,
    LATENCY: statistics.median,
    LAG: statistics.median,
    TAKEN: statistics.fmean,
}


@dataclass(frozen=True, slots=True)
class SeriesGrowth:
    """`growth`: None if the run was too short to say. `bound`: a share of the median, as in BOUNDS."""

    metric: str
    growth: Growth | None
    bound: float

    @property
    def fault(self) -> str:
        """Why the series fails its bound; "" if it does not, or the run was too short to say."""
        moves = "falls" if self.bound < 0 else "grows"
        if self.growth is None:
            return ""
        if self.growth.low >= self.bound if self.bound < 0 else self.growth.high <= self.bound:
            return ""
        return (
            f"{self.metric} {moves} by {self.growth.share:+.0%} of {self.growth.median:,.4g}"
            f" ({self.growth.low:+.0%} to {self.growth.high:+.0%}); at most {self.bound:+.0%} is allowed"
        )


def grown(
    series: Sequence[SeriesPoint], lasting_s: float, bounds: Mapping[str, float] = BOUNDS
) -> list[SeriesGrowth]:
    """The growth of each series that has a bound, in a run of `lasting_s`."""
    samples: dict[str, list[Sample]] = defaultdict(list)
    for point in series:
        if point.metric.rpartition(": ")[2] in bounds:
            samples[point.metric].append(Sample(point.at_s, point.value))
    found = []
    for metric, values in sorted(samples.items()):
        who, _, what = metric.rpartition(": ")
        trend = growth(
            values,
            lasting_s,
            least=_LEAST[what],
            warm_up=JAVA_WARM_UP if what == MEMORY and who in JAVA else WARM_UP,
            value_of=_VALUES_OF[what],
        )
        found.append(SeriesGrowth(metric, trend, bounds[what]))
    return found


def faults_of(found: Sequence[SeriesGrowth]) -> list[str]:
    """A line for each series that fails its bound, and one for all of which the run was too short to say."""
    short = [each.metric for each in found if each.growth is None]
    faults = [each.fault for each in found if each.fault]
    if short:
        faults.append(
            f"too short to say whether these grow or fall, give it more --hours: {', '.join(short)}"
        )
    return faults
