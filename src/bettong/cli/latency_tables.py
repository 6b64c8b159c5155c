"""Where the latency of results goes, for `bettong status`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bettong.inspection.unmeasured import MeasureKind
from bettong.metrics import LATENCY_WINDOW_S

if TYPE_CHECKING:
    from rich.table import Table

    from bettong.inspection.deployment import Inspection
    from bettong.inspection.latency_parts import SinkParts

# Sinks that are listed without --latency.
_NAMED_MAX = 4


def latency_table(found: Sequence[SinkParts]) -> Table:
    """The parts of each sink's latency, and their sum below them."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, header_style="dim", pad_edge=False)
    for column in ("latency of", "part", "mean ms", "share", "p99 ms"):
        table.add_column(column, justify="left" if column in ("latency of", "part") else "right")
    for sink in found:
        for row in sink.parts:
            style = "bold" if row is sink.largest else None
            numbers = (f"{row.mean_ms:,.2f}", f"{row.share:.0%}", f"{row.p99_ms:,.2f}")
            table.add_row(escape(sink.sink), row.part.words, *numbers, style=style)
        table.add_row(escape(sink.sink), "together", f"{sink.mean_ms:,.2f}", "100%", "", style="dim")
    return table


def no_parts(found: Inspection) -> str:
    """Why the latency table is empty."""
    if MeasureKind.LATENCY_PARTS in found.not_measured:
        return MeasureKind.LATENCY_PARTS.is_off
    if found.overview.p50_ms is None:
        return f"nothing was delivered in the last {LATENCY_WINDOW_S} s"
    return (
        f"results of the last {LATENCY_WINDOW_S} s carry no parts of their latency: they are dead letters of receivers,"
        " or come from an older version"
    )


def largest_parts(found: Sequence[SinkParts]) -> list[str]:
    """The largest part of each sink's latency, in a line each."""
    from rich.markup import escape

    lines = [
        f"latency of {escape(sink.sink)}: mean {sink.mean_ms:,.1f} ms, {sink.largest.share:.0%} of it"
        f" {sink.largest.part.words} (p99 {sink.largest.p99_ms:,.1f} ms), of the last {LATENCY_WINDOW_S} s"
        for sink in found[:_NAMED_MAX]
    ]
    if len(found) > _NAMED_MAX:
        lines.append(f"latency of {len(found) - _NAMED_MAX} more sinks: --latency")
    return lines
