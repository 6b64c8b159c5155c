"""The results of a benchmark: a table, a JSON file by date, and a plot beside it."""

import dataclasses
import json
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure as Plot
from rich.table import Table

from benchmarks.measuring import Before, Measurement

_COLUMNS = ("", "median", "range", "x plain loop", "CPU s/million", "bar", "goal", "machine")
_CAPTION = (
    "machine: a plain CPython loop just before the run; by how much a sleep of 1 ms was too long, p50 and p99"
)


def table(measurements: list[Measurement], title: str) -> Table:
    """For people."""
    rows = Table(*_COLUMNS, title=title, caption=_CAPTION)
    for measurement in measurements:
        values = measurement.values
        cpu = [each.cpu_s_per_million for each in measurement.samples if each.cpu_s_per_million is not None]
        bar = measurement.bar
        unit = (
            " x"
            if bar and bar.of_loop
            else ""
            if measurement.unit == "messages/s"
            else f" {measurement.unit}"
        )
        met = "" if measurement.of_bar is None else ": reached" if measurement.of_bar >= 1 else ": missed"
        rows.add_row(
            measurement.name,
            f"{_number(median(values))} {measurement.unit}",
            f"{_number(min(values))} - {_number(max(values))}",
            f"{measurement.of_loop:.2f}" if measurement.of_loop is not None else "",
            f"{median(cpu):.2f}" if cpu else "",
            f"{_number(bar.bar)}{unit}{met}" if bar else "",
            f"{_number(bar.goal)}{unit}" if bar else "",
            _beside(measurement.before),
        )
    return rows


def save(
    folder: Path, measurements: list[Measurement], facts: dict[str, str], asked: dict[str, str | int]
) -> Path:
    """Writes `<date>.json` and `<date>.svg` into the folder, which is made; returns the path of the first."""
    now = datetime.now(UTC)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{now:%Y-%m-%dT%H-%M-%SZ}.json"
    content = {
        "date": now.isoformat(timespec="seconds"),
        "machine": facts,
        "asked": asked,
        "measurements": [_plain(measurement) for measurement in measurements],
    }
    path.write_text(json.dumps(content, indent=1) + "\n")
    _plot(
        measurements,
        f"{now:%Y-%m-%d %H:%M} UTC, {facts['processor']}, {facts['cores']} cores",
        path.with_suffix(".svg"),
    )
    return path


def _plain(measurement: Measurement) -> dict[str, object]:
    values = measurement.values
    return {
        "name": measurement.name,
        "unit": measurement.unit,
        "median": median(values),
        "range": [min(values), max(values)],
        "of_plain_loop": measurement.of_loop,
        "bar": dataclasses.asdict(measurement.bar) if measurement.bar else None,
        "of_bar": measurement.of_bar,
        "runs": [
            dataclasses.asdict(sample) | {"before": dataclasses.asdict(before)}
            for sample, before in zip(measurement.samples, measurement.before, strict=True)
        ],
    }


def _plot(measurements: list[Measurement], title: str, path: Path) -> None:
    speeds = [measurement for measurement in measurements if measurement.unit == "messages/s"]
    judged = [measurement for measurement in measurements if measurement.of_bar is not None]
    panels = [each for each in (speeds, judged) if each]
    plot = Plot(figsize=(9, 1.5 + 0.4 * sum(map(len, panels)) + len(panels)), layout="constrained")
    FigureCanvasSVG(plot)
    plot.suptitle(title, fontsize=9)
    every = plot.subplots(len(panels), 1, squeeze=False, height_ratios=[len(each) + 1 for each in panels])[
        :, 0
    ]
    for axes, shown in zip(every, panels, strict=True):
        middles = [median(each.values) if shown is speeds else each.of_bar or 0.0 for each in shown]
        axes.barh(range(len(shown)), middles, color="#6a8caf")
        axes.set_yticks(range(len(shown)), [each.name for each in shown], fontsize=8)
        axes.invert_yaxis()
        axes.set_xscale("log")
        axes.set_xlabel(
            "messages/s, median and range" if shown is speeds else "of its bar (line: reached)", fontsize=8
        )
        if shown is judged:
            axes.axvline(1, color="#b0413e")
    for row, measurement in enumerate(speeds):
        every[0].plot([min(measurement.values), max(measurement.values)], [row, row], color="black")
    plot.savefig(path)


def _beside(before: list[Before]) -> str:
    """What the machine was like before the runs; medians."""
    if not before:
        return ""
    loop = median(each.plain_loop_per_s for each in before)
    hiccups = median(each.hiccup_p50_us for each in before), median(each.hiccup_p99_us for each in before)
    return f"{loop / 1e6:.2f} M/s; {hiccups[0]:.0f}, {hiccups[1]:.0f} us"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
