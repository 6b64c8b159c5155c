"""The table on the screen: draws the rows that are visible, keeps the cursor on its row when others move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Generic

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from bettong.cli.top.columns import Order, Row, cells, fitted, header, is_unknown, matching, ordered
from bettong.cli.top.tables import Table
from bettong.cli.top.texts import shortened

_HEADER_LINES = 2


class TableView(Widget, Generic[Row], can_focus=True):
    """A `Table` and its rows. Posts `Moved` when another row is under the cursor, or the same one says more."""

    DEFAULT_CSS = "TableView { height: 1fr; min-height: 4; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
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
        self.is_stale = False
        self._cursor = 0
        self._first = 0  # the topmost row on the screen

    @property
    def selected(self) -> Row | None:
        """The row under the cursor."""
        return self.shown[self._cursor] if self.shown else None

    def show(self, rows: Sequence[Row], *, is_stale: bool) -> None:
        """These rows from now on; the cursor stays on its row, as long as that is there."""
        self.rows, self.is_stale = rows, is_stale
        self._arrange()

    def filter(self, words: str) -> None:
        """Only rows whose texts hold these words."""
        self.words = words
        self._arrange()

    def sort_next(self, step: int) -> None:
        """By the next column that is on the screen, or the one before."""
        on_screen = [each.number for each in self._fitted()]
        here = on_screen.index(self.order.column) if self.order.column in on_screen else -1
        column = on_screen[(here + step) % len(on_screen)]
        # One looks for the most and the longest first, and for names from A on.
        self.order = Order(column, descending=self.table.columns[column].right)
        self._arrange()

    def sort_reverse(self) -> None:
        """The other way round."""
        self.order = replace(self.order, descending=not self.order.descending)
        self._arrange()

    def action_move(self, step: int) -> None:
        """Moves the cursor by so many rows."""
        self._cursor = max(0, min(len(self.shown) - 1, self._cursor + step))
        self.refresh()
        self.post_message(self.Moved())

    def action_page(self, step: int) -> None:
        """Moves it by as many as are on the screen."""
        self.action_move(step * self._rows_max)

    @property
    def _rows_max(self) -> int:
        return max(1, self.size.height - _HEADER_LINES)

    def _fitted(self) -> list:  # type: ignore[type-arg]
        return fitted(self.table.columns, self.shown, self.size.width)

    def _arrange(self) -> None:
        selected = self.selected
        columns = self.table.columns
        self.shown = ordered(matching(self.rows, columns, self.words), columns, self.order)
        identity = self.table.identity
        wanted = identity(selected) if selected is not None else None
        at = next((index for index, row in enumerate(self.shown) if identity(row) == wanted), self._cursor)
        self._cursor = max(0, min(len(self.shown) - 1, at))
        self.refresh()
        self.post_message(self.Moved())

    def render(self) -> Content:
        """What is on the screen now."""
        width, fits = self.size.width, self._fitted()
        titles, units = header(fits, self.order)
        parts: list[tuple[str, str]] = [(f"{titles}\n", "bold"), (f"{units}\n", "$text-muted")]
        if not self.shown:
            text = f"nothing matches {self.words!r}" if self.rows else self.table.empty
            return Content.assemble(*parts, (shortened(text, width), "$text-muted"))
        visible = self._visible()
        for index in visible:
            row = self.shown[index]
            here = index == self._cursor
            ground = " on $primary-muted" if here and self.has_focus else ""
            for text, is_bad in cells(fits, row):
                if self.is_stale or is_unknown(text):
                    style = f"$text-muted{ground}"
                elif is_bad:
                    style = f"bold $text-warning{ground}"
                else:
                    style = f"$foreground{ground}"
                parts.append((text, style))
            if index != visible[-1]:
                parts.append(("\n", ""))
        return Content.assemble(*parts)

    def _visible(self) -> range:
        room = self._rows_max
        self._first = max(0, min(self._first, self._cursor, len(self.shown) - room))
        if self._cursor >= self._first + room:
            self._first = self._cursor - room + 1
        return range(self._first, min(len(self.shown), self._first + room))
