"""The visits of a web site: clicks of a person that are at most half an hour apart, and what each page had in an hour.

Run it: `bettong up examples/visits.py`, then `bettong send clicks clicks.jsonl`, lines like
`{"person": "ann", "page": "/prices", "at": 1700000000000000000}` (Unix ns).
"""

from dataclasses import dataclass, field
from datetime import timedelta

import bettong


@dataclass
class Click:
    """A page that a person opened; `at`: Unix ns."""

    person: str
    page: str
    at: int


@dataclass
class Visit:
    """What is left of a visit when it is over."""

    person: str
    began: int
    seconds: float
    clicks: int
    first_page: str
    last_page: str


@dataclass
class Path:
    """The pages of a visit so far."""

    pages: list[str] = field(default_factory=list)


class Visits:
    """A visit: a session of clicks."""

    def initial(self) -> Path:
        return Path()

    def update(self, path: Path, click: Click) -> Path:
        path.pages.append(click.page)
        return path

    def combine(self, left: Path, right: Path) -> Path:
        return Path([*left.pages, *right.pages])

    def output(self, person: str, path: Path, window: bettong.Window) -> Visit:
        seconds = (window.end - 1 - window.start) / 1e9 - GAP.total_seconds()
        return Visit(person, window.start, seconds, len(path.pages), path.pages[0], path.pages[-1])


@dataclass
class Hour:
    """How often a page was opened in an hour, and by how many. `key`: the page; `start`: of the hour, Unix ns."""

    key: str
    start: int
    clicks: int
    persons: int


GAP = timedelta(minutes=30)

app = bettong.Application("visits")
clicks = app.source("clicks", schema=Click, key="person", event_time="at", out_of_order=timedelta(seconds=10))
clicks.window(bettong.sessions(GAP), Visits()).sink("visits")
hours = bettong.aggregate(Hour, clicks=bettong.Count(), persons=bettong.Distinct("person"))
clicks.key_by("page").window(bettong.tumbling(timedelta(hours=1)), hours).sink("hours")
