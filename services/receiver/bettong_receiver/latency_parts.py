"""Breaks down the latency of results into parts, per sink. See `bettong.latency_parts`.

Only the times of a frame are recorded. Numpy splits and counts them, many frames at a time.
"""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from bettong import metrics
from bettong.frames.frame import CLOCK_NS_MAX, Frame
from bettong.latency import BOUNDS_S, LatencyCounts
from bettong.latency_parts import PARTS, STORED, PartsOfLate
from bettong.latency_percentiles import SHARES, ranks

_Array = npt.NDArray[np.int64]

_NS = 1_000_000_000
_MS = 1_000_000
# As in `latency`: a longer latency was an outage.
_LATENCY_NS_MAX = 3600 * _NS
# Frames of a sink that are counted together: enough to make numpy's calls cheap, 64 kB.
_FRAMES_MAX = 512
# 1 us to 1 h, each 2 % above the previous one: the middle of a bucket is within 1 % of every value in it.
_RATIO = 1.02
_EDGES = math.ceil(math.log(_LATENCY_NS_MAX / 1000, _RATIO)) + 1
_EDGES_NS = np.rint(1000 * _RATIO ** np.arange(_EDGES)).astype(np.int64)
_BOUNDS_NS = np.rint(np.array(BOUNDS_S) * _NS).astype(np.int64)
# The window advances in slices, as in `latency`.
_SLICE_S = 10
_SLICES = metrics.LATENCY_WINDOW_S // _SLICE_S
_EACH = np.arange(len(PARTS))


class DeliveredFrame(Protocol):
    """As `FrameMessages`. `times`: a record header, in the STORED layout or, from other writers, any bytes."""

    @property
    def frame(self) -> Frame:
        """The frame from the log."""

    @property
    def messages(self) -> Sequence[object]:
        """The messages delivered."""

    @property
    def times(self) -> bytes:
        """The times in the record's header."""


# A frame's times header, its times sent, ingested, read, delivered (Unix ns), and its number of messages.
_FrameTimes = tuple[bytes, int, int, int, int, int]


def split_parts(moments: _Array) -> _Array:
    """Splits rows of times (sent, ingested, begun, written, read, delivered; Unix ns) into rows of PARTS in ns.

    No part is negative, and each row adds up to its latency.

    The times come from several clocks. One that precedes its predecessor, or exceeds the delivery, is clamped to it:
    the neighbouring part gets the difference. At most an hour before the delivery counts.
    """
    delivered = moments[:, -1:]
    earliest = np.maximum(np.minimum(moments[:, :1], delivered), delivered - _LATENCY_NS_MAX)
    in_order = np.maximum.accumulate(np.clip(moments, earliest, delivered), axis=1)
    return np.diff(in_order, axis=1)


class PartedLatency:
    """Parts of latency in the last `metrics.LATENCY_WINDOW_S`, and counts since the start; weighted by messages.

    Takes 400 kB per sink. Safe to use from several threads.
    """

    def __init__(self, sinks: Iterable[str], *, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._lock = threading.Lock()
        self._monotonic_s = monotonic_s
        self._by_sink = {sink: _PartsWindow() for sink in sinks}
        self._slice = self._now()

    def record(self, sink: str, frames: Iterable[DeliveredFrame], *, read_ns: int, delivered_ns: int) -> None:
        """Records frames that were delivered together. Ignores those that lack a time: without a send time, written by
        an older version, or by a receiver (messages that a destination refused).
        """
        with self._lock:
            note = self._by_sink[sink].note
            for each in frames:
                frame, times, messages = each.frame, each.times, len(each.messages)
                sent_ns = frame.sent_ns
                if len(times) == STORED.size and messages and 0 < sent_ns <= CLOCK_NS_MAX:
                    note((times, sent_ns, frame.ingest_ns, read_ns, delivered_ns, messages))

    def metrics(self) -> dict[str, str]:
        """For each sink LATENCY_PART of each part, and LATENCY_PARTS if the window has results: see `metrics`.

        Call it at least every few seconds: it advances the window.
        """
        found: dict[str, str] = {}
        with self._lock:
            now = self._now()
            for sink, window in self._by_sink.items():
                window.advance(now - self._slice)
                for part, counts in zip(PARTS, window.total(), strict=True):
                    found[f"{metrics.LATENCY_PART.name}/{sink}/{part}"] = counts.to_text()
                if (recent := window.recent()) is not None:
                    found[f"{metrics.LATENCY_PARTS.name}/{sink}"] = recent.to_text()
            self._slice = now
        return found

    def _now(self) -> int:
        return int(self._monotonic_s() // _SLICE_S)


class _Slice:
    """Counts of each part by edge, and sums, for ten seconds."""

    def __init__(self) -> None:
        self.counts = np.zeros((len(PARTS), len(_EDGES_NS) + 1), np.int64)
        self.sums_ns = np.zeros(len(PARTS))
        self.messages = 0


class _PartsWindow:
    """One sink: frames not counted yet, slices, newest first, and totals since the start."""

    def __init__(self) -> None:
        self._waiting: list[_FrameTimes] = []
        self._slices: deque[_Slice | None] = deque([None], maxlen=_SLICES + 1)
        self._total = np.zeros((len(PARTS), len(BOUNDS_S) + 1), np.int64)
        self._total_ns = np.zeros(len(PARTS))

    def note(self, frame_times: _FrameTimes) -> None:
        """Queues a frame to be counted."""
        self._waiting.append(frame_times)
        if len(self._waiting) >= _FRAMES_MAX:
            self._count()

    def advance(self, slices: int) -> None:
        """Counts the queued frames, and begins a new slice, `slices` after the current one; 0 for none."""
        self._count()
        self._slices.extendleft([None] * min(slices, _SLICES + 1))

    def total(self) -> list[LatencyCounts]:
        """For each part all counts since the start, without queued frames."""
        return [
            LatencyCounts(counts, sum_ns / _NS)
            for counts, sum_ns in zip(self._total.tolist(), self._total_ns.tolist(), strict=True)
        ]

    def recent(self) -> PartsOfLate | None:
        """The parts in the window; None when it is empty."""
        kept = [each for each in self._slices if each is not None]
        if not kept:
            return None
        messages = sum(each.messages for each in kept)
        upto = np.sum([each.counts for each in kept], axis=0).cumsum(axis=1)
        within_ms = [
            [round(_value_ns(index) / _MS, 6) for index in each.searchsorted(ranks(messages)).tolist()]
            for each in upto
        ]
        sums_ns = np.sum([each.sums_ns for each in kept], axis=0)
        p99_ms = [each[SHARES.index(0.99)] for each in within_ms]
        return PartsOfLate(messages, [round(each / _NS, 9) for each in sums_ns.tolist()], p99_ms, within_ms)

    def _count(self) -> None:
        if not self._waiting:
            return
        times, *columns = zip(*self._waiting, strict=True)
        self._waiting.clear()
        put_out, inside = np.frombuffer(b"".join(times), np.dtype("<i8")).reshape(-1, 2).T
        sent, taken_in, read, delivered, counts = np.array(columns, np.int64)
        parts = split_parts(np.stack((sent, taken_in, put_out - inside, put_out, read, delivered), axis=1))
        messages = counts[:, np.newaxis]
        if (newest := self._slices[0]) is None:
            newest = self._slices[0] = _Slice()
        np.add.at(newest.counts, (_EACH, _EDGES_NS.searchsorted(parts)), messages)
        np.add.at(self._total, (_EACH, _BOUNDS_NS.searchsorted(parts)), messages)
        sums_ns = counts.astype(np.float64) @ parts.astype(np.float64)
        newest.sums_ns += sums_ns
        newest.messages += int(messages.sum())
        self._total_ns += sums_ns


def _value_ns(index: int) -> float:
    """The value of a bucket: the geometric mean of its edges; 0 for the bucket up to 1 us."""
    return float(_EDGES_NS[index - 1]) * math.sqrt(_RATIO) if index else 0.0
