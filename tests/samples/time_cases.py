"""Small cases of all that goes by time. Results are written out by hand, from what docs/semantics.md says."""

from __future__ import annotations

import bettong
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
from tests.samples.join_cases import JOIN_CASES
from tests.samples.time_case import TimeCase
from tests.samples.time_pipelines import (
    COMPILED,
    MINUTE,
    SO_FAR,
    SUMMED,
    Event,
    Group,
    combined_before,
    event_timer,
    lasting,
    left,
    log_timer,
    s,
    so_far_line,
    summed_line,
    tops,
    total_line,
    windows,
    with_late,
)

LATE_TURNS = (
    [left(1, 1, 1), left(2, 2, 2)],
    [left(1, 9, 3), left(1, 12, 4)],
    [left(1, 3, 5), left(2, 12, 6)],
    [left(3, 30, 7)],
)
IN_TIME = ["2 from 0 to 10: 2", "1 from 0 to 10: 1 3", "2 from 10 to 20: 6"]
SLIDING_TURNS = (
    [left(1, 5, 1)],
    [left(1, 15, 2)],
    [left(1, 42, 3)],
    [left(1, 25, 4), left(1, 35, 5)],  # late; and partly late
    [left(2, 90, 6)],
)
EMPTY_TURNS = ([left(1, 1, 1)], [left(1, 35, 2)], [left(2, 60, 3)])
THREES = bettong.counts(3, timeout=s(25))
COUNT_TURNS: tuple[list[Event], ...] = (
    [left(1, 0, 1), left(1, 0, 2), left(2, 0, 3)],
    [left(1, 10, 4), left(1, 10, 5)],
    [],
    [left(2, 30, 6)],
    [],
)
ONCE = bettong.ephemeral(s(10), keep_for=s(10))
ONCE_TURNS = (
    [left(1, 0, 1), left(1, 5, 2)],
    [left(2, 12, 3)],
    [left(1, 13, 4)],
    [left(2, 21, 5)],
    [left(1, 25, 6)],
    [left(3, 60, 7)],
)
EARLY_TURNS: tuple[list[Event], ...] = (
    [left(1, 1, 1)],
    [left(1, 2, 2)],
    [],
    [left(2, 200, 3)],
    [],
)
DELETED_TURNS = ([left(1, 0, 1)], [left(1, 10, 2), left(2, 10, 3)], [left(1, 20, 4)])
LOG_TTL_TURNS = ([left(1, 0, 1), left(2, 0, 2)], [left(1, 10, 3)], [left(1, 20, 4), left(2, 20, 5)])
EVENT_TTL_TURNS = (
    [left(1, 0, 1), left(2, 0, 2)],
    [left(1, 14, 3)],
    [left(3, 16, 4)],
    [left(1, 28, 5), left(2, 28, 6)],
)
SESSION_TURNS = (
    [left(1, 0, 1), left(1, 8, 2), left(2, 0, 3), left(2, 10, 4)],
    [left(1, 25, 5)],
    [left(1, 17, 6)],  # makes one session of two
    [left(3, 60, 7)],
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
        EMPTY_TURNS,
        [
            "1 from 0 to 10: 1",
            "1 from 10 to 20: none",
            "1 from 20 to 30: none",
            "1 from 30 to 40: 2",
        ],
    ),
    TimeCase(
        "empty-compiled",
        lambda events: events.window(MINUTE, SUMMED, name="empty-compiled", emit_empty=True).map(
            summed_line, name="summed-line"
        ),
        EMPTY_TURNS,
        [
            "1 from 0: 1, sum 1",
            "1 from 10: 0, sum 0",
            "1 from 20: 0, sum 0",
            "1 from 30: 1, sum 2",
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
        lambda events: events.window(THREES, Group(), name="counts"),
        COUNT_TURNS,
        ["1: 1 2 4", "2: 3", "1: 5"],
    ),
    TimeCase(
        "counts-compiled",
        lambda events: events.window(THREES, COMPILED, name="counts-compiled").map(
            total_line, name="counts-line"
        ),
        COUNT_TURNS,
        ["1 from 0: 3, highest 4", "2 from 0: 1, highest 3", "1 from 10: 1, highest 5"],
    ),
    TimeCase(
        "sessions",
        windows("sessions", bettong.sessions(s(10))),
        SESSION_TURNS,
        ["1 from 0 to 35.000: 1 2 5 6", "2 from 0 to 20.000: 3 4"],
        out_of_order_s=10,
    ),
    TimeCase(
        "sessions-compiled",
        lambda events: events.window(bettong.sessions(s(10)), COMPILED, name="sessions-compiled").map(
            total_line, name="session-line"
        ),
        SESSION_TURNS,
        ["1 from 0: 4, highest 6", "2 from 0: 2, highest 4"],
        out_of_order_s=10,
    ),
    TimeCase(
        "ephemeral",
        windows("ephemeral", ONCE, late="fire"),
        ONCE_TURNS,
        [
            "1 from 0 to 10: 1 2",
            "1 from 0 to 10: 4",
            "2 from 12 to 22: 3 5",
            "1 from 25 to 35: 6",
        ],
    ),
    TimeCase(
        "ephemeral-compiled",
        lambda events: events.window(ONCE, COMPILED, name="ephemeral-compiled", late="fire").map(
            total_line, name="ephemeral-line"
        ),
        ONCE_TURNS,
        [
            "1 from 0: 2, highest 2",
            "1 from 0: 1, highest 4",
            "2 from 12: 2, highest 5",
            "1 from 25: 1, highest 6",
        ],
    ),
    TimeCase(
        "early",
        windows("early", bettong.tumbling(s(100)), early=s(5)),
        EARLY_TURNS,
        [
            "1 from 0 to 100: 1 so far",
            "1 from 0 to 100: 1 2 so far",
            "1 from 0 to 100: 1 2",
            "2 from 200 to 300: 3 so far",
        ],
    ),
    TimeCase(
        "early-compiled",
        lambda events: events.window(bettong.tumbling(s(100)), SO_FAR, name="early-compiled", early=s(5)).map(
            so_far_line, name="so-far-line"
        ),
        EARLY_TURNS,
        [
            "1 from 0: sum 1 so far",
            "1 from 0: sum 3 so far",
            "1 from 0: sum 3",
            "2 from 200: sum 3 so far",
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
    *JOIN_CASES,
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
