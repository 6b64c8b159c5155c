"""Waits as HDR histograms. For results: from when their frame was due, so that a stall counts for all it delays.

The correction is Gil Tene's: a load that waits for a slow system leaves out what would have been late meanwhile.
"""

from collections.abc import Sequence

from hdrh.histogram import HdrHistogram

from benchmarks.measuring import Sample

# Not measured: connections, caches and compilers get warm.
WARM_S = 5.0
PERCENTILES = (50.0, 99.0, 99.9)

_HIGHEST_NS = 60_000_000_000
_DIGITS = 3
_MS_NS = 1_000_000


class Waits:
    """Of one run."""

    def __init__(self) -> None:
        self._histogram = HdrHistogram(1, _HIGHEST_NS, _DIGITS)

    def note(self, late_s: float) -> None:
        """A result was so late."""
        self.note_ns(round(late_s * 1e9))

    def note_ns(self, wait_ns: int) -> None:
        """Something took so long; what is longer than a minute counts as one."""
        self._histogram.record_value(min(_HIGHEST_NS, max(1, wait_ns)))

    def samples(self, percentiles: Sequence[float] = PERCENTILES, *, unit_ns: int = _MS_NS) -> list[Sample]:
        """At percentiles, each with the whole histogram, which is in ns."""
        encoded = self._histogram.encode().decode()
        return [
            Sample(self._histogram.get_value_at_percentile(each) / unit_ns, histogram=encoded)
            for each in percentiles
        ]

    def __str__(self) -> str:
        quantiles = ", ".join(
            f"p{each:g} {sample.value:.1f} ms"
            for each, sample in zip(PERCENTILES, self.samples(), strict=True)
        )
        most_ms, count = self._histogram.get_max_value() / _MS_NS, self._histogram.get_total_count()
        return f"{quantiles}, max {most_ms:.1f} ms of {count:,}"
