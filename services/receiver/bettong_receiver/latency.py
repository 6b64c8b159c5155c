"""End-to-end latency, from when a client's message was due to the delivery of its result, per sink and in total."""

import threading
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt
from hdrh.histogram import HdrHistogram

from bettong import metrics
from bettong.latency import BOUNDS_S, LatencyCounts
from bettong.latency_percentiles import LatencyPercentiles, ranks
from bettong.topics import DEAD_LETTERS

_US = 1000
# 1 us to 1 h with three digits, in 200 kB. A longer latency, as after an outage, counts as 1 h.
_HIGHEST_US = 3_600_000_000
_DIGITS = 3
# The window advances in slices, so it may reach back up to one slice further than its length.
_SLICE_S = 10
_SLICES = metrics.LATENCY_WINDOW_S // _SLICE_S

_Counts = npt.NDArray[np.int64]


class Latency:
    """Latency in the last `metrics.LATENCY_WINDOW_S`, and counts since the start; weighted by messages. Thread-safe.

    Dead letters have their own histogram and are not in that of all sinks.
    The clocks of client and receiver may differ: a result that seems to come before its message counts as 1 us.
    """

    def __init__(self, sinks: Iterable[str], *, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._lock = threading.Lock()
        self._monotonic_s = monotonic_s
        self._all = _Window()
        self._by_sink = {sink: _Window() for sink in sinks}
        self._slice = self._now()

    def record(self, sink: str, *, sent_ns: int, delivered_ns: int, messages: int) -> None:
        """Records the results of one frame. A frame without a send time is ignored."""
        if sent_ns == 0 or messages == 0:
            return
        latency_us = min(max((delivered_ns - sent_ns) // _US, 1), _HIGHEST_US)
        with self._lock:
            if sink != DEAD_LETTERS:
                self._all.record(latency_us, messages)
            self._by_sink[sink].record(latency_us, messages)

    def metrics(self) -> dict[str, float]:
        """p50, p99 and maximum in ms, under their names in `metrics`; for a sink under `<name>/<sink>`.

        Leaves out sinks without results in the window. Call it at least every few seconds: it advances the window.
        """
        with self._lock:
            self._advance()
            found = _metrics(self._all.counts(), "")
            for sink, window in self._by_sink.items():
                found |= _metrics(window.counts(), f"/{sink}")
        return found

    def percentiles(self) -> dict[str, str]:
        """LATENCY_PERCENTILES of each sink with results in the window, as of the last call of `metrics`."""
        with self._lock:
            windows = {sink: window.counts() for sink, window in self._by_sink.items()}
        return {
            f"{metrics.LATENCY_PERCENTILES.name}/{sink}": _percentiles(counts).to_text()
            for sink, counts in windows.items()
            if counts is not None
        }

    def counts(self) -> dict[str, str]:
        """Counts by bucket since the start: `metrics.LATENCY` of all sinks, and `<name>/<sink>` of each."""
        with self._lock:
            windows = {"": self._all} | {f"/{sink}": window for sink, window in self._by_sink.items()}
            return {
                metrics.LATENCY.name + suffix: window.total().to_text() for suffix, window in windows.items()
            }

    def _advance(self) -> None:
        now = self._now()
        if now != self._slice:
            for window in (self._all, *self._by_sink.values()):
                window.advance(now - self._slice)
            self._slice = now

    def _now(self) -> int:
        return int(self._monotonic_s() // _SLICE_S)


class _Window:
    """The histogram of the current slice, the counts of earlier slices, newest first, and the total since the start."""

    def __init__(self) -> None:
        self._current = _histogram()
        self._ended = np.zeros(len(BOUNDS_S) + 1, np.int64)
        self._sum_us = 0
        self._earlier: deque[_Counts | None] = deque([None] * _SLICES, maxlen=_SLICES)
        self._sum: _Counts | None = None

    def record(self, latency_us: int, messages: int) -> None:
        """Records `messages` results with the same latency."""
        self._current.record_value(latency_us, messages)
        self._sum_us += latency_us * messages

    def total(self) -> LatencyCounts:
        """Counts since the start."""
        current = _counts_of(self._current)
        counts = self._ended if current is None else self._ended + _by_bucket(current)
        return LatencyCounts(counts.tolist(), self._sum_us / 1_000_000)

    def advance(self, slices: int) -> None:
        """Begins a new slice, `slices` after the current one."""
        counts = _counts_of(self._current)
        if counts is not None:
            self._ended = self._ended + _by_bucket(counts)
            self._current = _histogram()
        self._earlier.extendleft([counts, *([None] * min(slices - 1, _SLICES))])
        kept = [each for each in self._earlier if each is not None]
        self._sum = sum(kept[1:], kept[0]) if kept else None

    def counts(self) -> "_Counts | None":
        """Counts in the window; None when it is empty."""
        current = _counts_of(self._current)
        if current is None or self._sum is None:
            return self._sum if current is None else current
        return self._sum + current


def _histogram() -> HdrHistogram:
    return HdrHistogram(1, _HIGHEST_US, _DIGITS)


def _counts_of(histogram: HdrHistogram) -> _Counts | None:
    if not histogram.get_total_count():
        return None
    return np.ctypeslib.as_array(histogram.counts).astype(np.int64)


def _metrics(counts: _Counts | None, suffix: str) -> dict[str, float]:
    if counts is None:
        return {}
    # Same results as `get_value_at_percentile` and `get_max_value`, which take 1 ms or more to scan the counts.
    upto = counts.cumsum()
    targets = [max(1, int(upto[-1] * percent / 100 + 0.5)) for percent in (50, 99)] + [int(upto[-1])]
    p50_us, p99_us, max_us = _values_us(upto, targets)
    return {
        metrics.LATENCY_P50.name + suffix: p50_us / 1000,
        metrics.LATENCY_P99.name + suffix: p99_us / 1000,
        metrics.LATENCY_MAX.name + suffix: max_us / 1000,
    }


def _percentiles(counts: _Counts) -> LatencyPercentiles:
    upto = counts.cumsum()
    total = int(upto[-1])
    return LatencyPercentiles(total, [each / 1000 for each in _values_us(upto, ranks(total))])


def _values_us(upto: _Counts, targets: list[int]) -> list[int]:
    """The latencies at these ranks. `upto`: the number of messages with at most the latency of each index."""
    return [
        _SCALE.get_highest_equivalent_value(_SCALE.get_value_from_index(index))
        for index in upto.searchsorted(targets).tolist()
    ]


def _by_bucket(counts: _Counts) -> _Counts:
    """Sums the counts of a histogram by the buckets of `bettong.latency`, whose bounds it resolves to three digits."""
    return np.add.reduceat(counts, _BEGINS)


# Maps an index of the counts to its latency.
_SCALE = _histogram()
# The first index of each bucket: the first whose latency exceeds the previous bound.
_BEGINS = [
    0,
    *(
        bisect_right(range(_SCALE.counts_len), bound_s * 1_000_000, key=_SCALE.get_value_from_index)
        for bound_s in BOUNDS_S
    ),
]
