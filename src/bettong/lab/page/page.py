"""Runs as one self-contained HTML page: summary, latencies, usage over time, the machine."""

from __future__ import annotations

import html
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from hdrh.histogram import HdrHistogram

from bettong.errors import LabError
from bettong.lab.folder import SERIES
from bettong.lab.numbers import shown
from bettong.lab.page.plots import Lines, PlotMark, plot
from bettong.lab.results import BenchmarkResults, MeasuredMetric, read, results_file
from bettong.lab.series import CORES, FAULT, GC_PAUSE, LAG, LATENCY, MEMORY, NETWORK, PART, PSS, TAKEN
from bettong.lab.spec import Objective
from bettong.lab.statistics.comparison import is_detail
from bettong.lab.statistics.objective import missed
from bettong.lab.tails import tail_notes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NS_PER_MS = 1e6
_LOWEST_SHARE = 1e-5  # p99.999
_STYLE = """
:root { color-scheme: light dark; --text: #1d2530; --faint: #566; --line: #dde3ea; --page: #fff; --link: #1f5fa8;
  --good: #1d7a3e; --bad: #b3312f }
@media (prefers-color-scheme: dark) {
  :root { --text: #d6dde6; --faint: #93a0ae; --line: #303a46; --page: #14191f; --link: #7fb2ea;
    --good: #5cc98a; --bad: #f08a86 }
}
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
  color: var(--text); background: var(--page) }
h1 { font-size: 1.5rem; margin-bottom: 0 } h2 { font-size: 1.2rem; margin-top: 2.5rem }
h3 { font-size: 1rem; margin: 1.75rem 0 .25rem }
section + section { border-top: 1px solid var(--line); margin-top: 3rem; padding-top: 1rem }
a { color: var(--link) }
p.when { color: var(--faint); margin-top: 0 } p.note { color: var(--faint); font-size: .85rem }
table { border-collapse: collapse; width: 100% }
td, th { padding: .25rem .75rem .25rem 0; border-bottom: 1px solid var(--line); text-align: left;
  vertical-align: top }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
table.facts td:first-child { width: 9rem; color: var(--faint) }
table.facts td { overflow-wrap: anywhere }
p.good { color: var(--good) } p.bad { color: var(--bad); font-weight: 600 }
.plot { overflow-x: auto }
ul.legend { list-style: none; display: flex; flex-wrap: wrap; gap: 0 1.25rem; margin: .25rem 0; padding: 0;
  font-size: .85rem; color: var(--faint) }
ul.legend i { display: inline-block; width: .8rem; height: .2rem; margin-right: .4rem; vertical-align: middle }
svg { display: block; width: 100%; min-width: 36rem; height: auto }
svg text { font-family: system-ui, sans-serif !important }
"""
# Full at twice the wanted value.
_BAR = "<meter min=0 max=2 low=1 optimum=2 value={0:.3f}></meter> {0:.0%}"
# The metrics of each run in the table above several runs.
_HEADLINES = ("throughput", ", p50", ", p99", ", p99.9")
_OVER_TIME = {
    TAKEN: ("Throughput: messages that all stages take in", "messages/s"),
    LATENCY: ("Median latency of each second", "ms"),
    PART: ("Parts of the latency, means of each second", "ms"),
    LAG: ("Lag", "records"),
    CORES: ("Cores in use", "cores"),
    MEMORY: ("Memory", "MB"),
    PSS: ("Memory, a shared page counted once (PSS)", "MB"),
    NETWORK: ("Network, loopback with it", "MB/s"),
    GC_PAUSE: ("Pauses of garbage collection", "ms"),
}


def page(paths: Sequence[Path]) -> str:
    """A page of run folders, or results files: a section for each, below a table of all if there are several.

    Raises LabError for a path that is neither, or if matplotlib is not installed.
    """
    runs = [(path, read(path)) for path in paths]
    names = [_name(path, results) for path, results in runs]
    title = names[0] if len(runs) == 1 else f"{len(runs)} runs"
    parts = [] if len(runs) == 1 else [f"<h1>{title}</h1>", _overview(runs)]
    parts += [_run(number, path, results) for number, (path, results) in enumerate(runs)]
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style>{''.join(parts)}</html>\n"
    )


def _name(path: Path, results: BenchmarkResults) -> str:
    return str(results.asked.get("run", path.stem))


def _overview(runs: Sequence[tuple[Path, BenchmarkResults]]) -> str:
    """A row for each run, with its most important metrics."""
    rows = []
    for number, (path, results) in enumerate(runs):
        headlines = "<br>".join(
            f"{html.escape(each.name)}: {_median_text(each)}"
            for each in results.measurements
            if each.name.endswith(_HEADLINES)
        )
        name = html.escape(_name(path, results))
        rows.append(f"<tr><td><a href='#run-{number}'>{name}</a></td><td class=number>{headlines}</td></tr>")
    return f"<table>{''.join(rows)}</table>"


def _run(number: int, path: Path, results: BenchmarkResults) -> str:
    over_time, marks = _over_time(results_file(path).with_name(SERIES))
    of_repeat = "" if _repeats(results) == 1 else ", first repeat"
    details = [each for each in results.measurements if is_detail(each.name)]
    parts = [
        f"<h1>{html.escape(_name(path, results))}</h1>",
        _introduction(results),
        _metrics_table([each for each in results.measurements if each not in details]),
        *(f"<p class=note>{html.escape(note)}</p>" for note in tail_notes(results)),
        _facts(f"Faults{of_repeat}", [(f"{each.at_s:.1f} s", _fault_text(each)) for each in marks])
        if marks
        else "",
        _section("Latency by percentile", _latency_plot(results)),
        _section(f"Over time{of_repeat}", _plots_over_time(over_time, marks)),
        _section("Details", _metrics_table(details)),
        _facts("Settings", results.asked.items()),
        _facts("Machine", results.machine.items()),
    ]
    return f"<section id=run-{number}>{''.join(parts)}</section>"


def _introduction(results: BenchmarkResults) -> str:
    """When and how often it ran, under which load, and whether the objective was met."""
    asked, repeats = results.asked, _repeats(results)
    when = f"{datetime.fromisoformat(results.date):%d %B %Y, %H:%M UTC}" if results.date else ""
    often = "once" if repeats == 1 else f"{repeats} times"
    load = asked.get("steps") or (f"{asked['messages']:,} messages" if "messages" in asked else "")
    said = [f"Measured {often}", *([load] if load else []), when]
    text = f"<p class=when>{html.escape('; '.join(map(str, said)))}</p>"
    if results.objective == Objective():
        return text
    faults = missed(results.objective, results.latencies_ms, results.judged_steps)
    bounds = ", ".join(
        f"{name.removesuffix('_ms')} {bound:g} ms"
        for name, bound in results.objective.model_dump(exclude_none=True).items()
    )
    judged = "".join(f"<p class=bad>Objective missed: {html.escape(each)}</p>" for each in faults)
    return text + (judged or f"<p class=good>Objective met: at most {bounds}</p>")


def _plots_over_time(over_time: Mapping[str, Lines], marks: Sequence[PlotMark]) -> str:
    """All plots over one span of time, so that what is at the same place was at the same time."""
    ends_s = [along[-1] for lines in over_time.values() for along, _ in lines.values()]
    scale = partial(_scale_of_time, end_s=max(ends_s, default=1.0))
    return "".join(
        f"<h3>{html.escape(title)}</h3>"
        + plot(lines, "s", unit, scale=scale, marks=marks, points=what == GC_PAUSE)
        for what, (title, unit) in _OVER_TIME.items()
        if (lines := over_time.get(what))
    )


def _section(title: str, content: str) -> str:
    return f"<h2>{html.escape(title)}</h2>{content}" if content else ""


def _fault_text(mark: PlotMark) -> str:
    return mark.name + (f", for {mark.lasting_s:.1f} s" if mark.lasting_s else "")


def _median_text(metric: MeasuredMetric) -> str:
    return html.escape(f"{shown(median(run.value for run in metric.runs))} {metric.unit}")


def _metrics_table(metrics: Sequence[MeasuredMetric]) -> str:
    """A row for each metric; "" without any."""
    if not metrics:
        return ""
    judged = any(each.of_bar is not None for each in metrics)
    repeats = max(len(each.runs) for each in metrics)
    rows = []
    for each in metrics:
        values = [run.value for run in each.runs]
        cells = [
            _median_text(each),
            *([f"{shown(min(values))} to {shown(max(values))}"] if repeats > 1 else []),
        ]
        if judged:
            cells.append("" if each.of_bar is None else _BAR.format(each.of_bar))
        numbers = "".join(f"<td class=number>{cell}</td>" for cell in cells)
        rows.append(f"<tr><td>{html.escape(each.name)}</td>{numbers}</tr>")
    names = [f"median of {repeats}", "range"] if repeats > 1 else ["measured"]
    names += ["of its bar"] if judged else []
    head = "".join(f"<th class=number>{name}</th>" for name in names)
    return f"<table><tr><th>metric</th>{head}</tr>{''.join(rows)}</table>"


def _repeats(results: BenchmarkResults) -> int:
    return max(len(each.runs) for each in results.measurements)


def _facts(title: str, facts: Iterable[tuple[str, object]]) -> str:
    rows = (
        f"<tr><td>{html.escape(name)}</td><td>{html.escape(str(value))}</td></tr>" for name, value in facts
    )
    return f"<h2>{title}</h2><table class=facts>{''.join(rows)}</table>"


def _latency_plot(results: BenchmarkResults) -> str:
    """The latencies of each sink and step, over 1 / (1 - percentile), so that the tail is not squeezed."""
    lines: dict[str, tuple[list[float], list[float]]] = {}
    for each in results.measurements:
        encoded = [run.histogram for run in each.runs if run.histogram]
        if not encoded:
            continue
        merged = HdrHistogram.decode(encoded[0])
        for other in encoded[1:]:
            merged.add(HdrHistogram.decode(other))
        shares = [_LOWEST_SHARE ** (step / 100) for step in range(101)]
        shares = [share for share in shares if share * merged.get_total_count() >= 1]
        values = [merged.get_value_at_percentile(100 * (1 - share)) / _NS_PER_MS for share in shares]
        lines[each.name.rpartition(", ")[0]] = ([1 / share for share in shares], values)
    return plot(lines, "percentile", "ms", scale=_scale_of_percentiles) if lines else ""


def _scale_of_percentiles(axes: Axes) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter, NullLocator

    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=20))
    axes.yaxis.set_major_formatter("{x:,.10g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks([1, 10, 100, 1000, 10_000], ["p0", "p90", "p99", "p99.9", "p99.99"])


def _scale_of_time(axes: Axes, *, end_s: float) -> None:
    axes.set_xlim(0, end_s)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter("{x:,.10g}")


def _over_time(series: Path) -> tuple[Mapping[str, Lines], list[PlotMark]]:
    """Lines by the part of a metric's name behind the colon, and the faults; of the first repeat."""
    groups: dict[str, dict[str, tuple[list[float], list[float]]]] = defaultdict(dict)
    marks = []
    for row in _rows(series):
        who, _, what = row["metric"].rpartition(": ")
        if row["repeat"] != 1:
            continue
        if what == FAULT:
            marks.append(PlotMark(who, row["at_s"], row["value"]))
            continue
        at_s, values = groups[what].setdefault(who, ([], []))
        at_s.append(row["at_s"])
        values.append(row["value"])
    return groups, marks


def _rows(series: Path) -> list[dict[str, Any]]:
    """The rows of a file; none if there is no such file. Raises LabError for a file that is damaged."""
    if not series.exists():
        return []
    try:
        rows: list[dict[str, Any]] = pq.read_table(
            series, columns=["repeat", "at_s", "metric", "value"]
        ).to_pylist()
    except (OSError, pa.ArrowException) as error:
        raise LabError(
            f"{series} holds no metrics over time: {error}; remove it for a page without plots over time"
        ) from None
    return rows
