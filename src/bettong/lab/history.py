"""The same run again and again: where a metric went up or down for good. Pure.

A result is compared with all of its stretch, the results since the last step, each metric with its own. One that
differs by more than noise begins a stretch of its own: that is a step. All metrics of a result are compared at once, so
that `compare` corrects for their number, as it does for two results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from bettong.lab.results import COMMIT, BenchmarkResults
from bettong.lab.statistics.comparison import LEAST, ChangeVerdict, Comparison, MetricRuns, compare


@dataclass(frozen=True, slots=True)
class HistoryStep:
    """From the result of `date` and `commit` on, a metric is another one."""

    date: str
    commit: str
    comparison: Comparison


@dataclass(frozen=True, slots=True)
class MetricHistory:
    """A metric through all results that have it, that of the oldest commit first."""

    name: str
    unit: str
    runs: tuple[tuple[float, ...], ...]
    steps: tuple[HistoryStep, ...]


@dataclass(slots=True)
class _Course:
    """Of a metric, so far. `stretch`: all values since the last step."""

    unit: str
    runs: list[tuple[float, ...]] = field(default_factory=list)
    stretch: list[float] = field(default_factory=list)
    steps: list[HistoryStep] = field(default_factory=list)


def histories(results: Sequence[BenchmarkResults], *, least: float = LEAST) -> list[MetricHistory]:
    """The history of each metric that the newest commit's result has.

    A run of an older commit, as of `bettong lab run --against`, counts where that commit is. Raises LabError where a
    metric has changed its unit.
    """
    ordered = sorted(results, key=lambda each: each.order_key)
    found = {metric.name: _Course(metric.unit) for metric in (ordered[-1].metrics if ordered else ())}
    for result in ordered:
        metrics = [metric for metric in result.metrics if metric.name in found]
        courses = [(each.name, found[each.name]) for each in metrics]
        before = [
            MetricRuns(name, course.unit, tuple(course.stretch)) for name, course in courses if course.stretch
        ]
        for comparison in compare(before, metrics, least=least) if before else ():
            if comparison.verdict in {ChangeVerdict.BETTER, ChangeVerdict.WORSE}:
                commit = result.machine.get(COMMIT, "unknown")
                found[comparison.name].steps.append(HistoryStep(result.date, commit, comparison))
                found[comparison.name].stretch.clear()
        for each in metrics:
            found[each.name].runs.append(each.values)
            found[each.name].stretch += each.values
    return [
        MetricHistory(name, course.unit, tuple(course.runs), tuple(course.steps))
        for name, course in found.items()
    ]
