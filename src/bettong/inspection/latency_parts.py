"""Where the latency of a sink's results goes, from the live records of receivers. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bettong import metrics
from bettong.latency_parts import PARTS, LatencyPart, PartsOfLate


@dataclass(frozen=True, slots=True)
class PartRow:
    """One part: its mean, its share of the latency's mean (0 to 1), and its p99.

    Means of parts add up to that of the latency; their p99 do not, as a result is seldom slow in all of them.
    """

    part: LatencyPart
    mean_ms: float
    share: float
    p99_ms: float


@dataclass(frozen=True, slots=True)
class SinkParts:
    """Of one sink, recently: its messages, their mean latency, and its parts in their order."""

    sink: str
    messages: int
    mean_ms: float
    parts: tuple[PartRow, ...]

    @property
    def largest(self) -> PartRow:
        """The part in which results spend most of their time."""
        return max(self.parts, key=lambda each: each.mean_ms)


def sink_parts(receivers: Iterable[Mapping[str, str]]) -> tuple[SinkParts, ...]:
    """By sink. With several receivers, the sums are added up, and the p99 is that of the slowest."""
    found = parts_of_late(receivers)
    return tuple(_together(sink, found[sink]) for sink in sorted(found))


def parts_of_late(receivers: Iterable[Mapping[str, str]]) -> Mapping[str, Sequence[PartsOfLate]]:
    """By sink, the report of each receiver that has delivered something. Reports that cannot be read are left out."""
    found: dict[str, list[PartsOfLate]] = {}
    for record in receivers:
        for name, text in record.items():
            metric, _, sink = name.partition("/")
            if metric == metrics.LATENCY_PARTS.name and sink and (parsed := _parsed(text)) is not None:
                found.setdefault(sink, []).append(parsed)
    return found


def _parsed(text: str) -> PartsOfLate | None:
    try:
        return PartsOfLate.parse(text)
    except ValueError:
        return None


def _together(sink: str, found: Sequence[PartsOfLate]) -> SinkParts:
    messages = sum(each.messages for each in found)
    means_ms = [1000 * sum(each.sums_s[index] for each in found) / messages for index in range(len(PARTS))]
    p99_ms = [max(each.p99_ms[index] for each in found) for index in range(len(PARTS))]
    mean_ms = sum(means_ms)
    rows = (
        PartRow(part, own_ms, own_ms / mean_ms if mean_ms else 0.0, slowest_ms)
        for part, own_ms, slowest_ms in zip(PARTS, means_ms, p99_ms, strict=True)
    )
    return SinkParts(sink, messages, mean_ms, tuple(rows))
