"""Measurements that are switched off by BETTONG_MEASURES=off, as services' records show it. Pure.

People who see no numbers have to know whether there were none, or whether they are not measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from bettong import metrics


class MeasureKind(StrEnum):
    """The measurements that can be switched off, in words for people."""

    LATENCY_PARTS = "parts of latencies"
    COMPUTATIONS = "times of computations"
    HOT_KEYS = "hot keys"

    @property
    def is_off(self) -> str:
        """The line that is shown in its place."""
        return f"{self} are not measured (BETTONG_MEASURES=off)"


def unmeasured(
    receivers: Iterable[Mapping[str, str]], partitions: Iterable[Mapping[str, str]]
) -> tuple[MeasureKind, ...]:
    """From the live records of both; empty where these do not show it.

    A receiver that delivers and measures writes the counts of LATENCY_PART, whatever came; a worker that measures
    writes TIMES with each report, one that does not writes "" there. The parts need both: workers stamp results.
    """
    delivering = [record for record in receivers if metrics.MESSAGES.name in record]
    written = {name.partition("/")[0] for record in delivering for name in record}
    times = [text for record in partitions if (text := record.get(metrics.TIMES.name)) is not None]
    are_folds_off = bool(times) and not any(times)
    are_receivers_off = bool(delivering) and metrics.LATENCY_PART.name not in written
    found = []
    if metrics.LATENCY_PARTS.name not in written and (are_folds_off or are_receivers_off):
        found.append(MeasureKind.LATENCY_PARTS)
    if are_folds_off:
        found += [MeasureKind.COMPUTATIONS, MeasureKind.HOT_KEYS]
    return tuple(found)
