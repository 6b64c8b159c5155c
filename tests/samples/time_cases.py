"""Small cases of all that goes by time: what happens in turns of ten seconds, and what must come of it.

Each case is a pipeline of its own, so that one application may hold them all. Results are written out by hand, from
what docs/semantics.md says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import bettong
from bettong import Application
from tests.samples.time_pipelines import (
    COMPILED,
    MINUTE,
    S_NS,
    Build,
    Event,
    Group,
    as_of,
    event_timer,
    in_window,
    lasting,
    latest,
    latest_for_a_while,
    left,
    log_timer,
    right,
    s,
    tops,
    total_line,
    windows,
    with_late,
    within,
    within_compiled,
)

TURN_NS = 10 * S_NS


@dataclass(frozen=True)
class TimeCase:
    """`turns`: the events of each turn, which begins TURN_NS behind the one before. `lines`: in any order."""

    name: str
    build: Build
    turns: Sequence[Sequence[Event]]
    lines: Sequence[str]
    out_of_order_s: float = 0


def application(cases: Sequence[TimeCase], name: str = "time-cases") -> Application:
    """Each case from a source to a sink of its name."""
    app = bettong.Application(name)
    for case in cases:
        events = app.source(
            f"{case.name}-in", schema=Event, key="key", event_time="at", out_of_order=s(case.out_of_order_s)
        )
        case.build(events).sink(f"{case.name}-out")
    return app


LATE_TURNS = (
    [left(1, 1, 1), left(2, 2, 2)],
    [left(1, 9, 3), left(1, 12, 4)],
    [left(1, 3, 5), left(2, 12, 6)],
    [left(3, 30, 7)],
)
IN_TIME = ["2 from 0 to 10: 2", "1 from 0 to 10: 1 3", "2 from 10 to 20: 6"]
PAIR_TURNS = (
    [left(1, 10, 1), right(2, 10, 2)],
    [right(1, 15, 3), right(1, 4, 4), left(2, 21, 5)],  # 4 is late: left ones of before 10 are gone at 15
    [right(1, 16, 6)],
    [left(3, 60, 7)],
)

CASES = (
    TimeCase("tumbling", windows("tumbling", MINUTE), LATE_TURNS, [*IN_TIME, "1 from 10 to 20: 4"]),
    TimeCase(
        "fire",
        windows("fire", MINUTE, late="fire"),
        LATE_TURNS,
        [*IN_TIME, "1 from 0 to 10: 5", "1 from 10 to 20: 4"],
    ),
    TimeCase(
        "oldest", windows("oldest", MINUTE, late="oldest"), LATE_TURNS, [*IN_TIME, "1 from 10 to 20: 4 5"]
    ),
    TimeCase("side", with_late, LATE_TURNS, [*IN_TIME, "1 from 10 to 20: 4", "late: 5"]),
    TimeCase(
        "compiled",
        lambda events: events.window(MINUTE, COMPILED, name="compiled").map(total_line, name="total-line"),
        LATE_TURNS,
        [
            "1 from 0: 2, highest 3",
            "2 from 0: 1, highest 2",
            "1 from 10: 1, highest 4",
            "2 from 10: 1, highest 6",
        ],
    ),
    TimeCase(
        "renewed",  # 2 closes the only window of 1, which opens another one
        windows("renewed", MINUTE),
        ([left(1, 1, 1)], [left(2, 12, 2), left(1, 13, 3)], [left(3, 60, 4)]),
        ["1 from 0 to 10: 1", "2 from 10 to 20: 2", "1 from 10 to 20: 3"],
    ),
    TimeCase(
        "empty",
        windows("empty", MINUTE, emit_empty=True),
        ([left(1, 1, 1)], [left(1, 35, 2)], [left(2, 60, 3)]),
        [
            "1 from 0 to 10: 1",
            "1 from 10 to 20: none",
            "1 from 20 to 30: none",
            "1 from 30 to 40: 2",
        ],
    ),
    TimeCase(
        "delayed",
        windows("delayed", bettong.tumbling(s(10), offset=s(5), delay=s(10))),
        ([left(1, 1, 1), left(1, 6, 2)], [left(1, 14, 3), left(1, 4, 4)], [left(1, 26, 5), left(1, 2, 6)]),
        ["1 from -5 to 5: 1 4", "1 from 5 to 15: 2 3"],
    ),
    TimeCase(
        "sliding",
        windows("sliding", bettong.sliding(s(20), s(10))),
        (
            [left(1, 5, 1)],
            [left(1, 15, 2)],
            [left(1, 42, 3)],
            [left(1, 25, 4), left(1, 35, 5)],  # late; and partly late
            [left(2, 90, 6)],
        ),
        [
            "1 from -10 to 10: 1",
            "1 from 0 to 20: 1 2",
            "1 from 10 to 30: 2",
            "1 from 30 to 50: 5 3",  # stretches of time are put together, the older one first
            "1 from 40 to 60: 3",
        ],
    ),
    TimeCase(
        "counts",
        lambda events: events.window(bettong.counts(3, timeout=s(25)), Group(), name="counts"),
        (
            [left(1, 0, 1), left(1, 0, 2), left(2, 0, 3)],
            [left(1, 10, 4), left(1, 10, 5)],
            [],
            [left(2, 30, 6)],
            [],
        ),
        ["1: 1 2 4", "2: 3", "1: 5"],
    ),
    TimeCase(
        "sessions",
        windows("sessions", bettong.sessions(s(10))),
        (
            [left(1, 0, 1), left(1, 8, 2), left(2, 0, 3), left(2, 10, 4)],
            [left(1, 25, 5)],
            [left(1, 17, 6)],  # makes one session of two
            [left(3, 60, 7)],
        ),
        ["1 from 0 to 35.000: 1 2 5 6", "2 from 0 to 20.000: 3 4"],
        out_of_order_s=10,
    ),
    TimeCase(
        "ephemeral",
        windows("ephemeral", bettong.ephemeral(s(10), keep_for=s(10)), late="fire"),
        (
            [left(1, 0, 1), left(1, 5, 2)],
            [left(2, 12, 3)],
            [left(1, 13, 4)],
            [left(2, 21, 5)],
            [left(1, 25, 6)],
            [left(3, 60, 7)],
        ),
        [
            "1 from 0 to 10: 1 2",
            "1 from 0 to 10: 4",
            "2 from 12 to 22: 3 5",
            "1 from 25 to 35: 6",
        ],
    ),
    TimeCase(
        "early",
        windows("early", bettong.tumbling(s(100)), early=s(5)),
        ([left(1, 1, 1)], [left(1, 2, 2)], [], [left(2, 200, 3)], []),
        [
            "1 from 0 to 100: 1 so far",
            "1 from 0 to 100: 1 2 so far",
            "1 from 0 to 100: 1 2",
            "2 from 200 to 300: 3 so far",
        ],
    ),
    TimeCase(
        "tops",
        tops,
        (
            [left(1, 1, 1), left(2, 2, 2), left(2, 3, 3)],
            [left(1, 11, 4)],
            [left(3, 35, 5)],
            [left(3, 60, 6)],
        ),
        ["from 0: 2", "from 10: 1", "from 30: 1"],
    ),
    TimeCase("within", within("inner", "within"), PAIR_TURNS, ["1 3"]),
    TimeCase("within-compiled", within_compiled, PAIR_TURNS, ["1 3"]),
    TimeCase("within-outer", within("outer", "within-outer"), PAIR_TURNS, ["1 3", "- 2", "5 -", "- 6"]),
    TimeCase(
        "latest",
        latest,
        (
            [left(1, 0, 1), right(1, 0, 2), left(1, 0, 3)],
            [left(1, 10, 4), right(1, 10, 5), right(2, 10, 6)],
            [left(1, 20, 7), right(1, 20, 8, gone=True), left(1, 20, 9), left(2, 20, 10)],
        ),
        ["1 -", "3 2", "4 2", "7 5", "9 -", "10 6"],
    ),
    TimeCase(
        "latest-ttl",
        latest_for_a_while,
        ([right(1, 0, 1), left(1, 0, 2)], [left(1, 10, 3)], [left(1, 20, 4)]),
        ["2 1", "3 1", "4 -"],
    ),
    TimeCase(
        "as-of",
        as_of,
        (
            [right(1, 0, 1), left(1, 6, 2)],
            [right(1, 5, 3)],  # late, for what is older than the watermark
            [right(1, 8, 4), left(1, 9, 5), left(1, 30, 6)],
            [left(2, 60, 7)],
            [left(2, 90, 8)],
        ),
        ["2 3", "5 4", "6 -", "7 -"],
        out_of_order_s=5,
    ),
    TimeCase(
        "in-window",
        in_window,
        (
            [left(1, 1, 1), right(1, 2, 2), right(1, 3, 3)],
            [left(1, 9, 4), right(1, 11, 5), left(2, 12, 6)],
            [left(3, 30, 7)],
        ),
        ["1 2", "1 3", "4 2", "4 3", "- 5", "6 -"],
    ),
    TimeCase(
        "event-timer",
        event_timer,
        (
            [left(1, 0, 1), left(2, 0, 2)],
            [left(1, 4, 3)],
            [left(2, 8, 4)],  # moves the time of 2
            [left(3, 30, 5)],
        ),
        ["1 at 9: 2", "2 at 13: 2"],
    ),
    TimeCase(
        "log-timer",
        log_timer,
        ([left(1, 0, 1)], [left(1, 10, 2), left(2, 10, 3)], [], [], [left(2, 40, 4)]),
        ["1 at 15: 2", "2 at 25: 1"],
    ),
    TimeCase(
        "deleted",
        lasting("deleted", delete_when=lambda seen: seen.values == 2),
        ([left(1, 0, 1)], [left(1, 10, 2), left(2, 10, 3)], [left(1, 20, 4)]),
        ["1 1: 1", "1 2: 2", "2 3: 1", "1 4: 1"],
    ),
    TimeCase(
        "log-ttl",
        lasting("log-ttl", ttl=s(15)),
        ([left(1, 0, 1), left(2, 0, 2)], [left(1, 10, 3)], [left(1, 20, 4), left(2, 20, 5)]),
        ["1 1: 1", "2 2: 1", "1 3: 2", "1 4: 3", "2 5: 1"],
    ),
    TimeCase(
        "event-ttl",
        lasting("event-ttl", ttl=s(15), ttl_clock="event"),
        (
            [left(1, 0, 1), left(2, 0, 2)],
            [left(1, 14, 3)],
            [left(3, 16, 4)],
            [left(1, 28, 5), left(2, 28, 6)],
        ),
        ["1 1: 1", "2 2: 1", "1 3: 2", "3 4: 1", "1 5: 3", "2 6: 1"],
    ),
)
