"""Whether a metric grows over a run: the slope of a line through it, with its 95 % interval. Pure.

    samples ──> a value for each of 20 equal stretches of time ──> least squares ──> growth, relative to the median

The value is the median of a stretch, because a fault disturbs some seconds and must not bend the line. For memory it
is the minimum: a process that leaks keeps more even when it has least to do, and the memory that eight stalled
subscribers take for half a minute is no leak. The stretches are few, because a process's memory depends on that of a
second ago, and dependent samples would make the interval too narrow. The first tenth of a run is left out: caches and
buffers fill. For a Java process's memory the first half is, because its heap grows in steps, up to its limit, and does
not shrink.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

STRETCHES = 20
WARM_UP = 0.1
JAVA_WARM_UP = 0.5
# The fewest stretches with samples for a line.
_STRETCHES_MIN = 10
# Student's t at 95 %, two-sided, for the 8 degrees of freedom of the fewest stretches; conservative for more.
_T = 2.306


@dataclass(frozen=True, slots=True)
class Sample:
    """A metric at a time, in seconds from the start of the run."""

    at_s: float
    value: float


@dataclass(frozen=True, slots=True)
class Growth:
    """`median`: of the metric. `share`: the line's rise over the run, relative to it, with its interval `low`, `high`.

    `points`: the values of the stretches that have samples, in order.
    """

    median: float
    share: float
    low: float
    high: float
    points: tuple[float, ...]


def growth(
    samples: Sequence[Sample],
    duration_s: float,
    *,
    least: float,
    warm_up: float = WARM_UP,
    value_of: Callable[[list[float]], float] = statistics.median,
) -> Growth | None:
    """How a metric grows; None with too few samples.

    `least`: growth is relative to this where the median is lower, so that small values do not count as much growth.
    `warm_up`: the share of the run that is left out at its beginning. `value_of`: the value of a stretch's samples.
    """
    begin_s = warm_up * duration_s
    length_s = (duration_s - begin_s) / STRETCHES
    stretches: list[list[float]] = [[] for _ in range(STRETCHES)]
    for each in samples:
        if begin_s <= each.at_s < duration_s:
            stretches[min(int((each.at_s - begin_s) / length_s), STRETCHES - 1)].append(each.value)
    points = [(index + 0.5, value_of(values)) for index, values in enumerate(stretches) if values]
    if len(points) < _STRETCHES_MIN:
        return None
    middles, values = [point[0] for point in points], [point[1] for point in points]
    slope, intercept = statistics.linear_regression(middles, values)
    residuals = sum((value - intercept - slope * x) ** 2 for x, value in points)
    center = statistics.fmean(middles)
    spread = sum((x - center) ** 2 for x in middles)
    error = (residuals / (len(points) - 2) / spread) ** 0.5
    median = statistics.median(values)
    scale = duration_s / length_s / max(median, least)
    low, high = (slope - _T * error) * scale, (slope + _T * error) * scale
    return Growth(median, slope * scale, low, high, tuple(values))
