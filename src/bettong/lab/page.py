"""A run as one page of HTML that needs nothing else: summary, latencies, what was used over time, the machine."""

from __future__ import annotations

import html
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from io import StringIO
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
from hdrh.histogram import HdrHistogram

from bettong.errors import LabError
from bettong.lab.results import BenchmarkResults, read
from bettong.lab.sampling import CORES, LAG, LATENCY, MEMORY

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Lines = Mapping[str, tuple[Sequence[float], Sequence[float]]]

_NS_PER_MS = 1e6
_LOWEST_SHARE = 1e-5  # p99.999
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1d2530;
  background: #fff }
h1 { font-size: 1.5rem; margin-bottom: 0 } h2 { font-size: 1.1rem; margin-top: 2rem }
p.when { color: #566; margin-top: 0 }
table { border-collapse: collapse; width: 100% }
td, th { padding: .25rem .75rem .25rem 0; border-bottom: 1px solid #dde3ea; text-align: left; vertical-align: top }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
table.facts td:first-child { width: 9rem; color: #566 }
svg { width: 100%; height: auto }
"""


def page(folder: Path) -> str:
    """Of a run's folder. Raises LabError where it is none, or where matplotlib is not installed."""
    results = read(folder)
    series = folder / "series.parquet"
    name = str(results.asked.get("run", folder.name))
    parts = [
        f"<h1>{html.escape(name)}</h1><p class=when>{html.escape(results.date)}</p>",
        _summary(results),
        _section("Latency by percentile", _latency_plot(results)),
        *(
            _section(f"{title}, over time", _plot(lines, "s", unit))
            for title, unit, lines in _over_time(series)
            if lines
        ),
        _facts("Asked", results.asked),
        _facts("Machine", results.machine),
    ]
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>{html.escape(name)}</title><style>{_STYLE}</style>{''.join(filter(None, parts))}</html>\n"
    )


def _section(title: str, content: str) -> str:
    return f"<h2>{html.escape(title)}</h2>{content}" if content else ""


def _summary(results: BenchmarkResults) -> str:
    rows = []
    for each in results.measurements:
        values = [run.value for run in each.runs]
        spread = f"{min(values):,.4g} to {max(values):,.4g}" if len(values) > 1 else ""
        cells = (f"{median(values):,.4g} {each.unit}", spread)
        numbers = "".join(f"<td class=number>{html.escape(cell)}</td>" for cell in cells)
        rows.append(f"<tr><td>{html.escape(each.name)}</td>{numbers}</tr>")
    repeats = max(len(each.runs) for each in results.measurements)
    head = f"<tr><th>metric</th><th class=number>median of {repeats}</th><th class=number>range</th></tr>"
    return f"<table>{head}{''.join(rows)}</table>"


def _facts(title: str, facts: Mapping[str, object]) -> str:
    rows = (
        f"<tr><td>{html.escape(name)}</td><td>{html.escape(str(value))}</td></tr>"
        for name, value in facts.items()
    )
    return f"<h2>{title}</h2><table class=facts>{''.join(rows)}</table>"


def _latency_plot(results: BenchmarkResults) -> str:
    """Each sink and step, over 1 / (1 - percentile), so that the tail is not squeezed."""
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

    def scale(axes: Axes) -> None:
        from matplotlib.ticker import NullFormatter, ScalarFormatter

        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(ScalarFormatter())
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.set_xticks([1, 10, 100, 1000, 10_000], ["p0", "p90", "p99", "p99.9", "p99.99"])

    return _plot(lines, "percentile", "ms", scale) if lines else ""


def _over_time(series: Path) -> list[tuple[str, str, Lines]]:
    """(title, unit, lines), by what follows the colon in a metric's name; of the first repeat."""
    groups: dict[str, dict[str, tuple[list[float], list[float]]]] = defaultdict(dict)
    for row in pq.read_table(series).to_pylist() if series.exists() else []:
        if row["repeat"] == 1:
            who, _, what = row["metric"].partition(": ")
            at_s, values = groups[what].setdefault(who, ([], []))
            at_s.append(row["at_s"])
            values.append(row["value"])
    titles = {CORES: ("Cores in use", "cores"), MEMORY: ("Memory", "MB")}
    titles |= {LATENCY: ("Median latency", "ms"), LAG: ("Lag", "records")}
    return [(*titles.get(what, (what, "")), lines) for what, lines in groups.items()]


def _plot(lines: Lines, x_label: str, y_label: str, scale: Callable[[Axes], None] | None = None) -> str:
    try:
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure as Plot
    except ImportError:
        raise LabError("a page needs the package matplotlib: pip install 'bettong[lab]'") from None
    plot = Plot(figsize=(9, 3.4), layout="constrained")
    FigureCanvasSVG(plot)
    axes = plot.subplots()
    for name, (along, values) in lines.items():
        axes.plot(along, values, label=name, linewidth=1.4)
    if scale is not None:
        scale(axes)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.grid(visible=True, alpha=0.25)
    axes.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    text = StringIO()
    plot.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue().partition("<svg")[1] + text.getvalue().partition("<svg")[2]
