"""The table on the screen: draws the visible rows, and keeps the cursor on its row when rows move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Generic

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from bettong.cli.top.columns import (
    GAP,
    Fitted,
    Row,
    SortOrder,
    cells,
    column_pages,
    is_unknown,
    matching,
    ordered,
    titles,
    units,
    widths_of,
)
from bettong.cli.top.tables import Table
from bettong.cli.top.texts import BAD, MUTED, shortened


class TableView(Widget, Generic[Row], can_focus=True):
    """A `Table` and its rows. Posts `Moved` when another row is under the cursor, or the same one has changed."""

    DEFAULT_CSS = "TableView { height: 1fr; min-height: 4; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("left,h", "columns(-1)", show=False),
        Binding("right,l", "columns(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("home", "move(-1000000)", show=False),
        Binding("end", "move(1000000)", show=False),
    ]

    class Moved(Message):
        """See TableView."""

    def __init__(self, table: Table[Row], *, id: str) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self.table = table
        self.order = table.order
        self.words = ""
        self.rows: Sequence[Row] = ()
        self.shown: list[Row] = []
        self.empty = table.empty
        self.is_stale = False
        self._cursor = 0
        self._first = 0  # the topmost row on the screen
        self._columns = 0  # the page of columns
        self._widths: dict[int, int] = {}
        self._measured = (-1, -1, -1)

    @property
    def cursor(self) -> int:
        """The number of the selected row, from 0 on."""
        return self._cursor

    @property
    def selected(self) -> Row | None:
        """The row under the cursor."""
        return self.shown[self._cursor] if self.shown else None

    def show(self, rows: Sequence[Row], *, empty: str = "", is_stale: bool = False) -> None:
        """Shows these rows; the cursor stays on its row while that exists. `empty`: the text in place of rows."""
        self.rows, self.empty, self.is_stale = rows, empty or self.table.empty, is_stale
        self._arrange()

    def filter(self, words: str) -> None:
        """Shows only rows whose texts hold these words."""
        self.words, self._widths = words, {}
        self._arrange()

    def sort_next(self, step: int) -> None:
        """Sorts by the next column that is on the screen, or the one before."""
        on_screen = [each.number for each in self._fitted()]
        here = on_screen.index(self.order.column) if self.order.column in on_screen else -1
        column = on_screen[(here + step) % len(on_screen)]
        # Numbers begin with the greatest, names with A.
        self._sort(SortOrder(column, descending=self.table.columns[column].right))

    def sort_reverse(self) -> None:
        """Sorts the other way round."""
        self._sort(replace(self.order, descending=not self.order.descending))

    def _sort(self, order: SortOrder) -> None:
        self.order = order
        self._arrange()
        self.action_move(-len(self.shown))  # to the first row

    def action_move(self, step: int) -> None:
        """Moves the cursor by so many rows."""
        self._cursor = max(0, min(len(self.shown) - 1, self._cursor + step))
        self.refresh()
        self.post_message(self.Moved())

    def action_columns(self, step: int) -> None:
        """Shows the columns that did not fit."""
        self._columns += step
        self.refresh()
        self.post_message(self.Moved())

    def action_page(self, step: int) -> None:
        """Moves the cursor by a screen of rows."""
        self.action_move(step * self._rows_max)

    @property
    def _has_units(self) -> bool:
        return any(column.unit for column in self.table.columns)

    @property
    def _rows_max(self) -> int:
        return max(1, self.size.height - (2 if self._has_units else 1))

    def columns_left_out(self) -> tuple[int, bool]:
        """How many columns are on other pages, and whether the one that rows are sorted by is on this one."""
        pages = self._pages()
        shown = {each.number for each in pages[self._columns % len(pages)]}
        return len({each.number for page in pages for each in page}) - len(shown), self.order.column in shown

    def _fitted(self) -> list[Fitted[Row]]:
        pages = self._pages()
        return pages[self._columns % len(pages)]

    def _pages(self) -> list[list[Fitted[Row]]]:
        """Widths come from rows shown so far, not from thousands of others. No column becomes narrower."""
        visible = self._visible()
        now = visible.start, visible.stop, self.size.width
        if self._measured != now:
            self._measured = now
            found = widths_of(self.table.columns, self.shown[visible.start : visible.stop])
            widths = {
                number: max(wide, self._widths.get(number, 0))
                for number, wide in (self._widths | found).items()
            }
            self._widths = dict(sorted(widths.items()))
        return column_pages(self.table.columns, self._widths, self.size.width)

    def _arrange(self) -> None:
        selected = self.selected
        columns = self.table.columns
        self.shown = ordered(matching(self.rows, columns, self.words), columns, self.order)
        identity = self.table.identity
        wanted = identity(selected) if selected is not None else None
        at = next((index for index, row in enumerate(self.shown) if identity(row) == wanted), self._cursor)
        self._cursor = max(0, min(len(self.shown) - 1, at))
        self._measured = (-1, -1, -1)
        self.refresh()
        self.post_message(self.Moved())

    def render(self) -> Content:
        """The table as text, with the visible rows."""
        fits = self._fitted()
        lines = [[(text, "bold") for text in titles(fits, self.order)]]
        if self._has_units:
            lines.append([(text, MUTED) for text in units(fits)])
        if not self.shown:
            text = f"nothing matches {self.words!r}" if self.rows else self.empty
            lines.append([(shortened(text, self.size.width), MUTED)])
        lines += [self._line(fits, index) for index in self._visible()]
        return Content("\n").join([Content.assemble(*line) for line in lines])

    def _line(self, fits: list[Fitted[Row]], index: int) -> list[tuple[str, str]]:
        ground = " on $primary-muted" if index == self._cursor and self.has_focus else ""
        line = []
        for text, is_bad in cells(fits, self.shown[index]):
            style = BAD if is_bad else "$foreground"
            if self.is_stale or is_unknown(text):
                style = MUTED
            line.append((text, f"{style}{ground}"))
        room = self.size.width - sum(each.width + GAP for each in fits)
        return [*line, (" " * max(0, room), ground.strip())]

    def _visible(self) -> range:
        room = self._rows_max
        self._first = max(0, min(self._first, self._cursor, len(self.shown) - room))
        if self._cursor >= self._first + room:
            self._first = self._cursor - room + 1
        return range(self._first, min(len(self.shown), self._first + room))
