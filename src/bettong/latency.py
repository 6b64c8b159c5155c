"""Latencies counted by bucket, as Prometheus has them: counts can be added up over instances, quantiles cannot.

The counts travel in a live record as text (`metrics.LATENCY`) and are served as a histogram family
(prometheus.io/docs/concepts/metric_types/#histogram). They grow for as long as their process, or the task that folds a
partition, lives, and then begin anew, as counters do.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

# From what the resident schedule takes (p50 2 ms) to what nobody waits for. Two or three of them a decade place a
# quantile within a factor of 2.5 or less; each costs a series of every partition and sink.
BOUNDS_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)

_NS = 1_000_000_000
_BOUNDS_NS = tuple(round(bound_s * _NS) for bound_s in BOUNDS_S)


@dataclass(frozen=True, slots=True)
class LatencyCounts:
    """`counts`: for each of BOUNDS_S how many are at most that and more than the one before; last, those above all.

    `sum_s`: of all latencies together.
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
        """How many are at most each bound, by the bound as Prometheus writes it."""
        bounds = [*map(str, BOUNDS_S), "+Inf"]
        return list(zip(bounds, accumulate(self.counts), strict=True))


class LatencyHistogram:
    """Counts latencies one by one: some 0.2 us each. `record` is for one thread; others may ask meanwhile."""

    __slots__ = ("_counts", "_sum_ns")

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS_S) + 1)
        self._sum_ns = 0

    def record(self, latency_ns: int) -> None:
        """Counts one, of at least 0 ns."""
        self._counts[bisect_left(_BOUNDS_NS, latency_ns)] += 1
        self._sum_ns += latency_ns

    def counts(self) -> LatencyCounts:
        """Since it was made."""
        return LatencyCounts(list(self._counts), self._sum_ns / _NS)
