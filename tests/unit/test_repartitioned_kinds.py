"""Each kind of state table, repartitioned while in use: the results do not differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import bettong
from bettong.application.joins.kinds import Within
from bettong.testing import RESEND, AppSession, assert_alike, clock
from bettong.testing.running import ReadyApplication
from tests.samples.compiled_joins import NEWEST, VERSIONS, Call, Join, joined
from tests.samples.time_pipelines import S_NS, START_NS
from tests.simulation.repartitioned import RepartitionedSession

CHANGES = (5, 2, 7, 1, 4)
ROUNDS = 15


@dataclass
class Reading:
    meter: bettong.u32
    at: int
    value: int


@dataclass
class Sum:
    total: int = 0


@dataclass
class Values:
    """By number modulo four."""

    sums: NDArray[np.int64] = field(default_factory=lambda: np.zeros(4, np.int64))


@bettong.compiled
def add(reading: Reading, kept: Sum) -> Reading:
    kept.total += reading.value
    return Reading(reading.meter, reading.at, kept.total)


@bettong.vectorized
def add_all(reading: Reading, kept: Sum, at: Any) -> Reading:
    totals: Any = kept.total
    np.add.at(totals, at, reading.value)
    return Reading(reading.meter, reading.at, totals[at])


def add_to_array(reading: Reading, kept: Values) -> Reading:
    kept.sums[reading.value % 4] += 1
    return Reading(reading.meter, reading.at, int(kept.sums[reading.value % 4]))


def of(function: Any, state: type, **options: Any) -> bettong.Application:
    app = bettong.Application("kinds")
    readings = app.source("readings", schema=Reading, key="meter", event_time="at")
    readings.stateful(function, state=state, name="kept", **options).sink("out")
    return app


def counted_locally() -> bettong.Application:
    """Combined before it gets another key: partials pass the log between the stages."""
    app = bettong.Application("kinds")
    readings = app.source(
        "readings", schema=Reading, key="meter", event_time="at", out_of_order=timedelta(seconds=5)
    )
    windows = bettong.sliding(timedelta(seconds=6), timedelta(seconds=2))
    count = bettong.aggregate(Counted, seen=bettong.Count(), total=bettong.Sum("value"))
    readings.local("value").window(windows, count).sink("out")
    return app


@dataclass
class Counted:
    key: int
    start: int
    seen: int
    total: int


def readings() -> list[list[object]]:
    """Each meter at most once in a frame, so that no partitions' results have to keep an order among each other."""
    random = Random(2)
    return [
        [
            clock(at=START_NS + number * S_NS),
            *(
                ("readings", Reading(meter, START_NS + number * S_NS, random.randint(0, 9)))
                for meter in random.sample(range(20), 4)
            ),
        ]
        for number in range(ROUNDS)
    ]


def calls() -> list[list[object]]:
    """To both sides of a join, some late, some without a partner."""
    random, now_ns, found = Random(3), 10**9, list[list[object]]()
    for _ in range(ROUNDS):
        made = [
            Call(
                random.choice(["a", "b", "c", "\u00e4", ""]),
                now_ns + random.randint(-5, 5),
                random.random() < 0.5,
                random.randint(0, 10**6),
                0.5,
                random.randint(-9, 9),
                "w",
            )
            for _ in range(random.randint(1, 5))
        ]
        now_ns += random.randint(0, 12)
        sides = [
            (source, [each for each in made if each.answers == answers])
            for source, answers in (("in", False), ("other", True))
        ]
        found.append([side for side in sides if side[1]])
    return found


KINDS = {
    "compiled": (of(add, Sum), True, readings()),
    "compiled, to live by the log's clock": (of(add, Sum, ttl=timedelta(seconds=5)), True, readings()),
    "compiled, to live by event time": (
        of(add, Sum, ttl=timedelta(seconds=3), ttl_clock="event"),
        True,
        readings(),
    ),
    "vectorized": (of(add_all, Sum), True, readings()),
    "arrays": (of(add_to_array, Values), False, readings()),
    "windows of what is combined before": (counted_locally(), False, readings()),
    "a compiled join": (joined(Join(Within(-20, 20)), sources=2), True, calls()),
    "a compiled join, of messages that stay alone": (
        joined(Join(Within(-20, 20), "outer"), sources=2),
        True,
        calls(),
    ),
    "a compiled join with versions": (joined(VERSIONS[1], sources=2), True, calls()),
    "a compiled join with what is newest": (joined(NEWEST[1], sources=2), True, calls()),
    "a join in plain Python": (joined(Join(Within(-20, 20)), sources=2), False, calls()),
}


@pytest.mark.parametrize("resend", [False, True], ids=["", "resent"])
@pytest.mark.parametrize("name", KINDS)
def test_each_kind_of_state_goes_on_where_its_keys_belong(name: str, *, resend: bool) -> None:
    app, compiled, steps = KINDS[name]
    ready = ReadyApplication(app, compiled=compiled)
    changed, straight = RepartitionedSession(ready, partitions=3), AppSession(ready, partitions=1)
    run(changed, straight, steps, resend=resend)
    expected = straight.finish()
    assert sum(map(len, expected.outputs.values())) > ROUNDS
    assert_alike(changed.finish(), expected)


def run(
    changed: RepartitionedSession, straight: AppSession, steps: Sequence[Sequence[object]], *, resend: bool
) -> None:
    for number, step in enumerate(steps):
        for session in (changed, straight):
            session.step(*step)
        if number % 3 == 2:
            changed.repartition(CHANGES[number // 3 % len(CHANGES)])
            if resend:
                changed.step(RESEND)
