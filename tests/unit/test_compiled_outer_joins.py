"""Compiled joins whose messages may stay alone, or wait: what `combine` may be, who is left out, what is shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any

import pytest

import bettong
from bettong import Application, ApplicationError, Width
from bettong.application.joins.kinds import How, Within
from bettong.application.plan import plan
from bettong.errors import PoisonError
from bettong.frames.frame import tick_record
from bettong.identifiers import Origin
from bettong.worker.exclusions import ExcludedTimer, Exclusion
from bettong.worker.output.framing import OutputRecord
from bettong.worker.progress import FoldPosition
from bettong.worker.stage_program import StageProgram, program
from tests.samples.compiled_joins import (
    OUT,
    VERSIONS,
    WINDOWS,
    Join,
    Talk,
    call,
    described_shortly,
    joined,
    ready,
    reported,
)
from tests.samples.kept_kernels import kept_kernels
from tests.samples.timers import tick as tick_of
from tests.samples.worker import data, fold, results, worker

FAR_NS = 10**6
END = tick_record("in", FAR_NS, {Origin("in/x"): FAR_NS, Origin("other/x"): FAR_NS})
KIND = Within(-5, 7)
# Lines 1 to 4: those of 1 and 3 are paired, 2 has only a call and 4 only a reply.
LOG = [
    data(
        "in/x",
        1,
        [
            *(call(line, 10, 6 * line + 3, answers=False) for line in (1, 2, 3)),
            *(call(line, 12, 7 * line, answers=True) for line in (1, 3, 4)),
        ],
        watermark_ns=9,
    ),
    tick_of(30, 15),
    data("in/x", 2, [call(1, 40, 40, answers=False), call(1, 41, 41, answers=True)], watermark_ns=40),
    tick_of(FAR_NS, FAR_NS),
]
# The version of line 4, with a tolerance of 12 ns.
VERSION_TIMER = b'{"key":"l4","timer":"due","at":25}'


@dataclass
class Side:
    key: int
    at: int
    value: int


@dataclass
class Both:
    key: int
    left: int
    right: int
    note: Annotated[str, Width(8)]


def valued(one: Side | None) -> int:
    return -1 if one is None else one.value


@bettong.compiled
def by_helper(one: Side | None, other: Side | None) -> Both | None:
    if one is not None and other is not None and one.value == other.value:
        return None
    key = one.key if one is not None else other.key if other is not None else 0
    return Both(key, valued(one), valued(other), "both" if one is not None and other is not None else "one")


@bettong.compiled
def alone_only(one: Side, other: Side | None) -> Both | None:
    """Messages without a partner: an anti join."""
    if other is not None:
        return None
    return Both(one.key, one.value, -1, f"{one.value}")


@bettong.compiled
def right_alone_only(one: Side | None, other: Side) -> Both | None:
    return Both(other.key, -1, other.value, "alone") if one is None else None


@bettong.compiled
def not_the_left(one: Side | None, other: Side | None) -> Both | None:
    """Messages of one side without a partner have no result."""
    if one is None:
        return None
    right = other.value if other is not None else 0
    return Both(one.key, one.value, right, "")


def sides(combine: Any, how: How) -> Application:
    app = Application("meters")
    one, other = (app.source(name, schema=Side, key="key", event_time="at") for name in ("in", "other"))
    us = timedelta(microseconds=1)
    one.join_within(other, -us, us, combine, how=how, name="pairs").sink("out")
    return app


def of_sides(combine: Any, how: How, *, compiled: bool) -> StageProgram:
    return program(plan(sides(combine, how)).stages[0], compiled=compiled, cache=kept_kernels())


@pytest.mark.parametrize(
    ("combine", "how"),
    [
        (by_helper, "outer"),
        (by_helper, "left"),
        (by_helper, "inner"),
        (alone_only, "left"),
        (right_alone_only, "right"),
        (not_the_left, "outer"),
    ],
)
def test_a_function_may_ask_for_its_messages_as_in_plain_python(
    combine: Callable[..., Any], how: How
) -> None:
    found: list[list[OutputRecord]] = []
    for compiled in (False, True):
        one = worker(of_sides(combine, how, compiled=compiled))
        records = fold(
            one,
            [
                data("in/x", 1, [Side(key, 5_000, key) for key in range(6)], watermark_ns=5_000),
                data("other/x", 1, [Side(key, 5_500, 2 * key) for key in range(0, 9, 3)], watermark_ns=5_000),
                END,
            ],
        )
        assert one.keys == 0
        found.append(records)
    assert found[0] == found[1]
    assert len(results(found[0], OUT, Both)) > 0


@bettong.compiled
def unasked(one: Side, other: Side | None) -> Both:
    return Both(one.key, one.value, other.value, "")  # type: ignore[union-attr]


@bettong.compiled
def as_truth(one: Side, other: Side | None) -> Both:
    return Both(one.key, one.value, other.value if other else 0, "")


@pytest.mark.parametrize(
    ("combine", "complaint"),
    [
        (unasked, "value is read where there is no message; ask for it before, as `if right is None`"),
        (as_truth, "ask for it before, as `if right is None`"),
    ],
)
def test_a_function_that_does_not_ask_is_refused_before_anything_runs(combine: Any, complaint: str) -> None:
    with pytest.raises(ApplicationError) as refused:
        of_sides(combine, "left", compiled=True)
    assert complaint in str(refused.value)


def of_both(join: Join) -> tuple[StageProgram, StageProgram]:
    return ready(join, compiled=False), ready(join, compiled=True)


def talks(records: list[OutputRecord]) -> list[tuple[str, int, int]]:
    return [(each.line, each.call, each.reply) for each in results(records, OUT, Talk)]


@pytest.mark.parametrize(
    "timer", [b"", b'{"key":"l2","timer":"due","at":18}', b'{"key":"l1","timer":"due","at":18}']
)
@pytest.mark.parametrize("how", ["inner", "left", "outer"])
def test_what_is_left_out_is_that_of_plain_python(how: How, timer: bytes) -> None:
    """Also a timer that would have had no result: the message had found a partner."""
    found = []
    for of in of_both(Join(KIND, how)):
        one = worker(of)
        left_out = ExcludedTimer("talks", timer, "talks", "killed")
        one.exclusions = {1: Exclusion(1, timers=(left_out,), is_logged=True)}
        records = fold(one, [LOG[0], tick_of(30, 20), *LOG[2:]])
        found.append((reported(records), one.counters, one.accounts.now()))
        assert one.keys == 0
    assert found[0] == found[1]
    assert "killed" in {reason for _, _, reason in found[0][0][1]}


@pytest.mark.parametrize(
    "timer",
    [
        b"",
        b'{"key":"l2","timer":"due","at":11}',
        VERSION_TIMER,
    ],
)
@pytest.mark.parametrize("join", VERSIONS, ids=str)
def test_what_is_left_out_of_versions_is_that_of_plain_python(join: Join, timer: bytes) -> None:
    """Also a timer that only drops versions. Messages that waited for it are dropped, without results."""
    found = []
    for of in of_both(join):
        one = worker(of)
        left_out = ExcludedTimer("talks", timer, "talks", "killed")
        one.exclusions = {1: Exclusion(1, timers=(left_out,), is_logged=True)}
        records = fold(one, [LOG[0], tick_of(30, 30), *LOG[2:]])
        kept = [state for _, state in one.tables["talks"].items()]
        found.append((reported(records), one.counters, one.accounts.now(), kept))
    assert found[0] == found[1]
    fires = timer != VERSION_TIMER or join is VERSIONS[3]
    assert ("killed" in {reason for _, _, reason in found[0][0][1]}) == fires


@pytest.mark.parametrize(
    ("join", "timer"),
    [
        (Join(KIND, "left"), b'{"key":"l2","timer":"due","at":18}'),
        (Join(KIND, "right"), b'{"key":"l4","timer":"due","at":18}'),
        (Join(KIND, "outer"), b'{"key":"l2","timer":"due","at":18}'),
        (VERSIONS[0], b'{"key":"l1","timer":"due","at":41}'),
        (VERSIONS[1], b'{"key":"l2","timer":"due","at":11}'),
        (WINDOWS[1], b'{"key":"l2","timer":"due","at":25}'),
        (WINDOWS[6], b'{"key":"l2","timer":"due","at":30}'),
    ],
    ids=lambda of: described_shortly(of) if isinstance(of, Join) else None,
)
def test_what_fires_is_marked_one_by_one_and_gives_what_it_gives_together(join: Join, timer: bytes) -> None:
    _, of = of_both(join)
    marks: list[FoldPosition] = []
    together, marked = worker(of), worker(of)
    marked.progress.mark = marks.append
    for value in LOG:
        assert fold(marked, [value]) == fold(together, [value])
        assert marked.snapshot() == together.snapshot()
    assert timer in {each.timer for each in marks}


def test_messages_that_stay_alone_come_by_time_then_by_key() -> None:
    found = []
    for compiled in (False, True):
        one = worker(of_sides(by_helper, "outer", compiled=compiled))
        fold(
            one,
            [
                data("in/x", 1, [Side(2, 9_000, 1), Side(1, 9_000, 2), Side(3, 4_000, 3), Side(2, 9_000, 4)]),
                data(
                    "other/x", 1, [Side(1, 7_000, 5), Side(2, 4_000, 6), Side(4, 9_000, 7), Side(3, 4_000, 8)]
                ),
                data("other/x", 2, [Side(5, 4_000, 9), Side(1, 7_000, 10)], previous=1),
                data("in/x", 2, [Side(5, 12_000, 11), Side(5, 4_000, 12)], previous=1),
            ],
        )
        found.append(fold(one, [END]))
    assert found[0] == found[1]
    assert [(each.key, each.left, each.right) for each in results(found[0], OUT, Both)] == [
        (2, -1, 6),
        (1, -1, 5),
        (1, -1, 10),
        (1, 2, -1),
        (2, 1, -1),
        (2, 4, -1),
        (4, -1, 7),
        (5, 11, -1),
    ]


def test_a_stop_stops_at_the_first_that_fails_by_time() -> None:
    found = []
    for compiled in (False, True):
        app = joined(Join(KIND, "left"), on_error="stop")
        one = worker(program(plan(app).stages[0], compiled=compiled, cache=kept_kernels()))
        messages = [
            call(line, 10 + line, number, answers=False) for line, number in ((1, 3), (2, 8), (3, 9), (4, 14))
        ]
        fold(one, [data("in/x", 1, messages, watermark_ns=9)])
        with pytest.raises(PoisonError) as stopped:
            fold(one, [tick_of(FAR_NS, FAR_NS)])
        found.append(str(stopped.value))
    assert found[0] == found[1]


def test_windows_behind_find_what_stayed_alone_at_the_time_when_that_was_known() -> None:
    @dataclass
    class Counted:
        key: int
        end: int
        count: int

    found = []
    for compiled in (False, True):
        app = Application("meters")
        one, other = (app.source(name, schema=Side, key="key", event_time="at") for name in ("in", "other"))
        us = timedelta(microseconds=1)
        pairs = one.join_within(other, -us, us, by_helper, how="outer")
        counted = bettong.aggregate(Counted, count=bettong.Count())
        pairs.window(bettong.tumbling(2 * us), counted, name="counted").sink("out")
        of = program(plan(app).stages[0], compiled=compiled, cache=kept_kernels())
        partition = worker(of)
        records = [
            record
            for number in range(1, 9)
            for name in ("in", "other")
            for record in fold(
                partition,
                [
                    data(
                        f"{name}/x",
                        number,
                        [
                            Side(key, 1_000 * number + 300 * key, len(name) * number)
                            for key in range(1 + number % len(name))
                        ],
                        previous=number - 1,
                        watermark_ns=1_000 * number,
                    )
                ],
            )
        ]
        found.append([*records, *fold(partition, [END])])
    assert found[0] == found[1]
    assert sum(each.count for each in results(found[0], OUT, Counted)) > 10
