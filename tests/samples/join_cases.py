"""Small cases of joins. Results are written out by hand, from what docs/semantics.md says."""

from __future__ import annotations

from collections.abc import Sequence

import bettong
from bettong.testing import Reference
from tests.samples.time_case import Happening, TimeCase
from tests.samples.time_pipelines import (
    MINUTE,
    KeyName,
    as_of,
    as_of_compiled,
    in_window,
    in_window_compiled,
    latest,
    latest_compiled,
    latest_compiled_for_a_while,
    latest_for_a_while,
    left,
    reference,
    reference_before_windows,
    right,
    s,
    within,
    within_compiled,
)

PAIR_TURNS = (
    [left(1, 10, 1), right(2, 10, 2)],
    [right(1, 15, 3), right(1, 4, 4), left(2, 21, 5)],  # 4 is late: left ones of before 10 are gone at 15
    [right(1, 16, 6)],
    [left(3, 60, 7)],
)
TABLE_TURNS = (
    [left(1, 0, 1), right(1, 0, 2), left(1, 0, 3)],
    [left(1, 10, 4), right(1, 10, 5), right(2, 10, 6)],
    [left(1, 20, 7), right(1, 20, 8, gone=True), left(1, 20, 9), left(2, 20, 10)],
)
AGEING_TURNS = ([right(1, 0, 1), left(1, 0, 2)], [left(1, 10, 3)], [left(1, 20, 4)])
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


def names(join: str, *rows: tuple[int, str]) -> Reference:
    return Reference(join, [KeyName(*row) for row in rows])


def reference_turns(join: str) -> Sequence[Sequence[Happening]]:
    """Between the events of a turn, behind its last one, before its first one, and back to what was once."""
    changed = [(1, "uno"), (3, "tres")]
    return (
        [left(1, 1, 1), left(2, 1, 2), left(3, 1, 3)],
        [left(1, 8, 4), names(join, *changed), left(1, 8, 5), left(2, 12, 6), left(3, 12, 7)],
        [left(1, 13, 8), names(join, *changed), left(1, 14, 9), names(join, (1, "eins"), (2, "zwei"))],
        [left(1, 15, 10), left(3, 15, 11)],
        [names(join), names(join, *changed), left(1, 35, 12), left(2, 60, 13)],
    )


SLIDING_PAIRS = [
    *("1 2", "1 3", "4 2", "4 3"),  # from -10
    *("1 2", "1 3", "1 5", "4 2", "4 3", "4 5", "6 -"),  # from 0
    "6 -",  # from 10
]
SESSION_TURNS = (
    [left(1, 0, 1), right(1, 8, 2), left(2, 0, 3)],
    [right(1, 25, 4)],
    [left(1, 17, 5)],  # makes one session of two
    [left(3, 60, 6)],
)

JOIN_CASES = (
    TimeCase("within", within("inner", "within"), PAIR_TURNS, ["1 3"]),
    TimeCase("within-compiled", within_compiled("inner", "within-compiled"), PAIR_TURNS, ["1 3"]),
    TimeCase("left-within", within("left", "left-within"), PAIR_TURNS, ["1 3", "5 -"]),
    TimeCase("right-within", within("right", "right-within"), PAIR_TURNS, ["1 3", "- 2", "- 6"]),
    TimeCase("within-outer", within("outer", "within-outer"), PAIR_TURNS, ["1 3", "- 2", "5 -", "- 6"]),
    TimeCase(
        "within-outer-compiled",
        within_compiled("outer", "within-outer-compiled"),
        PAIR_TURNS,
        ["1 3", "- 2", "5 -", "- 6"],
    ),
    TimeCase("latest", latest("left", "latest"), TABLE_TURNS, ["1 -", "3 2", "4 2", "7 5", "9 -", "10 6"]),
    TimeCase("latest-inner", latest("inner", "latest-inner"), TABLE_TURNS, ["3 2", "4 2", "7 5", "10 6"]),
    TimeCase("latest-compiled", latest_compiled, TABLE_TURNS, ["1 -", "3 2", "4 2", "7 5", "9 -", "10 6"]),
    TimeCase("latest-ttl", latest_for_a_while, AGEING_TURNS, ["2 1", "3 1", "4 -"]),
    TimeCase("latest-ttl-compiled", latest_compiled_for_a_while, AGEING_TURNS, ["2 1", "3 1", "4 -"]),
    TimeCase("as-of", as_of("left", "as-of"), VERSION_TURNS, ["2 3", "5 4", "6 -", "7 -"], out_of_order_s=5),
    TimeCase("as-of-inner", as_of("inner", "as-of-inner"), VERSION_TURNS, ["2 3", "5 4"], out_of_order_s=5),
    TimeCase(
        "as-of-compiled",
        as_of_compiled("left", "as-of-compiled"),
        VERSION_TURNS,
        ["2 3", "5 4", "6 -", "7 -"],
        out_of_order_s=5,
    ),
    TimeCase(
        "as-of-inner-compiled",
        as_of_compiled("inner", "as-of-inner-compiled"),
        VERSION_TURNS,
        ["2 3", "5 4"],
        out_of_order_s=5,
    ),
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
        "in-window-compiled",
        in_window_compiled(MINUTE, "outer", "in-window-compiled"),
        WINDOW_TURNS,
        ["1 2", "1 3", "4 2", "4 3", "- 5", "6 -"],
    ),
    TimeCase(
        "in-sliding",
        in_window(bettong.sliding(s(20), s(10)), "left", "in-sliding"),
        WINDOW_TURNS,
        SLIDING_PAIRS,
    ),
    TimeCase(
        "in-sliding-compiled",
        in_window_compiled(bettong.sliding(s(20), s(10)), "left", "in-sliding-compiled"),
        WINDOW_TURNS,
        SLIDING_PAIRS,
    ),
    TimeCase(
        "in-session",
        in_window(bettong.sessions(s(10)), "inner", "in-session"),
        SESSION_TURNS,
        ["1 2", "1 4", "5 2", "5 4"],
        out_of_order_s=10,
    ),
    TimeCase(
        "in-session-compiled",
        in_window_compiled(bettong.sessions(s(10)), "inner", "in-session-compiled"),
        SESSION_TURNS,
        ["1 2", "1 4", "5 2", "5 4"],
        out_of_order_s=10,
    ),
    TimeCase(
        "reference",
        reference("left", "reference"),
        reference_turns("reference"),
        [
            *("1 one", "2 two", "3 -"),
            *("4 one", "5 uno", "6 -", "7 tres"),
            *("8 uno", "9 uno", "10 eins", "11 -"),
            *("12 uno", "13 -"),
        ],
    ),
    TimeCase(
        "reference-inner",
        reference("inner", "reference-inner"),
        reference_turns("reference-inner"),
        [
            *("1 one", "2 two", "4 one", "5 uno", "7 tres"),
            *("8 uno", "9 uno", "10 eins", "12 uno"),
        ],
    ),
    TimeCase(
        "reference-window",  # a window has what its messages saw when they came
        reference_before_windows,
        reference_turns("reference-window"),
        [
            *("1 from 0: 1=one 4=one 5=uno", "2 from 0: 2=two"),
            *("1 from 10: 8=uno 9=uno 10=eins", "3 from 10: 7=tres"),
            "1 from 30: 12=uno",
        ],
    ),
)
