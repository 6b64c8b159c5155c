"""Where results spend their latency in a run, by what receivers have counted since they started. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import add, lt, sub

from bettong.lab.series import PART, SeriesPoint
from bettong.latency import LatencyCounts
from bettong.latency_parts import PARTS
from bettong.metrics import LATENCY_PART

_NONE = (0.0,) * len(PARTS)
_MS = 1000.0


@dataclass(frozen=True, slots=True)
class PartTotals:
    """Results of a sink, and for each of PARTS the seconds that they spent in it, summed up."""

    results: int = 0
    sums_s: tuple[float, ...] = _NONE

    def __add__(self, other: PartTotals) -> PartTotals:
        return PartTotals(self.results + other.results, tuple(map(add, self.sums_s, other.sums_s)))

    def since(self, before: PartTotals) -> PartTotals:
        """What was added since `before`. Counts begin anew with the receiver: where one has fallen, all of it."""
        if self.results < before.results or any(map(lt, self.sums_s, before.sums_s)):
            return self
        return PartTotals(self.results - before.results, tuple(map(sub, self.sums_s, before.sums_s)))

    def means_ms(self) -> Iterator[tuple[str, float]]:
        """The mean of each part, by its name for people; nothing without results."""
        if self.results:
            for part, sum_s in zip(PARTS, self.sums_s, strict=True):
                yield part.words, _MS * sum_s / self.results


@dataclass(frozen=True, slots=True)
class PartsSample:
    """What each receiver has counted until `at_s`, Unix time, by its instance and the sink."""

    at_s: float
    totals: Mapping[tuple[str, str], PartTotals]


def totals(live: Mapping[str, Mapping[str, str]]) -> dict[tuple[str, str], PartTotals]:
    """The totals in the live records of services, by instance and sink. A part that cannot be read counts as nothing.

    `live`: the records by instance.
    """
    found: dict[tuple[str, str], PartTotals] = defaultdict(PartTotals)
    for instance, record in live.items():
        for name, text in record.items():
            metric, _, of = name.partition("/")
            sink, _, part = of.rpartition("/")
            if metric != LATENCY_PART.name or part not in PARTS:
                continue
            try:
                counts = LatencyCounts.parse(text)
            except ValueError:
                continue
            index = PARTS.index(part)
            sums_s = (*_NONE[:index], counts.sum_s, *_NONE[index + 1 :])
            # Every part counts every result.
            found[instance, sink] += PartTotals(0 if index else sum(counts.counts), sums_s)
    return dict(found)


def mean_parts(samples: Sequence[PartsSample], since_s: float) -> Iterator[tuple[str, str, float]]:
    """Sink, part and mean in ms of all results counted after the first sample from `since_s`, Unix time, on."""
    spent: dict[str, PartTotals] = defaultdict(PartTotals)
    for before_s, _, added in _added(samples):
        for sink, each in added.items() if before_s >= since_s else ():
            spent[sink] += each
    for sink, each in sorted(spent.items()):
        for words, mean_ms in each.means_ms():
            yield sink, words, mean_ms


def part_points(samples: Sequence[PartsSample], begin_s: float) -> Iterator[SeriesPoint]:
    """The mean of each part between two samples, at the time of the second one."""
    for _, at_s, added in _added(samples):
        for sink, each in added.items():
            for words, mean_ms in each.means_ms():
                yield SeriesPoint(at_s - begin_s, f"{sink}, {words}: {PART}", mean_ms)


def _added(samples: Sequence[PartsSample]) -> Iterator[tuple[float, float, dict[str, PartTotals]]]:
    """Of each sample but the first: when the one before was taken, when this one, and what was added in between.

    A sample may lack a receiver: Redis has lost its record.
    """
    known = dict(samples[0].totals) if samples else {}
    for before, sample in pairwise(samples):
        added: dict[str, PartTotals] = defaultdict(PartTotals)
        for (instance, sink), each in sample.totals.items():
            added[sink] += each.since(known.get((instance, sink), PartTotals()))
        known |= sample.totals
        yield before.at_s, sample.at_s, added
