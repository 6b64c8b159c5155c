"""The results of a benchmark: a table, a JSON file by date, and a page beside it."""

import dataclasses
import json
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from rich.table import Table

from benchmarks.measuring import Before, Measurement
from bettong.lab.numbers import shown
from bettong.lab.page.page import page

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
            f"{shown(median(values))} {measurement.unit}",
            f"{shown(min(values))} - {shown(max(values))}",
            f"{measurement.of_loop:.2f}" if measurement.of_loop is not None else "",
            f"{median(cpu):.2f}" if cpu else "",
            f"{shown(bar.bar)}{unit}{met}" if bar else "",
            f"{shown(bar.goal)}{unit}" if bar else "",
            _beside(measurement.before),
        )
    return rows


def save(
    folder: Path, measurements: list[Measurement], facts: dict[str, str], asked: dict[str, str | int]
) -> Path:
    """Writes `<date>.json` and `<date>.html` into the folder, which is made; returns the path of the first."""
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
    path.with_suffix(".html").write_text(page([path]))
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


def _beside(before: list[Before]) -> str:
    """What the machine was like before the runs; medians."""
    if not before:
        return ""
    loop = median(each.plain_loop_per_s for each in before)
    hiccups = median(each.hiccup_p50_us for each in before), median(each.hiccup_p99_us for each in before)
    return f"{loop / 1e6:.2f} M/s; {hiccups[0]:.0f}, {hiccups[1]:.0f} us"
