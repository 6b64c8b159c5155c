"""Percentiles for which a run has too few latencies."""

from __future__ import annotations

from collections.abc import Iterator

from hdrh.histogram import HdrHistogram

from bettong.lab.results import BenchmarkResults

# Those that count as metrics; the maximum and p99.99 are details.
_PERCENTILES = (50.0, 99.0, 99.9)


def tail_notes(results: BenchmarkResults) -> Iterator[str]:
    """A line for each sink and step of which a percentile is just the largest latency of a repeat."""
    for each in results.measurements:
        histograms = [HdrHistogram.decode(run.histogram) for run in each.runs if run.histogram]
        largest = [
            f"p{percentile:g}"
            for percentile in _PERCENTILES
            if any(_is_largest(histogram, percentile) for histogram in histograms)
        ]
        if largest:
            yield (
                f"{each.name.rpartition(', ')[0]}: in a repeat the largest latency is also its"
                f" {' and '.join(largest)}, so that is the latency of one frame of results: after a stall one frame"
                " holds many; if few frames came, give a longer step, or fewer frame_messages"
            )


def _is_largest(histogram: HdrHistogram, percentile: float) -> bool:
    largest = histogram.get_max_value()
    return bool(histogram.values_are_equivalent(histogram.get_value_at_percentile(percentile), largest))
