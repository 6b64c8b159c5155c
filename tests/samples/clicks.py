r"""Applications that users test: one that is right, and one for each mistake that only shows in production.

clicks --> counted (stateful) --> counts
visits --> per page, over windows --> hours; late ones --> late
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any
from weakref import WeakKeyDictionary

import numpy as np

import bettong
from bettong import NEVER, Application, Width

MINUTE_NS = 60 * 10**9


@dataclass
class Click:
    user: Annotated[str, Width(8)]
    page: Annotated[str, Width(8)] = "home"
    at: int = 0


@dataclass
class Total:
    user: Annotated[str, Width(8)]
    total: int


@dataclass(eq=False)
class Seen:
    total: int = 0


def count(click: Click, seen: Seen) -> Total:
    if click.user == "":
        raise ValueError("nobody")
    seen.total += 1
    return Total(click.user, seen.total)


@bettong.compiled
def count_compiled(click: Click, seen: Seen) -> Total:
    seen.total += 1
    return Total(click.user, seen.total)


def counting(function: Any = count, name: str = "clicks") -> Application:
    app = Application(name)
    app.source("clicks", schema=Click, key="user").stateful(function, state=Seen, name="counted").sink(
        "counts"
    )
    return app


# A count for each user, and for each page, which is another key: two stages.
@dataclass
class OfPage:
    page: Annotated[str, Width(8)]
    total: int


def of_page(click: Click, seen: Seen) -> OfPage:
    seen.total += 1
    return OfPage(click.page, seen.total)


def same(click: Click) -> Click:
    return click


def by_page() -> Application:
    app = Application("pages")
    clicks = app.source("clicks", schema=Click, key="user")
    clicks.map(same).key_by("page", name="by-page").stateful(of_page, state=Seen, name="of-page").sink(
        "pages"
    )
    clicks.stateful(count, state=Seen, name="counted").sink("counts")
    return app


# Windows, and what is late for them.
@dataclass
class Hour:
    key: str
    start: int
    clicks: int


def hourly() -> Application:
    app = Application("hourly")
    clicks = app.source(
        "clicks", schema=Click, key="page", event_time="at", out_of_order=timedelta(minutes=1)
    )
    hours = clicks.window(
        bettong.tumbling(timedelta(hours=1)),
        bettong.aggregate(Hour, clicks=bettong.Count()),
        name="per-hour",
        late="side",
    )
    hours.sink("hours")
    hours.late.sink("late")
    return app


@dataclass
class Visit:
    end: int
    clicks: int
    users: int


def visiting() -> Application:
    """Compiled sessions of pages, and what is late for them."""
    app = Application("visits")
    clicks = app.source(
        "clicks", schema=Click, key="page", event_time="at", out_of_order=timedelta(minutes=1)
    )
    visits = clicks.window(
        bettong.sessions(timedelta(seconds=50)),
        bettong.compiled(bettong.aggregate(Visit, clicks=bettong.Count(), users=bettong.Distinct("user"))),
        name="per-visit",
        late="side",
    )
    visits.sink("visits")
    visits.late.sink("late")
    return app


def hourly_by_page() -> Application:
    """Windows behind a key_by: lateness is judged in the second stage."""
    app = Application("hourly-by-page")
    clicks = app.source(
        "clicks", schema=Click, key="user", event_time="at", out_of_order=timedelta(minutes=1)
    )
    hours = clicks.key_by("page").window(
        bettong.tumbling(timedelta(hours=1)), bettong.aggregate(Hour, clicks=bettong.Count())
    )
    hours.sink("hours")
    return app


# A timer that compares no times: what it means depends on which messages share a frame.
@dataclass
class Waiting:
    due: bettong.Timer = NEVER
    open: bool = False


@dataclass
class Left:
    user: str


def wait(click: Click, waiting: Waiting) -> Left | None:
    if waiting.open:
        return Left(click.user)
    waiting.open = True
    waiting.due = click.at + MINUTE_NS
    return None


def give_up(fired: bettong.Fired[str], waiting: Waiting) -> None:
    waiting.open = False


def of_frames() -> Application:
    app = Application("frames")
    app.source("clicks", schema=Click, key="user", event_time="at").stateful(
        wait, state=Waiting, name="waits", timers={"due": give_up}
    ).sink("left")
    return app


# Ranks users by who comes first behind another key: that is the order of partitions.
@dataclass
class Rank:
    page: str
    user: str
    rank: int


def rank(click: Click, seen: Seen) -> Rank:
    seen.total += 1
    return Rank(click.page, click.user, seen.total)


def of_partitions() -> Application:
    app = Application("partitions")
    (
        app.source("clicks", schema=Click, key="user")
        .map(same)
        .key_by("page", name="by-page")
        .stateful(rank, state=Seen, name="ranking")
        .sink("ranks")
    )
    return app


# What is kept beside the state: gone with the worker.
_BESIDE: WeakKeyDictionary[Seen, int] = WeakKeyDictionary()


def count_beside(click: Click, seen: Seen) -> Total:
    _BESIDE[seen] = _BESIDE.get(seen, 0) + 1
    return Total(click.user, _BESIDE[seen])


def of_crashes() -> Application:
    return counting(count_beside, "crashes")


class Purse:
    """Empties itself when it is saved: who lives on has less than what was saved."""

    def __init__(self) -> None:
        self.total = 0

    def __getstate__(self) -> dict[str, int]:
        saved, self.total = {"total": self.total}, 0
        return saved


def count_in_purse(click: Click, purse: Purse) -> Total:
    purse.total += 1
    return Total(click.user, purse.total)


def of_saves() -> Application:
    app = Application("saves")
    clicks = app.source("clicks", schema=Click, key="user")
    clicks.stateful(count_in_purse, state=Purse, name="counted", state_codec=bettong.Pickle).sink("counts")
    return app


# What the decoder remembers becomes the key: a frame that is sent again goes elsewhere.
_TURNS: dict[bytes, int] = {}


@dataclass
class Line:
    turn: int
    text: str


@dataclass
class Text:
    text: str


def read_line(data: bytes) -> Line:
    _TURNS[data] = 1 - _TURNS.get(data, 1)
    return Line(_TURNS[data], data.decode())


def text_of_line(line: Line) -> Text:
    return Text(line.text)


def of_repetitions() -> Application:
    app = Application("repetitions")
    app.source("lines", schema=Line, key="turn", decoder=bettong.each(read_line)).map(text_of_line).sink(
        "texts"
    )
    return app


# Numbers that outgrow 64 bits, which wrap as machine code.
@bettong.compiled
def square(click: Click) -> Total:
    return Total(click.user, click.at * click.at % 1000)


def of_speeds() -> Application:
    app = Application("speeds")
    app.source("clicks", schema=Click, key="user").map(square).sink("squares")
    return app


# A function over frames that looks at its neighbours.
@bettong.vectorized
def newest(click: Click) -> Click:
    at = np.asarray(click.at)
    return Click(click.user, click.page, np.full(len(at), at.max() if len(at) else 0))  # type: ignore[arg-type]


def of_neighbours() -> Application:
    app = Application("neighbours")
    app.source("clicks", schema=Click, key="user").map(newest).sink("latest")
    return app


counting_app = counting()
pages_app = by_page()
hours_app = hourly()
visits_app = visiting()
hours_by_page_app = hourly_by_page()
frames_app = of_frames()
partitions_app = of_partitions()
crashes_app = of_crashes()
saves_app = of_saves()
repetitions_app = of_repetitions()
speeds_app = of_speeds()
neighbours_app = of_neighbours()
compiled_app = counting(count_compiled, "compiled")
