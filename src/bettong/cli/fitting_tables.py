"""Tables that fit the terminal: numbers are never broken; columns that do not fit go below."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Column, Table

# Text columns fold down to this width before a column goes below.
_TEXT_CELLS_MIN = 16


def print_fitting(console: Console, table: Table | str) -> None:
    """Prints a table; on a console that is too narrow, its columns in parts, one below the other.

    Text in place of a table, the reason why there is none, is printed as it is.
    """
    for part in [table] if isinstance(table, str) else fitting(table, console.width):
        console.print(part)


def fitting(table: Table, width: int) -> list[Table]:
    """The table in parts that are `width` cells wide at most, each with the first column, which names the rows.

    Right-justified columns hold numbers and stay whole; others fold. One part if everything fits.
    """
    extra = table.padding[1] + table.padding[3] + (table.box is not None)
    least = [_least(column) + extra for column in table.columns]
    pages: list[list[int]] = [[]]
    for number in range(1, len(least)):
        taken = least[0] + sum(least[each] for each in pages[-1]) + (table.box is not None)
        if pages[-1] and taken + least[number] > width:
            pages.append([])
        pages[-1].append(number)
    parts = [_part(table, [0, *page]) for page in pages]
    parts[0].title, parts[-1].caption = table.title, table.caption
    return parts


def _part(table: Table, numbers: Iterable[int]) -> Table:
    """A table of these columns only."""
    from rich.table import Table

    chosen = [table.columns[number] for number in numbers]
    part = Table(
        box=table.box,
        header_style=table.header_style,
        pad_edge=table.pad_edge,
        padding=table.padding,
        show_lines=table.show_lines,
    )
    for column in chosen:
        is_number = column.justify == "right"
        part.add_column(
            column.header,
            justify=column.justify,
            vertical=column.vertical,
            no_wrap=is_number,
            overflow="fold",
        )
    cells = [list(column.cells) for column in chosen]
    for number, row in enumerate(table.rows):
        part.add_row(*(column[number] for column in cells), style=row.style, end_section=row.end_section)
    return part


def _least(column: Column) -> int:
    """The least width of a column."""
    from rich.cells import cell_len
    from rich.text import Text

    texts = [Text.from_markup(str(cell)).plain for cell in (column.header, *column.cells)]
    whole = max(cell_len(line) for text in texts for line in (text.splitlines() or [""]))
    return whole if column.justify == "right" else min(whole, _TEXT_CELLS_MIN)
