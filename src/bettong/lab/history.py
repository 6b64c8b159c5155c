"""The history of a run: from which commit on a metric is better or worse. Pure.

A result of a metric is compared with its current stretch: all its results since its last step. One that differs by more
than noise is a step, and begins a new stretch. All metrics of a result are compared at once, so that `compare` corrects
for their number, as it does for two results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from bettong.lab.results import COMMIT, BenchmarkResults
from bettong.lab.statistics.comparison import LEAST, ChangeVerdict, Comparison, MetricRuns, compare


@dataclass(frozen=True, slots=True)
class HistoryStep:
    """A lasting change of a metric, from the result of `date` and `commit` on."""

    date: str
    commit: str
    comparison: Comparison


@dataclass(frozen=True, slots=True)
class MetricHistory:
    """A metric through all results that have it, ordered by commit, oldest first."""

    name: str
    unit: str
    runs: tuple[tuple[float, ...], ...]
    steps: tuple[HistoryStep, ...]


@dataclass(slots=True)
class _OpenHistory:
    """The history of a metric so far. `stretch`: all values since the last step."""

    unit: str
    runs: list[tuple[float, ...]] = field(default_factory=list)
    stretch: list[float] = field(default_factory=list)
    steps: list[HistoryStep] = field(default_factory=list)


def histories(results: Sequence[BenchmarkResults], *, least: float = LEAST) -> list[MetricHistory]:
    """The history of each metric that the newest commit's result has.

    A run of an older commit, as of `bettong lab run --against`, counts at the time of that commit. Raises LabError if
    the unit of a metric has changed.
    """
    ordered = sorted(results, key=lambda each: each.order_key)
    found = {metric.name: _OpenHistory(metric.unit) for metric in (ordered[-1].metrics if ordered else ())}
    for result in ordered:
        metrics = [metric for metric in result.metrics if metric.name in found]
        open_histories = [(each.name, found[each.name]) for each in metrics]
        before = [
            MetricRuns(name, history.unit, tuple(history.stretch))
            for name, history in open_histories
            if history.stretch
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
        MetricHistory(name, history.unit, tuple(history.runs), tuple(history.steps))
        for name, history in found.items()
    ]
