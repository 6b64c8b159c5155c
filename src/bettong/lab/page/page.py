"""Runs as one self-contained HTML page: summary, latencies, usage over time, the machine."""

from __future__ import annotations

import html
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
from hdrh.histogram import HdrHistogram

from bettong.lab.page.plots import Lines, PlotMark, svg
from bettong.lab.results import BenchmarkResults, MeasuredMetric, read, shown
from bettong.lab.series import CORES, FAULT, GC_PAUSE, LAG, LATENCY, MEMORY, NETWORK, PART, PSS, TAKEN

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NS_PER_MS = 1e6
_LOWEST_SHARE = 1e-5  # p99.999
_STYLE = """
:root { color-scheme: light dark; --text: #1d2530; --faint: #566; --line: #dde3ea; --page: #fff; --link: #1f5fa8 }
@media (prefers-color-scheme: dark) {
  :root { --text: #d6dde6; --faint: #93a0ae; --line: #303a46; --page: #14191f; --link: #7fb2ea }
}
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
  color: var(--text); background: var(--page) }
h1 { font-size: 1.5rem; margin-bottom: 0 } h2 { font-size: 1.1rem; margin-top: 2rem }
section + section { border-top: 1px solid var(--line); margin-top: 3rem; padding-top: 1rem }
a { color: var(--link) }
p.when { color: var(--faint); margin-top: 0 }
table { border-collapse: collapse; width: 100% }
td, th { padding: .25rem .75rem .25rem 0; border-bottom: 1px solid var(--line); text-align: left;
  vertical-align: top }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
table.facts td:first-child { width: 9rem; color: var(--faint) }
svg { width: 100%; height: auto }
svg text { font-family: system-ui, sans-serif !important }
"""
# Full at twice the wanted value.
_BAR = "<meter min=0 max=2 low=1 optimum=2 value={0:.3f}></meter> {0:.0%}"
# The metrics of each run in the table above several runs.
_HEADLINES = ("throughput", ", p50", ", p99", ", p99.9")
_OVER_TIME = {
    TAKEN: ("Throughput: messages that all stages take in", "messages/s"),
    LATENCY: ("Median latency", "ms"),
    PART: ("Parts of the latency, means of a second", "ms"),
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
    over_time, marks = _over_time(path / "series.parquet")
    of_repeat = "" if _repeats(results) == 1 else ", first repeat"
    parts = [
        f"<h1>{html.escape(_name(path, results))}</h1><p class=when>{html.escape(results.date)}</p>",
        _summary(results),
        _facts(f"Faults{of_repeat}", [(f"{each.at_s:.1f} s", _fault_text(each)) for each in marks])
        if marks
        else "",
        _section("Latency by percentile", _latency_plot(results)),
        *(
            _section(
                f"{title}, over time{of_repeat}", svg(lines, "s", unit, marks=marks, points=what == GC_PAUSE)
            )
            for what, (title, unit) in _OVER_TIME.items()
            if (lines := over_time.get(what))
        ),
        _facts("Settings", results.asked.items()),
        _facts("Machine", results.machine.items()),
    ]
    return f"<section id=run-{number}>{''.join(parts)}</section>"


def _section(title: str, content: str) -> str:
    return f"<h2>{html.escape(title)}</h2>{content}" if content else ""


def _fault_text(mark: PlotMark) -> str:
    return mark.name + (f", for {mark.lasting_s:.1f} s" if mark.lasting_s else "")


def _median_text(metric: MeasuredMetric) -> str:
    return html.escape(f"{shown(median(run.value for run in metric.runs))} {metric.unit}")


def _summary(results: BenchmarkResults) -> str:
    judged = any(each.of_bar is not None for each in results.measurements)
    repeats = _repeats(results)
    rows = []
    for each in results.measurements:
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
    return svg(lines, "percentile", "ms", scale=_scale_of_percentiles) if lines else ""


def _scale_of_percentiles(axes: Axes) -> None:
    from matplotlib.ticker import NullFormatter, ScalarFormatter

    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(ScalarFormatter())
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xticks([1, 10, 100, 1000, 10_000], ["p0", "p90", "p99", "p99.9", "p99.99"])


def _over_time(series: Path) -> tuple[Mapping[str, Lines], list[PlotMark]]:
    """Lines by the part of a metric's name behind the colon, and the faults; of the first repeat."""
    groups: dict[str, dict[str, tuple[list[float], list[float]]]] = defaultdict(dict)
    marks = []
    for row in pq.read_table(series).to_pylist() if series.exists() else []:
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
