"""Windows of windows, in the next stage: late messages do not depend on how messages were batched into frames."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bettong import Application
from bettong.application.plan import Plan, plan
from bettong.application.windows.kinds import Ranges, Sessions, WindowKind
from bettong.topics import stage_topic
from bettong.worker.output.downstream_watermarks import TICK_NS
from bettong.worker.stage_program import StageProgram, program
from tests.samples.lateness import Client
from tests.samples.windows import OUT, Amount, Seen, Values, windowed
from tests.samples.worker import fold, results, worker

FAR_NS = 1_000_000


class Starts(Values):
    """Which windows a window has."""

    def update(self, accumulator: list[int], amount: Seen) -> list[int]:  # type: ignore[override]
        return [*accumulator, amount.start * 10 + amount.key]


def group(seen: Seen) -> int:
    return seen.key % 2


def described(kind: WindowKind, late: Any) -> Plan:
    app = Application("meters")
    small = windowed(app, kind, late=late)
    large = Ranges(30, 30, 0, getattr(kind, "delay_ns", 0))
    small.key_by(group, name="groups").window(large, Starts(), name="wide").sink("large")
    return plan(app)


CASES: list[tuple[WindowKind, str]] = [
    (Ranges(10, 10, 0, 0), "drop"),
    (Ranges(10, 10, 0, 0), "fire"),
    (Ranges(10, 10, 0, 0), "oldest"),
    (Ranges(12, 4, 0, 0), "drop"),
    (Ranges(10, 10, 3, 7), "drop"),
    (Sessions(5, 0), "drop"),
]
PLANS = [described(*case) for case in CASES]
PROGRAMS: list[list[StageProgram]] = [
    [program(stage, compiled=False) for stage in each.stages] for each in PLANS
]


def outcome(case: int, parts: list[list[Amount]]) -> tuple[Any, ...]:
    """The firings of both, and how many messages were late for each."""
    client, (one, two) = Client(PLANS[case], 1), map(worker, PROGRAMS[case])
    ends = [[Amount(9, FAR_NS + number, 0)] for number in range(3)]
    small: list[Seen] = []
    large: list[Seen] = []
    for number, part in enumerate([*parts, *ends]):
        now_ns = 1000 + max(0, number - len(parts)) * 2 * TICK_NS
        found = fold(one, [value for _, value in client.send(part, now_ns)])
        small += results(found, OUT, Seen)
        groups = [record.value for record in found if record.topic == stage_topic("meters", "groups")]
        large += results(fold(two, groups), "meters.sink.large", Seen)
    shown = [
        sorted((each.key, each.start, each.end, tuple(sorted(each.values.split()))) for each in found)
        for found in (small, large)
    ]
    assert large, "the end of all windows has come"
    return (*shown, one.counters.late, one.counters.partly_late, two.counters.late)


@settings(max_examples=40)  # each folds two stages three times, a frame a message in one of them
@pytest.mark.parametrize("case", range(len(CASES)))
@given(
    found=st.lists(st.tuples(st.integers(1, 4), st.integers(0, 99)), min_size=1, max_size=25),
    rows=st.lists(st.integers(0, 24), max_size=5),
)
def test_windows_of_windows_do_not_depend_on_how_messages_were_cut(
    case: int, found: list[tuple[int, int]], rows: list[int]
) -> None:
    messages = [Amount(key, at_ns, number) for number, (key, at_ns) in enumerate(found)]
    bounds = sorted({0, len(messages), *(row for row in rows if row < len(messages))})
    one_by_one = outcome(case, [[each] for each in messages])
    assert outcome(case, [messages]) == one_by_one
    assert outcome(case, [messages[start:stop] for start, stop in pairwise(bounds)]) == one_by_one
    if CASES[case][1] != "fire":
        assert one_by_one[-1] == 0, "no result is late for having waited for the end of its window"
