"""Results, comparisons, growth and history as tables and lines for people."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from rich.markup import escape
from rich.table import Table

from bettong.lab.history import MetricHistory
from bettong.lab.numbers import shown
from bettong.lab.results import BenchmarkResults
from bettong.lab.statistics.comparison import ChangeVerdict, Comparison, families, runs_needed
from bettong.lab.statistics.growing import SeriesGrowth
from bettong.lab.statistics.search import Probe

_BARS = "▁▂▃▄▅▆▇█"
_TREND_MAX = 40
_STYLES = {
    ChangeVerdict.BETTER: "green",
    ChangeVerdict.WORSE: "bold red",
    ChangeVerdict.NO_CHANGE: "",
    ChangeVerdict.TOO_FEW: "yellow",
}


def comparison_table(found: Sequence[Comparison]) -> Table:
    """One row per metric."""
    table = Table(caption="median before and after; the change of the mean, with its 95 % interval")
    table.add_column("metric", overflow="fold")
    for name in ("before", "after", "change"):
        table.add_column(name, justify="right")
    table.add_column("verdict")
    for each in found:
        change = f"{_percent(each.ratio)} ({_percent(each.low)} to {_percent(each.high)})"
        table.add_row(
            escape(each.name),
            f"{shown(each.before)} {each.unit}",
            f"{shown(each.after)} {each.unit}",
            change,
            each.verdict.value,
            style=_STYLES[each.verdict],
        )
    return table


def results_table(results: BenchmarkResults) -> Table:
    """One row per metric: the median of its repeats, and their range."""
    table = Table(title=escape(str(results.asked.get("run", ""))))
    table.add_column("metric", overflow="fold")
    for name in ("median", "range"):
        table.add_column(name, justify="right")
    for each in results.measurements:
        values = [run.value for run in each.runs]
        spread = "" if len(values) == 1 else f"{shown(min(values))} - {shown(max(values))}"
        table.add_row(escape(each.name), f"{shown(median(values))} {each.unit}", spread)
    return table


def growth_table(found: Sequence[SeriesGrowth]) -> Table:
    """One row per series: its median, its growth relative to that, and the bound."""
    table = Table(caption="growth over the run, in percent of the median, with its 95 % interval")
    table.add_column("metric", overflow="fold")
    for name in ("median", "growth", "allowed"):
        table.add_column(name, justify="right")
    for each in found:
        cells = ("", "too few values")
        if each.growth is not None:
            grew = each.growth
            cells = (shown(grew.median), f"{grew.share:+.0%} ({grew.low:+.0%} to {grew.high:+.0%})")
        style = "bold red" if each.fault else ""
        table.add_row(escape(each.metric), *cells, f"{each.bound:.0%}", style=style)
    return table


def history_table(found: Sequence[MetricHistory]) -> Table:
    """One row per metric: its trend, and where it changed."""
    table = Table(caption="oldest commit to newest; the medians")
    table.add_column("metric", overflow="fold")
    for name in ("first", "newest"):
        table.add_column(name, justify="right")
    table.add_column("trend")
    table.add_column("changed", overflow="fold")
    for each in found:
        medians = [median(values) for values in each.runs]
        steps = [
            f"[{_STYLES[step.comparison.verdict]}]{step.comparison.verdict.value}[/] at {escape(step.commit)},"
            f" {step.date[:10]}: {_percent(step.comparison.ratio)}"
            for step in each.steps
        ]
        ends = (f"{shown(value)} {each.unit}" for value in (medians[0], medians[-1]))
        table.add_row(escape(each.name), *ends, _trend(medians), "\n".join(steps))
    return table


def _trend(values: Sequence[float]) -> str:
    """A bar for each of the newest forty values."""
    newest = values[-_TREND_MAX:]
    most = max(newest)
    return "".join(_BARS[round(value / most * (len(_BARS) - 1))] for value in newest)


def notes(found: Sequence[Comparison], differences: Sequence[str]) -> list[str]:
    """Lines below a comparison: other differences of the results, and how many runs a verdict takes."""
    lines = [f"also different: {each}" for each in differences]
    few = families(each.name for each in found if each.verdict is ChangeVerdict.TOO_FEW)
    for family, size in families(each.name for each in found).items():
        if family in few:
            lines.append(
                f"too few runs: a change of one of {size} {family} shows from {runs_needed(size)} runs of each on"
                " (`--repeats` of `bettong lab run`, `--runs` of `make bench`)"
            )
    return lines


def repeats_note(metrics: Sequence[str], repeats: int) -> str:
    """How many repeats a comparison with another run takes; "" if this one has as many."""
    sizes = families(metrics)
    if all(repeats >= runs_needed(size) for size in sizes.values()):
        return ""
    said = " and ".join(
        f"{runs_needed(size)} repeats for its {size} {family}" for family, size in sizes.items()
    )
    return f"to compare it with another run, each needs {said}: this one has {repeats} (`--repeats`)"


def probe_line(probe: Probe) -> str:
    """The outcome of a rate that was tried."""
    unknown = "" if probe.why or probe.lag_per_s is not None else "; too short to say whether the lag grows"
    said = f"missed: {probe.why}" if probe.why else f"sustained{unknown}"
    return f"{probe.rate:>15,.0f} messages/s  {said}"


def _percent(ratio: float) -> str:
    return f"{(ratio - 1) * 100:+.1f} %"
