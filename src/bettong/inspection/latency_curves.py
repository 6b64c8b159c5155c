"""The latency of each sink by percentile, with its parts, from the live records of receivers. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bettong import metrics
from bettong.inspection.latency_parts import parts_of_late
from bettong.latency_parts import PARTS
from bettong.latency_percentiles import SHARES, LatencyPercentiles

_Records = Iterable[Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class PartCurve:
    """The percentiles, at SHARES, of one part of the latency, ms."""

    part: str
    within_ms: Sequence[float]


@dataclass(frozen=True, slots=True)
class LatencyCurve:
    """Of one sink, recently: its messages, the percentiles of their latency at SHARES, ms, and those of each part.

    With several receivers, each percentile is of the slowest one. `parts` is empty while unknown.
    """

    sink: str
    messages: int
    within_ms: Sequence[float]
    parts: tuple[PartCurve, ...]


def latency_curves(receivers: _Records) -> tuple[LatencyCurve, ...]:
    """By sink. Text in a record that cannot be read is left out."""
    records = list(receivers)
    found: dict[str, list[LatencyPercentiles]] = {}
    for record in records:
        for name, text in record.items():
            metric, _, sink = name.partition("/")
            if metric == metrics.LATENCY_PERCENTILES.name and sink and (parsed := _parsed(text)) is not None:
                found.setdefault(sink, []).append(parsed)
    parts = {
        sink: [each.within_ms for each in of_late if each.within_ms]
        for sink, of_late in parts_of_late(records).items()
    }
    return tuple(
        LatencyCurve(
            sink,
            sum(each.messages for each in found[sink]),
            _slowest([each.within_ms for each in found[sink]]),
            tuple(
                PartCurve(part.words, _slowest([each[index] for each in parts[sink]]))
                for index, part in enumerate(PARTS)
                if parts.get(sink)
            ),
        )
        for sink in sorted(found)
    )


def p999_ms(receivers: _Records, sink: str) -> float | None:
    """The p99.9 latency of a sink, ms; None where nothing was delivered recently."""
    name = f"{metrics.LATENCY_PERCENTILES.name}/{sink}"
    known = [parsed for record in receivers if (parsed := _parsed(record.get(name, ""))) is not None]
    return max((each.within_ms[SHARES.index(0.999)] for each in known), default=None)


def _parsed(text: str) -> LatencyPercentiles | None:
    try:
        return LatencyPercentiles.parse(text)
    except ValueError:
        return None


def _slowest(found: Sequence[Sequence[float]]) -> Sequence[float]:
    return [max(each) for each in zip(*found, strict=True)]
