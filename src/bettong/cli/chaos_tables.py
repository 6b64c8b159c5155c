"""The report of a chaos run as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from bettong.cli.fitting_tables import print_fitting

if TYPE_CHECKING:
    from rich.console import Console

    from bettong.chaos.report import Report


def show(report: Report, console: Console) -> None:
    """Prints the whole report, the verdict last."""
    tables = [faults(report), sinks(report), memory(report), *([growth(report)] if report.growth else [])]
    for table in tables:
        print_fitting(console, table)
    for kind, why in report.not_tried.items():
        console.print(f"NOT TRIED: {kind}: {why}", style="bold yellow", markup=False, soft_wrap=True)
    for line in report.broken:
        console.print(f"BROKEN: {line}", style="bold red", markup=False, soft_wrap=True)
    if not report.broken:
        console.print(f"{report.injected} faults injected, every result as expected", style="bold green")


def faults(report: Report) -> Table:
    """A row for each kind of fault."""
    table = Table(
        title=f"{report.name}, seed {report.seed}: faults",
        caption="Recovery: until a result of a message due after the fault is delivered; only of faults alone."
        + (
            f" Without faults it takes {report.latency_p50_s:.2f} s."
            if report.latency_p50_s is not None
            else ""
        ),
    )
    table.add_column("fault")
    for name in ("injected", "missed", "overlapped", "recovery p50", "max"):
        table.add_column(name, justify="right")
    for kind in report.kinds:
        table.add_row(
            kind.kind,
            str(kind.injected),
            str(kind.missed),
            str(kind.together),
            _seconds(kind.recovery_p50_s),
            _seconds(kind.recovery_max_s),
        )
    return table


def sinks(report: Report) -> Table:
    """A row for each sink and channel."""
    table = Table(title=f"results, against {report.golden}")
    for name in ("sink", "channel", "compared by"):
        table.add_column(name)
    for name in ("expected", "found", "lost", "doubled", "never expected", "out of order"):
        table.add_column(name, justify="right")
    for each in report.sinks:
        counts = (
            each.expected,
            each.found,
            each.lost,
            each.doubled,
            each.unexpected,
            each.misplaced,
        )
        table.add_row(
            each.sink,
            each.channel,
            each.compare,
            *(f"{count:,}" for count in counts),
            style=None if each.right else "bold red",
        )
    return table


def memory(report: Report) -> Table:
    """A row for each kind of process."""
    table = Table(title="memory (RSS of one process)")
    table.add_column("process")
    for name in ("peak", "bound"):
        table.add_column(name, justify="right")
    for each in report.memory:
        style = "bold red" if each.peak_mb > each.bound_mb else None
        table.add_row(each.process, f"{each.peak_mb:.0f} MB", f"{each.bound_mb:.0f} MB", style=style)
    return table


def growth(report: Report) -> Table:
    """A row for each metric that was observed over the run."""
    table = Table(
        title="growth over the run",
        caption="Of a line through the medians of 20 stretches, in parts of the median; the interval holds with 95 %.",
    )
    table.add_column("metric")
    for name in ("median", "growth", "interval", "bound"):
        table.add_column(name, justify="right")
    for each in report.growth:
        table.add_row(
            each.metric,
            f"{each.median:.4g} {each.unit}",
            f"{each.share:+.1%}",
            f"{each.low:+.1%} to {each.high:+.1%}",
            f"{each.bound:+.0%}" if each.bound is not None else "-",
            style=None if each.holds else "bold red",
        )
    return table


def _seconds(value: float | None) -> str:
    return f"{value:.2f} s" if value is not None else "-"
