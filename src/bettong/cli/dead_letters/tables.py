"""Dead letters as a table for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bettong.inspection.text import moment

if TYPE_CHECKING:
    from rich.table import Table

    from bettong.frames.dead_letter_id import DeadLetterId
    from bettong.inspection.dead_letters import Found, ResendMark

_REASON_CHARACTERS = 120


def dead_letters_table(found: list[Found], marks: Mapping[DeadLetterId, ResendMark]) -> Table:
    """One line a dead letter."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, header_style="dim", pad_edge=False)
    for column in ("id", "taken in (UTC)", "computation", "origin", "sequence", "index", "reason"):
        table.add_column(column, justify="right" if column in ("sequence", "index") else "left")
    for each in found:
        dead_letter = each.dead_letter
        reason = (
            dead_letter.reason
            if len(dead_letter.reason) <= _REASON_CHARACTERS
            else f"{dead_letter.reason[:120]}..."
        )
        sent = "[green]sent again[/green] " if each.id in marks and marks[each.id].done else ""
        table.add_row(
            str(each.id),
            moment(each.time_ns),
            escape(dead_letter.computation),
            escape(dead_letter.origin),
            str(dead_letter.sequence),
            str(dead_letter.index),
            sent + escape(" ".join(reason.split())),
        )
    return table
