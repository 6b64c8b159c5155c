"""Dead letters as tables, one line each: texts that do not fit are truncated; `show` prints them whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from bettong.cli.printable import printable
from bettong.cli.top.texts import begun, shortened
from bettong.inspection.reason_counts import first_line
from bettong.inspection.text import moment

if TYPE_CHECKING:
    from rich.table import Table

    from bettong.frames.dead_letter_id import DeadLetterId
    from bettong.inspection.dead_letters import Found, ResendMark
    from bettong.inspection.reason_counts import ReasonRow

# A terminal of this width has room for a message's origin, and for milliseconds.
_WIDE = 140
_NAME_CELLS = 16
_NAME_CELLS_WIDE = 40
_REASON_CELLS_MIN = 16
# Cells that rich leaves between columns.
_GAP = 2


def reasons_table(rows: Sequence[ReasonRow], width: int) -> Table:
    """One line for each computation and reason: the count and the newest dead letter."""
    head = ("count", "computation", "newest (UTC)", "its id", "reason")
    lines = [
        (
            f"{row.count:,}",
            row.key.computation or "others",
            _time(row.last_ns, width),
            row.last_id,
            row.key.reason,
        )
        for row in rows
    ]
    return _table(head, lines, width, right=("count",))


def dead_letters_table(found: list[Found], marks: Mapping[DeadLetterId, ResendMark], width: int) -> Table:
    """One line for each dead letter."""
    is_wide = width >= _WIDE
    beside = ("origin", "sequence", "index") if is_wide else ()
    head = ("id", "taken in (UTC)", "computation", *beside, "reason")
    lines = []
    for each in found:
        dead_letter = each.dead_letter
        where = (dead_letter.origin, str(dead_letter.sequence), str(dead_letter.index)) if is_wide else ()
        sent = "sent again: " if each.id in marks and marks[each.id].done else ""
        reason = sent + first_line(dead_letter.reason)
        lines.append((str(each.id), _time(each.time_ns, width), dead_letter.computation, *where, reason))
    return _table(head, lines, width, right=("sequence", "index"))


def _time(time_ns: int, width: int) -> str:
    """The whole time where there is room, else without year and milliseconds."""
    return moment(time_ns) if width >= _WIDE else moment(time_ns)[len("2026-") : -len(".000")]


def _table(
    head: Sequence[str], lines: Iterable[Sequence[str]], width: int, *, right: Sequence[str] = ()
) -> Table:
    """A table whose last column takes the width that the others leave."""
    from rich.cells import cell_len
    from rich.markup import escape
    from rich.table import Table

    name_cells = _NAME_CELLS_WIDE if width >= _WIDE else _NAME_CELLS
    rows = [
        (*(shortened(printable(cell), name_cells) for cell in line[:-1]), printable(line[-1]))
        for line in lines
    ]
    others = [max(map(cell_len, column)) + _GAP for column in zip(head, *rows, strict=True)][:-1]
    room = max(_REASON_CELLS_MIN, width - sum(others))
    table = Table(box=None, header_style="dim", pad_edge=False)
    for name in head:
        table.add_column(name, justify="right" if name in right else "left", no_wrap=True)
    for row in rows:
        table.add_row(*map(escape, row[:-1]), escape(begun(row[-1], room)))
    return table
