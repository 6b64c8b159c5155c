"""Small cases of all that goes by time: what happens in turns of ten seconds, and what must come of it.

Each case is a pipeline of its own, so that one application may hold them all. Results are written out by hand, from
what docs/semantics.md says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import bettong
from bettong import Application
from tests.samples.fast_time_pipelines import (
    TIMERS,
    Number,
    Seen,
    counted,
    counted_all,
    has_two,
    lasting_fast,
    waiting,
)
from tests.samples.time_pipelines import (
    COMPILED,
    MINUTE,
    S_NS,
    Build,
    Event,
    Group,
    as_of,
    combined_before,
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
SLIDING_TURNS = (
    [left(1, 5, 1)],
    [left(1, 15, 2)],
    [left(1, 42, 3)],
    [left(1, 25, 4), left(1, 35, 5)],  # late; and partly late
    [left(2, 90, 6)],
)
TABLE_TURNS = (
    [left(1, 0, 1), right(1, 0, 2), left(1, 0, 3)],
    [left(1, 10, 4), right(1, 10, 5), right(2, 10, 6)],
    [left(1, 20, 7), right(1, 20, 8, gone=True), left(1, 20, 9), left(2, 20, 10)],
)
VERSION_TURNS = (
    [right(1, 0, 1), left(1, 6, 2)],
    [right(1, 5, 3)],  # late, for what is older than the watermark
    [right(1, 8, 4), left(1, 9, 5), left(1, 30, 6)],
    [left(2, 60, 7)],
    [left(2, 90, 8)],
)
WINDOW_TURNS = (
    [left(1, 1, 1), right(1, 2, 2), right(1, 3, 3)],
    [left(1, 9, 4), right(1, 11, 5), left(2, 12, 6)],
    [left(3, 30, 7)],
)
DELETED_TURNS = ([left(1, 0, 1)], [left(1, 10, 2), left(2, 10, 3)], [left(1, 20, 4)])
LOG_TTL_TURNS = ([left(1, 0, 1), left(2, 0, 2)], [left(1, 10, 3)], [left(1, 20, 4), left(2, 20, 5)])
EVENT_TTL_TURNS = (
    [left(1, 0, 1), left(2, 0, 2)],
    [left(1, 14, 3)],
    [left(3, 16, 4)],
    [left(1, 28, 5), left(2, 28, 6)],
)
DELETED = ["1 1: 1", "1 2: 2", "2 3: 1", "1 4: 1"]
LOG_TTL = ["1 1: 1", "2 2: 1", "1 3: 2", "1 4: 3", "2 5: 1"]
EVENT_TTL = ["1 1: 1", "2 2: 1", "1 3: 2", "3 4: 1", "1 5: 3", "2 6: 1"]

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
        SLIDING_TURNS,
        [
            "1 from -10 to 10: 1",
            "1 from 0 to 20: 1 2",
            "1 from 10 to 30: 2",
            "1 from 30 to 50: 5 3",  # stretches of time are put together, the older one first
            "1 from 40 to 60: 3",
        ],
    ),
    TimeCase(
        "sliding-compiled",
        lambda events: events.window(bettong.sliding(s(20), s(10)), COMPILED, name="sliding-compiled").map(
            total_line, name="sliding-line"
        ),
        SLIDING_TURNS,
        [
            "1 from -10: 1, highest 1",
            "1 from 0: 2, highest 2",
            "1 from 10: 1, highest 2",
            "1 from 30: 2, highest 5",
            "1 from 40: 1, highest 3",
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
    TimeCase(
        "local",
        combined_before,
        (
            [left(1, 1, 1), left(2, 2, 2), left(2, 3, 3), left(1, 4, 7)],
            [left(1, 11, 4)],
            [left(3, 35, 5)],
            [left(3, 60, 6)],
        ),
        [
            "1 from 0: 3, highest 7",
            "0 from 0: 1, highest 2",
            "0 from 10: 1, highest 4",
            "1 from 30: 1, highest 5",
        ],
    ),
    TimeCase("within", within("inner", "within"), PAIR_TURNS, ["1 3"]),
    TimeCase("within-compiled", within_compiled, PAIR_TURNS, ["1 3"]),
    TimeCase("left-within", within("left", "left-within"), PAIR_TURNS, ["1 3", "5 -"]),
    TimeCase("right-within", within("right", "right-within"), PAIR_TURNS, ["1 3", "- 2", "- 6"]),
    TimeCase("within-outer", within("outer", "within-outer"), PAIR_TURNS, ["1 3", "- 2", "5 -", "- 6"]),
    TimeCase("latest", latest("left", "latest"), TABLE_TURNS, ["1 -", "3 2", "4 2", "7 5", "9 -", "10 6"]),
    TimeCase("latest-inner", latest("inner", "latest-inner"), TABLE_TURNS, ["3 2", "4 2", "7 5", "10 6"]),
    TimeCase(
        "latest-ttl",
        latest_for_a_while,
        ([right(1, 0, 1), left(1, 0, 2)], [left(1, 10, 3)], [left(1, 20, 4)]),
        ["2 1", "3 1", "4 -"],
    ),
    TimeCase("as-of", as_of("left", "as-of"), VERSION_TURNS, ["2 3", "5 4", "6 -", "7 -"], out_of_order_s=5),
    TimeCase("as-of-inner", as_of("inner", "as-of-inner"), VERSION_TURNS, ["2 3", "5 4"], out_of_order_s=5),
    TimeCase(
        "in-window",
        in_window(MINUTE, "outer", "in-window"),
        WINDOW_TURNS,
        ["1 2", "1 3", "4 2", "4 3", "- 5", "6 -"],
    ),
    TimeCase(
        "in-window-inner",
        in_window(MINUTE, "inner", "in-window-inner"),
        WINDOW_TURNS,
        ["1 2", "1 3", "4 2", "4 3"],
    ),
    TimeCase(
        "in-sliding",
        in_window(bettong.sliding(s(20), s(10)), "left", "in-sliding"),
        WINDOW_TURNS,
        [
            *("1 2", "1 3", "4 2", "4 3"),  # from -10
            *("1 2", "1 3", "1 5", "4 2", "4 3", "4 5", "6 -"),  # from 0
            "6 -",  # from 10
        ],
    ),
    TimeCase(
        "in-session",
        in_window(bettong.sessions(s(10)), "inner", "in-session"),
        (
            [left(1, 0, 1), right(1, 8, 2), left(2, 0, 3)],
            [right(1, 25, 4)],
            [left(1, 17, 5)],  # makes one session of two
            [left(3, 60, 6)],
        ),
        ["1 2", "1 4", "5 2", "5 4"],
        out_of_order_s=10,
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
        "timers-compiled",  # those of both cases before, in one state
        lasting_fast("timers-compiled", waiting, Seen, timers=TIMERS),
        (
            [left(1, 0, 1)],
            [left(1, 10, 2), left(2, 10, 3)],
            [left(2, 14, 4)],
            [],
            [left(3, 40, 5)],
        ),
        ["1 at 15: 2", "1 at 15: 2", "2 at 19: 2", "2 at 25: 2"],  # 1 by both clocks
    ),
    TimeCase(
        "deleted", lasting("deleted", delete_when=lambda seen: seen.values == 2), DELETED_TURNS, DELETED
    ),
    TimeCase(
        "deleted-compiled",
        lasting_fast("deleted-compiled", counted, Number, delete_when=has_two),
        DELETED_TURNS,
        DELETED,
    ),
    TimeCase("log-ttl", lasting("log-ttl", ttl=s(15)), LOG_TTL_TURNS, LOG_TTL),
    TimeCase(
        "log-ttl-compiled",
        lasting_fast("log-ttl-compiled", counted, Number, ttl=s(15)),
        LOG_TTL_TURNS,
        LOG_TTL,
    ),
    TimeCase(
        "log-ttl-vectorized",
        lasting_fast("log-ttl-vectorized", counted_all, Number, ttl=s(15)),
        LOG_TTL_TURNS,
        LOG_TTL,
    ),
    TimeCase("event-ttl", lasting("event-ttl", ttl=s(15), ttl_clock="event"), EVENT_TTL_TURNS, EVENT_TTL),
    TimeCase(
        "event-ttl-compiled",
        lasting_fast("event-ttl-compiled", counted, Number, ttl=s(15), ttl_clock="event"),
        EVENT_TTL_TURNS,
        EVENT_TTL,
    ),
)
