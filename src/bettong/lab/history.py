"""The same run again and again: where a metric went up or down for good. Pure.

A result is compared with all of its stretch, the results since the last step. One that differs by more than noise
begins a stretch of its own: that is a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bettong.lab.comparison import LEAST, ChangeVerdict, Comparison, MetricRuns, compare
from bettong.lab.results import BenchmarkResults


@dataclass(frozen=True, slots=True)
class HistoryStep:
    """From the result of `date` and `commit` on, a metric is another one."""

    date: str
    commit: str
    comparison: Comparison


@dataclass(frozen=True, slots=True)
class MetricHistory:
    """A metric through all results that have it, oldest first."""

    name: str
    unit: str
    runs: tuple[tuple[float, ...], ...]
    steps: tuple[HistoryStep, ...]


def histories(results: Sequence[BenchmarkResults], *, least: float = LEAST) -> list[MetricHistory]:
    """Of each metric of the newest result. Raises LabError where a metric has changed its unit."""
    ordered = sorted(results, key=lambda each: each.date)
    return [_history(metric.name, ordered, least) for metric in ordered[-1].metrics] if ordered else []


def _history(name: str, ordered: Sequence[BenchmarkResults], least: float) -> MetricHistory:
    found: list[tuple[BenchmarkResults, MetricRuns]] = [
        (each, metric) for each in ordered for metric in each.metrics if metric.name == name
    ]
    stretch, steps = list(found[0][1].values), []
    for result, metric in found[1:]:
        before = MetricRuns(name, found[0][1].unit, tuple(stretch))
        (comparison,) = compare([before], [metric], least=least)
        if comparison.verdict in {ChangeVerdict.BETTER, ChangeVerdict.WORSE}:
            steps.append(HistoryStep(result.date, result.machine.get("commit", "unknown"), comparison))
            stretch = []
        stretch += metric.values
    return MetricHistory(name, found[0][1].unit, tuple(metric.values for _, metric in found), tuple(steps))
