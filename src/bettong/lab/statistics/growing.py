"""Whether memory, latency or lag of a run grow, or its throughput falls: slopes, with 95 % intervals. Pure."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bettong.chaos.following import JAVA, LAG_RECORDS_LEAST, MEMORY_MB_LEAST
from bettong.chaos.growth import JAVA_WARM_UP, WARM_UP, Growth, Sample, growth
from bettong.lab.series import LAG, LATENCY, MEMORY, TAKEN, SeriesPoint

# How much each may grow over a run, as a share of its median; below 0: how much it may fall. The end of the slope's
# interval that is worse counts.
BOUNDS = {MEMORY: 0.1, LATENCY: 0.25, LAG: 0.25, TAKEN: -0.1}
# The smallest median that growth is a share of, so that noise around almost nothing is no growth.
_LATENCY_MS_LEAST = 4.0
_LEAST = {MEMORY: MEMORY_MB_LEAST, LATENCY: _LATENCY_MS_LEAST, LAG: LAG_RECORDS_LEAST, TAKEN: 1.0}
# The value of a stretch of time. Throughput comes in batches: their mean counts.
_VALUES_OF: Mapping[str, Callable[[list[float]], float]] = {
    MEMORY: min,
    LATENCY: statistics.median,
    LAG: statistics.median,
    TAKEN: statistics.fmean,
}


@dataclass(frozen=True, slots=True)
class SeriesGrowth:
    """`growth`: None if there are too few values to say. `bound`: a share of the median, as in BOUNDS."""

    metric: str
    growth: Growth | None
    bound: float

    @property
    def is_sampled(self) -> bool:
        """Whether there is a value of every second, however few results a sink has."""
        return not self.metric.endswith(f": {LATENCY}")

    @property
    def fault(self) -> str:
        """Why the series fails its bound; "" if it does not, or there are too few values to say."""
        moves = "falls" if self.bound < 0 else "grows"
        if self.growth is None:
            return ""
        if self.growth.low >= self.bound if self.bound < 0 else self.growth.high <= self.bound:
            return ""
        return (
            f"{self.metric} {moves} by {self.growth.share:+.0%} of {self.growth.median:,.4g}"
            f" ({self.growth.low:+.0%} to {self.growth.high:+.0%}); at most {self.bound:+.0%} is allowed"
        )


def grown(series: Sequence[SeriesPoint], lasting_s: float, *, since_s: float = 0.0) -> list[SeriesGrowth]:
    """The growth of each series that has a bound, in a run of `lasting_s`, from `since_s` on."""
    samples: dict[str, list[Sample]] = defaultdict(list)
    for point in series:
        if point.metric.rpartition(": ")[2] in BOUNDS:
            samples[point.metric].append(Sample(point.at_s - since_s, point.value))
    found = []
    for metric, values in sorted(samples.items()):
        who, _, what = metric.rpartition(": ")
        trend = growth(
            values,
            lasting_s - since_s,
            least=_LEAST[what],
            warm_up=JAVA_WARM_UP if what == MEMORY and who in JAVA else WARM_UP,
            value_of=_VALUES_OF[what],
        )
        found.append(SeriesGrowth(metric, trend, BOUNDS[what]))
    return found


def faults_of(found: Sequence[SeriesGrowth]) -> list[str]:
    """A line for each series that fails its bound, and one for all of which the run was too short to say.

    Of a sink that has results too seldom nothing can be said, however long the run: see `notes_on`.
    """
    short = [] if _is_long_enough(found) else [each.metric for each in found if each.growth is None]
    faults = [each.fault for each in found if each.fault]
    if short:
        faults.append(
            f"too short to say whether these grow or fall, give it more --hours: {', '.join(short)}"
        )
    return faults


def notes_on(found: Sequence[SeriesGrowth]) -> list[str]:
    """A line for the sinks that have too few results to say how their latency moves, though the run is long enough."""
    seldom = [each.metric for each in found if each.growth is None]
    if not seldom or not _is_long_enough(found):
        return []
    return [f"too few results to say whether these grow: {', '.join(seldom)}"]


def _is_long_enough(found: Sequence[SeriesGrowth]) -> bool:
    sampled = [each.growth for each in found if each.is_sampled]
    return bool(sampled) and None not in sampled
