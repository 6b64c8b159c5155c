"""Percentiles for which a run has too few latencies."""

from __future__ import annotations

from collections.abc import Iterator

from hdrh.histogram import HdrHistogram

from bettong.lab.results import BenchmarkResults

# One in how many latencies lies beyond each. Of those that count as metrics; the maximum and p99.99 are details.
_BEYOND = {"p50": 2, "p99": 100, "p99.9": 1000}


def tail_notes(results: BenchmarkResults) -> Iterator[str]:
    """A line for each sink and step of which a percentile is just the largest latency of a repeat."""
    for each in results.measurements:
        counts = [HdrHistogram.decode(run.histogram).get_total_count() for run in each.runs if run.histogram]
        if not counts:
            continue
        fewest = min(counts)
        beyond = [name for name, one_in in _BEYOND.items() if fewest < one_in]
        if beyond:
            yield (
                f"{each.name.rpartition(', ')[0]}: a repeat had only {fewest:,} latencies, one a frame of results,"
                f" so the largest of them is its {' and '.join(beyond)}: give a longer step, or fewer frame_messages"
            )
