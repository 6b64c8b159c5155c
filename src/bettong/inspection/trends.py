"""Trends over several inspections: rates, lag in seconds, and since when a value has not changed.

Pure: callers pass the time (`at_s`, of a monotonic clock). Bounded: RATE_S of samples, and MARKS_MAX marks of log
ends for each partition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from bettong.identifiers import PartitionId
from bettong.inspection.deployment import Inspection
from bettong.inspection.overview import PartitionRow

_Sample = TypeVar("_Sample")

# Services write their counts once a second: over less a rate would jump, over more a burst would hide.
RATE_S = 10.0
_SAMPLES_MAX = 32  # enough for three inspections a second
# Marks of where a log ended earlier; beyond this they are thinned out, so that a long lag is less exact.
MARKS_MAX = 64


@dataclass(frozen=True, slots=True)
class Since:
    """For how long a value has not changed; `at_least`: it was so when it was first seen."""

    seconds: float
    at_least: bool = False


@dataclass(frozen=True, slots=True)
class PartitionTrend:
    """Of one partition; None while unknown.

    `lag`: how long the next record to fold has been in its log. `watermark`: since when it has not moved. `held`:
    since when the same origin holds it back. `snapshot`: since when there has been no newer one.
    """

    messages_per_s: float | None = None
    lag: Since | None = None
    watermark: Since | None = None
    held: Since | None = None
    snapshot: Since | None = None


@dataclass(frozen=True, slots=True)
class StageTrend:
    """Of the partitions of a stage: the sum of their rates, and the longest lag; None while unknown."""

    messages_per_s: float | None = None
    lag: Since | None = None


@dataclass(frozen=True, slots=True)
class CountSample:
    """Counts up to a moment."""

    at_s: float
    messages: int
    results: int
    folded: Mapping[PartitionId, int]


@dataclass(frozen=True, slots=True)
class Standing:
    """A value, since when it has not changed, and whether it was there at the first inspection."""

    value: object
    at_s: float
    is_first: bool

    def since(self, at_s: float) -> Since:
        """For how long, until `at_s`."""
        return Since(max(0.0, at_s - self.at_s), self.is_first)


@dataclass(frozen=True, slots=True)
class LogMark:
    """Where a log ended, and when that was first seen; `is_first`: at the first inspection."""

    at_s: float
    end: int
    is_first: bool


@dataclass(frozen=True, slots=True)
class SeenPartition:
    """The values to remember of a partition."""

    watermark: Standing
    held: Standing
    snapshot: Standing
    marks: tuple[LogMark, ...]


@dataclass(frozen=True, slots=True)
class Trends:
    """As of the last inspection; rates are those of the last RATE_S, None before the second one.

    `samples` and `seen` are compared with the next inspection.
    """

    messages_per_s: float | None = None
    results_per_s: float | None = None
    partitions: Mapping[PartitionId, PartitionTrend] = field(default_factory=dict)
    samples: tuple[CountSample, ...] = ()
    seen: Mapping[PartitionId, SeenPartition] = field(default_factory=dict)

    def of(self, partition: PartitionId) -> PartitionTrend:
        """The trend of one partition."""
        return self.partitions.get(partition, PartitionTrend())


def trends(before: Trends, found: Inspection, at_s: float) -> Trends:
    """The trends with one more inspection, for which Redis answered."""
    sample = CountSample(
        at_s,
        found.overview.messages,
        found.overview.results,
        {row.id: row.messages for row in found.partitions},
    )
    samples = of_late((*before.samples, sample), lambda each: each.at_s)[-_SAMPLES_MAX:]
    seen = {row.id: _seen(before.seen.get(row.id), row, at_s) for row in found.partitions}
    return Trends(
        rate((each.at_s, each.messages) for each in samples),
        rate((each.at_s, each.results) for each in samples),
        {
            row.id: PartitionTrend(
                rate((each.at_s, each.folded[row.id]) for each in samples if row.id in each.folded),
                lag_since(seen[row.id].marks, row, at_s),
                seen[row.id].watermark.since(at_s) if row.watermark_ns else None,
                seen[row.id].held.since(at_s) if row.watermark_held_by else None,
                seen[row.id].snapshot.since(at_s) if row.snapshot_offset is not None else None,
            )
            for row in found.partitions
        },
        samples,
        seen,
    )


def rate(points: Iterable[tuple[float, int]]) -> float | None:
    """A counter's growth per second, from its first point to its last; None with fewer than two.

    Where it fell, its process restarted, or records were folded again: points before that do not count.
    """
    kept: list[tuple[float, int]] = []
    for at_s, count in points:
        if kept and count < kept[-1][1]:
            kept.clear()
        kept.append((at_s, count))
    if len(kept) < 2 or kept[-1][0] <= kept[0][0]:
        return None
    return (kept[-1][1] - kept[0][1]) / (kept[-1][0] - kept[0][0])


def stage_trend(partitions: Iterable[PartitionTrend]) -> StageTrend:
    """The trend of all partitions of a stage."""
    own = list(partitions)
    rates = [each.messages_per_s for each in own if each.messages_per_s is not None]
    return StageTrend(sum(rates) if rates else None, longest(each.lag for each in own))


def longest(lags: Iterable[Since | None]) -> Since | None:
    """The longest lag; None where one of them is unknown: it may be longer than all others."""
    known = list(lags)
    found = [each for each in known if each is not None]
    return max(found, key=lambda each: each.seconds) if found and len(found) == len(known) else None


def lag_since(marks: tuple[LogMark, ...], row: PartitionRow, at_s: float) -> Since | None:
    """How long the next record of a partition has waited: since its log was first seen to end after it.

    `marks`: of ends after it, the oldest first.
    """
    if row.lag is None:
        return None
    if not row.lag:
        return Since(0.0)
    return Since(max(0.0, at_s - marks[0].at_s), marks[0].is_first)


def of_late(samples: Sequence[_Sample], at_s: Callable[[_Sample], float]) -> tuple[_Sample, ...]:
    """The samples of the last RATE_S, up to the newest one, and the one before them: what counters grew since."""
    first = at_s(samples[-1]) - RATE_S
    newer = next(index for index, each in enumerate(samples) if at_s(each) > first)
    return tuple(samples[max(0, newer - 1) :])


def _seen(before: SeenPartition | None, row: PartitionRow, at_s: float) -> SeenPartition:
    marks = before.marks if before is not None else ()
    if row.unfolded is not None:
        end = row.offset + row.unfolded
        marks = tuple(mark for mark in marks if mark.end > row.offset)  # up to the others all is folded
        if row.unfolded and (not marks or end > marks[-1].end):
            marks = (*marks, LogMark(at_s, end, before is None))
        if len(marks) > MARKS_MAX:
            marks = (marks[0], *marks[2::2])
    return SeenPartition(
        _standing(before.watermark if before else None, row.watermark_ns, at_s),
        _standing(before.held if before else None, row.watermark_held_by, at_s),
        _standing(before.snapshot if before else None, row.snapshot_offset, at_s),
        marks,
    )


def _standing(before: Standing | None, value: object, at_s: float) -> Standing:
    if before is not None and before.value == value:
        return before
    return Standing(value, at_s, before is None)
