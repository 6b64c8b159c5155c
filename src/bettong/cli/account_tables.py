"""The table of `bettong status --accounts`: what became of messages, and counts that do not add up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from bettong.cli.printable import escaped

if TYPE_CHECKING:
    from rich.table import Table

    from bettong.inspection.accounts import AccountLine

_NAMED_MAX = 8
# Larger counts are shown in millions.
_EXACT_BELOW = 10_000_000

_COLUMNS: tuple[tuple[str, Callable[[AccountLine], int | None]], ...] = (
    ("in", lambda line: line.taken),
    ("used", lambda line: line.used),
    ("filtered", lambda line: line.filtered),
    ("late", lambda line: line.late),
    ("dead\nletters", lambda line: line.dead_letters),
    ("skipped", lambda line: line.skipped),
    ("partly\nlate", lambda line: line.partly_late),
    ("out", lambda line: line.given),
    ("pending", lambda line: line.pending),
)
_ALWAYS = ("in", "used", "out")


def accounts_table(found: Sequence[AccountLine]) -> Table:
    """A row for each input, computation and output, by stage: in = used + filtered + late + dead letters + skipped.

    Optional columns without any count are left out.
    """
    from rich.table import Table

    from bettong.inspection.accounts import shown as lines_shown

    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 1))
    table.add_column("stage / computation", vertical="bottom")
    shown = [(name, read) for name, read in _COLUMNS if _is_shown(name, read, found)]
    for name, _ in shown:
        table.add_column(name, justify="right", no_wrap=True, vertical="bottom")
    stage = None
    for line in lines_shown(found):
        if line.stage != stage:
            stage = line.stage
            table.add_row(f"[bold]{escaped(stage)}[/bold]")
        colour = "red" if line.differences else ""
        table.add_row(
            escaped(marked_name(line)),
            *(_number(name, read(line)) for name, read in shown),
            style=colour or None,
        )
    return table


def marked_name(line: AccountLine) -> str:
    """The name; `> ` marks an input of a stage, `< ` an output."""
    return {"input": "> ", "output": "< "}.get(line.kind, "  ") + line.name


def differences(found: Sequence[AccountLine]) -> list[str]:
    """The first counts that do not add up, in a line each."""
    from bettong.inspection.accounts import differences as all_of_them

    wrong = all_of_them(found)
    lines = [f"[red]the accounts do not add up[/red]: {escaped(text)}" for text in wrong[:_NAMED_MAX]]
    if len(wrong) > _NAMED_MAX:
        lines.append(f"[red]and {len(wrong) - _NAMED_MAX} more differences[/red] (--accounts)")
    return lines


def _is_shown(name: str, read: Callable[[AccountLine], int | None], found: Sequence[AccountLine]) -> bool:
    counts = [read(line) for line in found]
    return name in _ALWAYS or any(counts) or (name == "pending" and counts.count(None) < len(counts))


def _number(name: str, count: int | None) -> str:
    if not count:
        return "" if count is None or name not in (*_ALWAYS, "pending") else "0"
    return f"{count:,}" if count < _EXACT_BELOW else f"{count / 1e6:,.1f} M"
