"""The screen of `bettong top`: pages, keys, and the age of the data. It shows pictures that others read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from rich.cells import cell_len
from textual import on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import ContentSwitcher, Input, Static

from bettong.cli.printable import printable
from bettong.cli.top.computation_tables import ACCOUNTS, BUSY
from bettong.cli.top.headline import STALE_S, staleness, verdict
from bettong.cli.top.lines import (
    Picture,
    busy_lines,
    ordered_accounts,
    partition_lines,
    reason_lines,
    stage_lines,
)
from bettong.cli.top.pages import OverviewPage, Page
from bettong.cli.top.table_view import TableView
from bettong.cli.top.tables import CHANGES, PARTITIONS, REASONS, STAGES, clock
from bettong.cli.top.texts import MUTED, WORSE, begun, shortened

PAGES = {
    "overview": "Overview",
    "stages": "Stages",
    "partitions": "Partitions",
    "dead-letters": "Dead letters",
    "events": "Events",
    "busy": "Busy",
    "accounts": "Accounts",
}
HELP = """\
bettong top reads what services report, once a second; it changes nothing.

1 to 7      a page; Tab, Shift+Tab: the next one, the one before
up down     select a row, shown whole below the table; also page up,
            page down, home, end
left right  the columns that do not fit
s  S        sort by the next column, by the one before
r           sort the other way round
/           filter: rows that hold all of these words; Enter keeps it,
            Escape ends it
t           light or dark
q           quit

-           unknown now
>12 s       at least: it was so when bettong top started
folded      messages a second, over the last 10 s
lag         records that wait in the log; how long the next one has
p50, p99    of a stage: of its slowest partition, until output is durable
busy        all partitions together; 100 %: a whole core
accounts    in = used + filtered + late + dead letters + skipped
owner       the slot of the resident schedule that holds the partition
STALE       no answer: old data is grey, and its age is shown

What each state means, and what to do: docs/operations.md"""


class Help(ModalScreen[None]):
    """All keys, and the meaning of signs."""

    DEFAULT_CSS = """
    Help { align: center middle; }
    Help > Static { width: 78; height: auto; border: round $primary; background: $surface; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q", "dismiss", show=False),
    ]

    def compose(self) -> ComposeResult:
        """The text alone."""
        yield Static(Content(HELP))


class TopApp(App[None]):
    """Shows the `Picture` of the newest `Shown` message. `monotonic_s` and `unix_s`: the clocks."""

    TITLE = "bettong top"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Screen { background: $background; }
    #head { height: 1; background: $panel; padding: 0 1; }
    #name { width: auto; text-style: bold; color: $foreground; }
    #verdict { width: 1fr; padding: 0 2; }
    #age { width: auto; color: $text-muted; }
    #tabs { height: 1; padding: 0 1; margin: 0 0 1 0; }
    ContentSwitcher { height: 1fr; padding: 0 1; }
    #foot { height: 1; background: $panel; color: $text-muted; padding: 0 1; }
    #filter { height: 1; border: none; background: $panel; padding: 0 1; display: none; }
    #filter:focus { border: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(str(number), f"page('{name}')", show=False) for number, name in enumerate(PAGES, 1)),
        Binding("tab", "next_page(1)", show=False, priority=True),
        Binding("shift+tab", "next_page(-1)", show=False, priority=True),
        Binding("slash", "filter", show=False),
        Binding("escape", "end_filter", show=False),
        Binding("s", "sort(1)", show=False),
        Binding("S", "sort(-1)", show=False),
        Binding("r", "reverse", show=False),
        Binding("t", "light_or_dark", show=False),
        Binding("question_mark", "help", show=False),
        Binding("q", "quit", show=False),
        Binding("ctrl+c", "quit", show=False, priority=True),
    ]

    class Shown(Message):
        """There is a new picture. May be posted from any thread."""

        def __init__(self, picture: Picture) -> None:
            super().__init__()
            self.picture = picture

    def __init__(self, monotonic_s: Callable[[], float], unix_s: Callable[[], float]) -> None:
        super().__init__()
        self._monotonic_s = monotonic_s
        self._unix_s = unix_s
        self.picture = Picture()

    def compose(self) -> ComposeResult:
        """Head, tabs, the pages, the filter and the foot."""
        with Horizontal(id="head"):
            yield Static(id="name")
            yield Static(id="verdict")
            yield Static(id="age")
        yield Static(id="tabs")
        with ContentSwitcher(initial="overview"):
            yield OverviewPage(id="overview")
            yield Page(STAGES, id="stages")
            yield Page(BUSY, id="busy")
            yield Page(PARTITIONS, id="partitions")
            yield Page(ACCOUNTS, id="accounts")
            yield Page(REASONS, id="dead-letters")
            yield Page(CHANGES, id="events")
        yield Input(id="filter", placeholder="words that rows hold")
        yield Static(id="foot")

    def on_mount(self) -> None:
        """Shows the first page, and redraws each second: the data's age grows."""
        self.set_interval(1.0, self.draw)
        self.action_page("overview")

    def on_top_app_shown(self, message: Shown) -> None:
        """Draws a new picture."""
        self.picture = message.picture
        self.draw()

    def on_resize(self) -> None:
        """Draws again: more or fewer columns fit."""
        self.call_after_refresh(self.draw)

    @property
    def page(self) -> Page[Any]:
        """The page on the screen."""
        return self.query_one(f"#{self.query_one(ContentSwitcher).current}", Page)

    def draw(self) -> None:
        """Draws the page on the screen, and the lines around it."""
        if not self.query("#foot"):
            return  # a picture came before the screen was made
        picture, unix_s = self.picture, self._unix_s()
        found = picture.found
        age_s = self._monotonic_s() - found.at_s if found is not None else 0.0
        is_stale = age_s >= STALE_S
        text, style = verdict(found, picture.fault)
        stale = staleness(age_s)
        name = printable(found.found.application) if found is not None else "bettong top"
        time_text = stale or f"{clock(unix_s)} UTC"
        self.query_one("#name", Static).update(Content(shortened(name, 30)))
        room = self.size.width - min(len(name), 30) - len(time_text) - 6
        self.query_one("#verdict", Static).update(Content.styled(begun(text, max(8, room)), style))
        self.query_one("#age", Static).update(Content.styled(time_text, WORSE if stale else MUTED))
        self._draw_page(unix_s, is_stale=is_stale)
        self._draw_tabs()

    def _draw_page(self, unix_s: float, *, is_stale: bool) -> None:
        picture, page = self.picture, self.page
        found = picture.found
        if found is None:
            return
        if isinstance(page, OverviewPage):
            page.show_picture(picture, unix_s, is_stale=is_stale)
        elif page.id == "stages":
            page.show(stage_lines(found), is_stale=is_stale)
        elif page.id == "busy":
            page.show(busy_lines(found), is_stale=is_stale)
        elif page.id == "accounts":
            page.show(ordered_accounts(found), is_stale=is_stale)
        elif page.id == "partitions":
            page.show(partition_lines(found, unix_s), is_stale=is_stale)
        elif page.id == "dead-letters":
            empty = "" if picture.reasons is not None and not picture.reasons_fault else "unknown"
            page.show(
                reason_lines(picture.reasons),
                note=_reasons_note(picture),
                empty=empty,
                is_stale=is_stale or bool(picture.reasons_fault),
            )
        else:
            page.show(found.changes, is_stale=False)

    def _draw_tabs(self) -> None:
        current = self.query_one(ContentSwitcher).current
        parts = []
        for number, (name, title) in enumerate(PAGES.items(), 1):
            here = name == current
            text = f" [{number} {title}]" if here else f" {number} {title}"
            parts.append((text, "bold $text-primary" if here else MUTED))
        self.query_one("#tabs", Static).update(Content.assemble(*parts))

    @on(TableView.Moved)
    def _draw_foot(self) -> None:
        view = self.page.view
        more, shows_order = view.columns_left_out()
        left = "/ filter  s sort  ? help  q quit"
        width = self.size.width - 2
        parts = [
            f"row {view.cursor + 1:,} of {len(view.shown):,}" if view.shown else "no rows",
            *([f"filter {view.words!r}"] if view.words else []),
            *([] if shows_order else [f"by {view.table.columns[view.order.column].title}"]),
            *([f"← → {more} more columns"] if more else []),
        ]
        while len(parts) > 1 and cell_len(", ".join(parts)) > width - len(left) - 2:
            parts.pop()
        right = shortened(", ".join(parts), max(0, width - len(left) - 2))
        self.query_one("#foot", Static).update(
            Content.assemble((left, "$foreground"), " " * max(1, width - len(left) - cell_len(right)), right)
        )

    def action_page(self, name: str) -> None:
        """Shows another page."""
        self.query_one("#filter", Input).display = False
        self.query_one(ContentSwitcher).current = name
        self.page.view.focus()
        self.call_after_refresh(self.draw)

    def action_next_page(self, step: int) -> None:
        """Shows the next page, or the one before."""
        names = list(PAGES)
        current = self.query_one(ContentSwitcher).current or names[0]
        self.action_page(names[(names.index(current) + step) % len(names)])

    def action_filter(self) -> None:
        """Opens the field for the words of a filter."""
        words = self.query_one("#filter", Input)
        words.value = self.page.view.words
        words.display = True
        words.focus()

    @on(Input.Changed, "#filter")
    def _filter(self, changed: Input.Changed) -> None:
        if self.query_one("#filter", Input).display:
            self.page.view.filter(changed.value)

    @on(Input.Submitted, "#filter")
    def _keep_filter(self) -> None:
        self.query_one("#filter", Input).display = False
        self.page.view.focus()

    def action_end_filter(self) -> None:
        """Shows all rows again."""
        self.query_one("#filter", Input).display = False
        self.page.view.filter("")
        self.page.view.focus()

    def action_sort(self, step: int) -> None:
        """Sorts by another column."""
        self.page.view.sort_next(step)

    def action_reverse(self) -> None:
        """Sorts the other way round."""
        self.page.view.sort_reverse()

    def action_light_or_dark(self) -> None:
        """Switches between a light and a dark theme."""
        self.theme = "textual-light" if self.theme != "textual-light" else "textual-dark"

    def action_help(self) -> None:
        """Shows the help."""
        self.push_screen(Help())


def _reasons_note(picture: Picture) -> str:
    if picture.reasons_fault:
        return f"not read: {picture.reasons_fault}"
    if picture.reasons is None:
        return "their topic is not known: give --kafka HOST:PORT to see them by reason"
    skipped = picture.reasons.skipped
    return f"of the newest records; {skipped:,} records before them were not read" if skipped else ""
