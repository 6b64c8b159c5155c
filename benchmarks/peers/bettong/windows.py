"""What the applications of windows share: count and sum of a window, compiled."""

from dataclasses import dataclass

import bettong
from benchmarks.peers.bettong.topics import RESULTS, events
from benchmarks.peers.events import COUNT
from benchmarks.peers.load import INPUT
from bettong import i64
from bettong.application.windows.kinds import WindowKind


@dataclass(slots=True)
class CountedWindow:
    """What a window of a key has; `end`: Unix ns."""

    key: i64
    end: i64
    count: i64
    total: i64


COUNTED = bettong.compiled(
    bettong.aggregate(CountedWindow, count=bettong.Count(), total=bettong.Sum("value"))
)


def pack(window: CountedWindow) -> bytes:
    """A result as it goes out."""
    return COUNT.pack(window.key, window.end, window.count, window.total)


def counted(name: str, kind: WindowKind) -> bettong.Application:
    """The application."""
    app = bettong.Application(f"{name}-topic")
    windows = events(app, INPUT).window(kind, COUNTED, name="windows")
    windows.sink("counted", encoder=pack, to=RESULTS)
    return app
