"""Measures how long a partition's computations take for a frame, to show where the time goes.

Not part of the fold: a replay takes other times. Every frame is timed as a whole, its computations for at most one
frame in two milliseconds, so that this costs some 2 us a frame however small frames are.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

_NS = 1_000_000_000
_US = 1_000
# The least time between two frames whose computations are timed.
_SAMPLE_NS = 2_000_000
# Quantiles cover the last one to two stretches of this length.
_STRETCH_NS = 30 * _NS
# Quantiles are computed again after this time: each takes 50 us or so.
_REPORT_NS = 5 * _NS
# Bits of a bucket's number: durations from 2**n ns to twice that are divided among 128 buckets, each 0.8 % wide at
# most, as in HdrHistogram.
_BUCKET_BITS = 8

# Each quantile as the number of 10,000 frames that take no longer.
_OF_10_000 = (5_000, 9_900, 9_990, 9_999, 10_000)

# The worker's own work between computations: frames are read, and judged by the delivery rule.
OWN_WORK = ""


class ComputationTimes(NamedTuple):
    """Times of one computation, of one output or of the worker's own work, in one partition.

    `busy_s`: since the process began to fold the partition; `busy_share`: of the last seconds, 0 to 1. The others are
    recent times of one frame there, quantiles within 1 %, us; 0 before the first.
    """

    busy_s: float
    busy_share: float
    p50_us: float = 0.0
    p99_us: float = 0.0
    p999_us: float = 0.0
    p9999_us: float = 0.0
    max_us: float = 0.0


class Stopwatch:
    """Times one partition's fold, for the thread that folds. `clock_ns` is monotonic."""

    __slots__ = (
        "_at",
        "_begun_ns",
        "_busy_ns",
        "_clock_ns",
        "_entered_ns",
        "_fold_ns",
        "_frame_ns",
        "_newest",
        "_older",
        "_reported_fold_ns",
        "_reported_ns",
        "_sample_due_ns",
        "_sampled_ns",
        "_stretch_due_ns",
        "_text",
    )

    def __init__(self, clock_ns: Callable[[], int]) -> None:
        self._clock_ns = clock_ns
        self._at: str | None = None
        self._begun_ns = self._entered_ns = self._sample_due_ns = 0
        self._fold_ns = self._reported_fold_ns = 0
        # Of the current frame; of those timed since the last report; of all frames, estimated from these.
        self._frame_ns: dict[str, int] = {}
        self._sampled_ns: dict[str, int] = {}
        self._busy_ns: dict[str, int] = {}
        # By computation and bucket, how many frames took that long.
        self._newest: dict[str, dict[int, int]] = {}
        self._older: dict[str, dict[int, int]] = {}
        self._reported_ns = clock_ns()
        self._stretch_due_ns = self._reported_ns + _STRETCH_NS
        self._text = ""

    def begin(self) -> bool:
        """A record begins. Returns whether its computations are timed."""
        self._begun_ns = now_ns = self._clock_ns()
        if now_ns < self._sample_due_ns:
            return False
        self._sample_due_ns = now_ns + _SAMPLE_NS
        self._frame_ns = {}
        self._at, self._entered_ns = OWN_WORK, now_ns
        return True

    def enter(self, computation: str) -> None:
        """This computation is at work from now on, until the next one, or the end, of a record that is timed."""
        if self._at is not None:
            self._lap(self._at, computation)

    def end(self) -> None:
        """The record is folded."""
        now_ns = self._clock_ns()
        self._fold_ns += now_ns - self._begun_ns
        if self._at is None:
            return
        self._lap(self._at, OWN_WORK)
        self._at = None
        for computation, took_ns in self._frame_ns.items():
            counts = self._newest.get(computation)
            if counts is None:
                counts = self._newest[computation] = {}
            shift = max(took_ns.bit_length() - _BUCKET_BITS, 0)
            bucket = shift << _BUCKET_BITS | took_ns >> shift
            counts[bucket] = counts.get(bucket, 0) + 1
            self._sampled_ns[computation] = self._sampled_ns.get(computation, 0) + took_ns

    def text(self) -> str:
        """For a live record: JSON for `times_of`, made anew every few seconds."""
        now_ns = self._clock_ns()
        if now_ns - self._reported_ns >= _REPORT_NS or not self._text:
            self._text = json.dumps(dict(self._report(now_ns)), separators=(",", ":"))
        return self._text

    def _lap(self, of: str, then: str) -> None:
        now_ns = self._clock_ns()
        self._frame_ns[of] = self._frame_ns.get(of, 0) + now_ns - self._entered_ns
        self._at, self._entered_ns = then, now_ns

    def _report(self, now_ns: int) -> Iterator[tuple[str, ComputationTimes]]:
        """The time of all frames, in the proportions of those whose computations were timed."""
        passed_ns, self._reported_ns = max(now_ns - self._reported_ns, 1), now_ns
        fold_ns, self._reported_fold_ns = self._fold_ns - self._reported_fold_ns, self._fold_ns
        sampled_ns, self._sampled_ns = self._sampled_ns, {}
        total_ns = max(sum(sampled_ns.values()), 1)
        older, newest = self._older, self._newest
        if now_ns >= self._stretch_due_ns:
            self._stretch_due_ns = now_ns + _STRETCH_NS
            self._older, self._newest = newest, {}
        for computation in dict.fromkeys((*self._busy_ns, *sampled_ns)):
            of_late_ns = fold_ns * sampled_ns.get(computation, 0) // total_ns
            self._busy_ns[computation] = self._busy_ns.get(computation, 0) + of_late_ns
            yield (
                computation,
                ComputationTimes(
                    round(self._busy_ns[computation] / _NS, 6),
                    round(of_late_ns / passed_ns, 4),
                    *(
                        round(each_ns / _US, 1)
                        for each_ns in _quantiles(older.get(computation, {}), newest.get(computation, {}))
                    ),
                ),
            )


def times_of(text: str) -> Mapping[str, ComputationTimes]:
    """Reads what `Stopwatch.text` returned, by computation or output. Raises ValueError for any other text."""
    try:
        found = {str(name): ComputationTimes(*map(float, each)) for name, each in json.loads(text).items()}
    except (TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(f"not the text of times: {error}") from None
    if not all(map(math.isfinite, (number for each in found.values() for number in each))):
        raise ValueError("not the text of times: a number that is not finite")
    return found


def _middle_ns(bucket: int) -> int:
    shift = bucket >> _BUCKET_BITS
    return ((bucket & ((1 << _BUCKET_BITS) - 1)) << shift) + ((1 << shift) >> 1)


def _quantiles(older: Mapping[int, int], newest: Mapping[int, int]) -> list[int]:
    """p50, p99, p99.9, p99.99 and the largest of both together, ns; empty without any."""
    total, passed = sum(older.values()) + sum(newest.values()), 0
    wanted, found = list(_OF_10_000), []
    for bucket in sorted(older.keys() | newest.keys()):
        passed += older.get(bucket, 0) + newest.get(bucket, 0)
        while wanted and 10_000 * passed >= wanted[0] * total:
            found.append(_middle_ns(bucket))
            del wanted[0]
    return found
