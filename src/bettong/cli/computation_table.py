"""The table of `bettong status --computations`: where the time goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bettong.cli.printable import escaped

if TYPE_CHECKING:
    from rich.table import Table

    from bettong.inspection.computations import ComputationLine

_MS_FROM_US = 1000
_COUNTED_BELOW = 10_000_000


def computations_table(found: Sequence[ComputationLine]) -> Table:
    """A row for each computation and output, by stage: how busy it is, and how long a frame takes there.

    The busiest of each stage is bold.
    """
    from rich.table import Table

    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 1))
    table.add_column("stage / computation", vertical="bottom", min_width=18)
    for name in ("in", "out", "busy,\nof a core", "of the\nstage"):
        table.add_column(name, justify="right", no_wrap=True, vertical="bottom")
    for name in ("a frame\np50", "\np99", "\nmax"):
        table.add_column(name, justify="right", no_wrap=True, vertical="bottom")
    for stage in dict.fromkeys(line.stage for line in found):
        lines = [line for line in found if line.stage == stage]
        whole, most = sum(line.busy_share for line in lines), max(line.busy_share for line in lines)
        table.add_row(f"[bold]{escaped(stage)}[/bold]")
        for line in lines:
            name = escaped(line.name) if line.name else "[dim]frames read[/dim]"
            table.add_row(
                f"  {name}",
                _count(line.taken),
                _count(line.given),
                f"{line.busy_share:.1%}",
                f"{line.busy_share / whole:.0%}" if whole else "",
                *map(_duration, (line.p50_us, line.p99_us, line.max_us)),
                style="bold" if whole and line.busy_share == most else None,
            )
    return table


def _count(count: int | None) -> str:
    if count is None:
        return ""
    return f"{count:,}" if count < _COUNTED_BELOW else f"{count / 1e6:,.1f} M"


def _duration(took_us: float) -> str:
    if not took_us:
        return ""
    return f"{took_us:,.0f} us" if took_us < _MS_FROM_US else f"{took_us / _MS_FROM_US:,.1f} ms"
