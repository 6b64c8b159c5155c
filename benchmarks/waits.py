"""How late results were, as HDR histograms: from when their frame was due, so that a stall counts for all it delays.

The correction is Gil Tene's: a load that waits for a slow system leaves out what would have been late meanwhile.
"""

from hdrh.histogram import HdrHistogram

from benchmarks.measuring import Sample

# Not measured: connections, caches and compilers get warm.
WARM_S = 5.0
PERCENTILES = (50.0, 99.0, 99.9)

_HIGHEST_US = 60_000_000
_DIGITS = 3


class Waits:
    """Of one run."""

    def __init__(self) -> None:
        self._histogram = HdrHistogram(1, _HIGHEST_US, _DIGITS)

    def note(self, late_s: float) -> None:
        """A result was so late."""
        self._histogram.record_value(max(1, round(late_s * 1e6)))

    def samples(self) -> list[Sample]:
        """At PERCENTILES, in ms."""
        return [Sample(self._histogram.get_value_at_percentile(each) / 1000) for each in PERCENTILES]

    def __str__(self) -> str:
        told = ", ".join(
            f"p{each:g} {sample.value:.1f} ms"
            for each, sample in zip(PERCENTILES, self.samples(), strict=True)
        )
        return f"{told}, max {self._histogram.get_max_value() / 1000:.1f} ms of {self._histogram.get_total_count():,}"
