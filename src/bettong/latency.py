"""Latency histograms with Prometheus' buckets: counts can be summed over instances, quantiles cannot.

A live record has the counts as text (`metrics.LATENCY`); the endpoint serves them as a histogram family
(prometheus.io/docs/concepts/metric_types/#histogram). They grow while their process, or the task that folds a
partition, lives, and restart from 0 with the next one, as counters do.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

# From the latency of the resident schedule (p50 2 ms) to a minute. Two or three bounds a decade determine a quantile
# within a factor of 2.5; each costs a series for every partition and sink.
BOUNDS_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)

_NS = 1_000_000_000
_BOUNDS_NS = tuple(round(bound_s * _NS) for bound_s in BOUNDS_S)


@dataclass(frozen=True, slots=True)
class LatencyCounts:
    """`counts`: one for each bucket, whose upper bounds are BOUNDS_S; the last is for latencies above all bounds.

    `sum_s`: the sum of all latencies.
    """

    counts: Sequence[int]
    sum_s: float

    def to_text(self) -> str:
        """For a live record."""
        return " ".join([*map(str, self.counts), f"{self.sum_s:.6f}"])

    @classmethod
    def parse(cls, text: str) -> LatencyCounts:
        """The inverse of `to_text`. Raises ValueError."""
        *counts, sum_s = text.split()
        if len(counts) != len(BOUNDS_S) + 1:
            raise ValueError(f"{len(counts)} counts of latencies, expected {len(BOUNDS_S) + 1}")
        return cls([int(count) for count in counts], float(sum_s))

    def cumulative(self) -> list[tuple[str, int]]:
        """Cumulative counts, by the bound in Prometheus' notation."""
        bounds = [*map(str, BOUNDS_S), "+Inf"]
        return list(zip(bounds, accumulate(self.counts), strict=True))


class LatencyHistogram:
    """Counts latencies, at some 0.2 us each. `record` is for one thread; others may read meanwhile."""

    __slots__ = ("_counts", "_sum_ns")

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS_S) + 1)
        self._sum_ns = 0

    def record(self, latency_ns: int) -> None:
        """Counts a latency of at least 0 ns."""
        self._counts[bisect_left(_BOUNDS_NS, latency_ns)] += 1
        self._sum_ns += latency_ns

    def counts(self) -> LatencyCounts:
        """The counts since the histogram was made."""
        return LatencyCounts(list(self._counts), self._sum_ns / _NS)
