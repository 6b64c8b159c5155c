"""The true latency: from when a client's message was due to when its result is delivered. For each sink and for all."""

import threading
from collections.abc import Iterable

import numpy as np
from hdrh.histogram import HdrHistogram

from bettong import metrics
from bettong.topics import DEAD_LETTERS

_US = 1000
# 1 us to 1 h with three digits, in 200 kB. A result later than that counts as 1 h: it was an outage.
_HIGHEST_US = 3_600_000_000
_DIGITS = 3


class Latency:
    """Histograms since the process started, weighted by messages. Safe to use from several threads.

    Dead letters have a histogram of their own and are not in that of all sinks.
    The clocks of client and receiver are two: a result that seems to come before its message counts as 1 us.
    """

    def __init__(self, sinks: Iterable[str]) -> None:
        self._lock = threading.Lock()
        self._all = _histogram()
        self._by_sink = {sink: _histogram() for sink in sinks}

    def record(self, sink: str, *, sent_ns: int, delivered_ns: int, messages: int) -> None:
        """Notes the results of one frame. A frame that does not say when it was sent is left out."""
        if sent_ns == 0 or messages == 0:
            return
        latency_us = min(max((delivered_ns - sent_ns) // _US, 1), _HIGHEST_US)
        with self._lock:
            if sink != DEAD_LETTERS:
                self._all.record_value(latency_us, messages)
            self._by_sink[sink].record_value(latency_us, messages)

    def figures(self) -> dict[str, float]:
        """p50, p99 and maximum in ms, under their names in `metrics`; for a sink under `<name>/<sink>`."""
        with self._lock:
            found = _figures(self._all, "")
            for sink, histogram in self._by_sink.items():
                found |= _figures(histogram, f"/{sink}")
        return found


def _histogram() -> HdrHistogram:
    return HdrHistogram(1, _HIGHEST_US, _DIGITS)


def _figures(histogram: HdrHistogram, suffix: str) -> dict[str, float]:
    if not histogram.get_total_count():
        return {}
    p50_us, p99_us = _at_percentiles(histogram, 50, 99)
    return {
        metrics.LATENCY_P50.name + suffix: p50_us / 1000,
        metrics.LATENCY_P99.name + suffix: p99_us / 1000,
        metrics.LATENCY_MAX.name + suffix: histogram.get_max_value() / 1000,
    }


def _at_percentiles(histogram: HdrHistogram, *percentiles: float) -> list[int]:
    """As `get_value_at_percentile`, which takes a millisecond or more to go through the counts one by one."""
    counts = np.ctypeslib.as_array(histogram.counts).cumsum()
    targets = [histogram.get_target_count_at_percentile(each) for each in percentiles]
    return [
        histogram.get_highest_equivalent_value(histogram.get_value_from_index(index))
        for index in counts.searchsorted(targets).tolist()
    ]
