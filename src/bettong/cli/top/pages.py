"""The pages of `bettong top`: a table each, with the details of the row under the cursor below it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from bettong.cli.printable import printable
from bettong.cli.top.columns import Row
from bettong.cli.top.headline import numbers, trouble_lines
from bettong.cli.top.lines import Picture, service_lines
from bettong.cli.top.table_view import TableView
from bettong.cli.top.tables import SERVICES, Table
from bettong.cli.top.texts import MUTED

_TROUBLES_MAX = 5


class Page(Vertical, Generic[Row]):
    """A table and, below it, the detail of one row and a note about the table."""

    DEFAULT_CSS = """
    Page { height: 1fr; }
    Page > .detail {
        height: auto; max-height: 8; color: $text-muted; border-top: solid $surface-lighten-2;
    }
    """

    def __init__(self, table: Table[Row], *, id: str) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self.view = TableView(table, id=f"{id}-table")
        self._note = ""

    def compose(self) -> ComposeResult:
        """The table above its detail."""
        yield self.view
        yield Static(classes="detail")

    def show(self, rows: Sequence[Row], *, note: str = "", empty: str = "", is_stale: bool = False) -> None:
        """Shows these rows. `note`: about the table as a whole."""
        self._note = note
        self.view.show(rows, empty=empty, is_stale=is_stale)

    def on_table_view_moved(self) -> None:
        """Shows the detail: another row is under the cursor, or the same one has changed."""
        row = self.view.selected
        detail = self.view.table.detail(row) if row is not None else []
        lines = [printable(text) for text in (*detail, self._note) if text]
        below = self.query_one(".detail", Static)
        below.update(Content("\n".join(lines)))
        below.display = bool(lines)


class OverviewPage(Page[object]):
    """Whether all of it works: the totals, problems, and the services."""

    DEFAULT_CSS = """
    OverviewPage > .numbers { height: auto; padding: 0 0 1 0; }
    OverviewPage > .troubles { height: auto; padding: 0 0 1 0; }
    """

    def __init__(self, *, id: str) -> None:  # noqa: A002 - Textual's own name
        super().__init__(SERVICES, id=id)  # type: ignore[arg-type]

    def compose(self) -> ComposeResult:
        """Numbers, problems, services, and the detail of one of these."""
        yield Static(classes="numbers")
        yield Static(classes="troubles")
        yield from super().compose()

    def show_picture(self, picture: Picture, unix_s: float, *, is_stale: bool) -> None:
        """Shows the newest picture."""
        found = picture.found
        if found is None:
            return
        above = self.query_one(".numbers", Static)
        lines = [
            Content.assemble(*((text, MUTED if is_stale else style) for text, style in line))
            for line in numbers(found, self.size.width)
        ]
        above.update(Content("\n").join(lines))
        below = self.query_one(".troubles", Static)
        texts = trouble_lines(found, self.size.width, _TROUBLES_MAX)
        below.update(Content("\n").join([Content.styled(text, style) for text, style in texts]))
        below.display = bool(texts)
        self.show(service_lines(found, unix_s), is_stale=bool(picture.fault))
