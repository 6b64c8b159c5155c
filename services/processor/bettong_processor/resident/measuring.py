"""Measures a partition's rate and latency between two reports. Bounded; its cost for each frame is negligible."""

from collections import deque
from dataclasses import dataclass, field

from bettong import metrics
from bettong.latency import LatencyHistogram

_MS = 1_000_000
# Frames whose latency is kept between two reports; of more frames, the newest.
_SAMPLES_MAX = 4096
_OF_LATE = [
    metric.name for metric in (metrics.RATE, metrics.LATENCY_P50, metrics.LATENCY_P99, metrics.LATENCY_MAX)
]


@dataclass(slots=True)
class Measure:
    """The measurements of one partition. `note` may be called from another thread than `metrics`."""

    _samples_ns: deque[int] = field(default_factory=lambda: deque(maxlen=_SAMPLES_MAX))
    _histogram: LatencyHistogram = field(default_factory=LatencyHistogram)
    _messages: int | None = None
    _measured_s: float = 0.0

    def note(self, taken_in_ns: int, now_ns: int) -> None:
        """Records that the output of a frame, which the sender took in at `taken_in_ns`, is durable now."""
        latency_ns = max(0, now_ns - taken_in_ns)  # the two times are of different machines' clocks
        self._samples_ns.append(latency_ns)
        self._histogram.record(latency_ns)

    def metrics(self, messages: int, lag: int | None, now_s: float) -> dict[str, float | str]:
        """The metrics since the last report; LATENCY is since the start.

        `messages`: folded since the start; `lag`: records not read yet.

        An unknown rate or latency is reported as "", or that of an earlier report or task would stay.
        """
        found: dict[str, float | str] = dict.fromkeys(_OF_LATE, "")
        found[metrics.LATENCY.name] = self._histogram.counts().to_text()
        if self._messages is not None and now_s > self._measured_s:
            found[metrics.RATE.name] = round((messages - self._messages) / (now_s - self._measured_s))
        self._messages, self._measured_s = messages, now_s
        if lag is not None:
            found[metrics.LAG.name] = lag
        samples = sorted(self._samples_ns.popleft() for _ in range(len(self._samples_ns)))
        if samples:
            found[metrics.LATENCY_P50.name] = samples[len(samples) // 2] / _MS
            found[metrics.LATENCY_P99.name] = samples[(99 * len(samples)) // 100] / _MS
            found[metrics.LATENCY_MAX.name] = samples[-1] / _MS
        return found
