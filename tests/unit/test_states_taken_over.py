"""A worker that already has a state takes over what another process has saved since, and goes on from there.

Under the micro-batch schedule a partition's batches go to whichever process is free, and each keeps its worker.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

import bettong
from bettong import Application
from bettong.application.plan import plan
from bettong.worker.stage_program import StageProgram, program
from tests.samples.every_aggregate import by_windows
from tests.samples.joins import Event, as_of, in_window, joined, latest, us, within
from tests.samples.state_tables import small_increments
from tests.samples.timers import FORMS, Note, described, tick
from tests.samples.windows import KINDS, Amount, windowed
from tests.samples.worker import data, fold, worker

RECORDS = 80
SLIDING = bettong.sliding(us(24), us(2))
OPTIONS: dict[str, dict[str, Any]] = {"drop": {}, "oldest": {"late": "oldest"}, "early": {"early": us(1)}}


def amount(chance: Random, at_ns: int, number: int) -> Amount:
    return Amount(chance.randrange(9), at_ns, number)


def event(chance: Random, at_ns: int, number: int) -> Event:
    return Event(chance.randrange(9), chance.random() < 0.5, at_ns, number)


def of_windows(kind: str, option: str) -> Application:
    app = Application("meters")
    windowed(app, KINDS[kind], **OPTIONS[option])
    return app


WINDOWS: dict[str, Callable[[], Application]] = {
    f"{kind}, {option}": lambda kind=kind, option=option: of_windows(kind, option)  # type: ignore[misc]
    for kind in KINDS
    for option in OPTIONS
    if kind in ("tumbling", "sliding", "sessions") or option == "drop"
}


@dataclass
class Sums:
    key: bettong.u32
    messages: int
    total: int
    most: int


def sums() -> Any:
    made = bettong.aggregate(
        Sums, messages=bettong.Count(), total=bettong.Sum("value"), most=bettong.Max("value")
    )
    return bettong.compiled(made)


AGGREGATES: dict[str, Callable[[], Application]] = {
    "tumbling": lambda: by_windows(bettong.tumbling(us(4)), sums()),
    "sliding": lambda: by_windows(SLIDING, sums()),
    "sliding, oldest": lambda: by_windows(SLIDING, sums(), late="oldest"),
    "sessions": lambda: by_windows(bettong.sessions(us(4)), sums()),
}
JOINS: dict[str, Callable[[], Application]] = {
    "within": lambda: joined(within(-6, 6, "outer")),
    "as of": lambda: joined(as_of(8, "left")),
    "latest": lambda: joined(latest("left")),
    "in sliding windows": lambda: joined(in_window(SLIDING, "outer")),
    "in sessions": lambda: joined(in_window(bettong.sessions(us(4)), "outer")),
}

TTLS: dict[str, dict[str, Any]] = {
    "kept": {},
    "until a time of the log": {"ttl": us(2), "ttl_clock": "log"},
    "until an event time": {"ttl": us(2), "ttl_clock": "event"},
}
STATES = [
    (how, ttl, deletes)
    for how in FORMS
    for ttl in TTLS
    for deletes in (False, True)
    if not (deletes and how == "vectorized")
]


def log_of(chance: Random, message: Callable[[Random, int, int], Any], unit_ns: int = 1000) -> list[bytes]:
    """Records of few messages each, some of them late. `unit_ns`: of the sizes of windows."""
    values, watermark_ns = [], 20 * unit_ns
    for number in range(1, RECORDS + 1):
        times = [watermark_ns + unit_ns * chance.randrange(-6, 12) for _ in range(chance.randrange(1, 5))]
        messages = [message(chance, at_ns, 10 * number + each) for each, at_ns in enumerate(times)]
        values.append(data("in/x", number, messages, previous=number - 1, watermark_ns=watermark_ns))
        watermark_ns += unit_ns * chance.choice([0, 0, 1, 5])
    return values


def notes_of(chance: Random) -> list[bytes]:
    """Records that set and clear timers around both clocks, and TICKs."""
    values, log_ns, watermark_ns = [], 1000, 1000
    for number in range(1, RECORDS + 1):
        log_ns += chance.choice([0, 3, 50, 400, 2500])
        watermark_ns += chance.choice([0, 2, 60, 700])
        times = [
            chance.choice([log_ns, watermark_ns]) + chance.randrange(-50, 900)
            for _ in range(chance.randrange(1, 4))
        ]
        notes = [Note(chance.randrange(8), chance.randrange(5), at_ns) for at_ns in times]
        values.append(
            data("in/x", number, notes, previous=number - 1, ingest_ns=log_ns, watermark_ns=watermark_ns)
        )
        if chance.random() < 0.3:
            log_ns += chance.choice([0, 500, 3000])
            values.append(tick(log_ns, watermark_ns))
    return values


def goes_on(made: StageProgram, values: list[bytes], chance: Random) -> None:
    """Two workers take turns, each with what the other one has saved; and one folds everything."""
    straight, turns = worker(made), [worker(made), worker(made)]
    mine, emitted = 0, 0
    for value in values:
        expected = fold(straight, [value])
        assert fold(turns[mine], [value]) == expected
        emitted += len(expected)
        if chance.random() < 0.25:
            _, increment = turns[mine].increment()
            mine = 1 - mine
            turns[mine].restore(increment)
            assert turns[mine].snapshot() == straight.snapshot()
    assert emitted > 9


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", WINDOWS)
def test_windows_go_on(name: str, seed: int) -> None:
    made = program(plan(WINDOWS[name]()).stages[0], compiled=False)
    with small_increments():
        goes_on(made, log_of(Random(seed), amount, unit_ns=1), Random(seed))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", AGGREGATES)
def test_aggregates_go_on(name: str, *, compiled: bool) -> None:
    made = program(plan(AGGREGATES[name]()).stages[0], compiled=compiled)
    assert bool(made.kernels) == compiled
    with small_increments():
        for seed in range(3):
            goes_on(made, log_of(Random(seed), amount), Random(seed))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", JOINS)
def test_joins_go_on(name: str, seed: int) -> None:
    made = program(plan(JOINS[name]()).stages[0], compiled=False)
    with small_increments():
        goes_on(made, log_of(Random(seed), event), Random(seed))


@pytest.mark.parametrize(("how", "ttl", "deletes"), STATES)
def test_states_with_timers_go_on(how: str, ttl: str, *, deletes: bool) -> None:
    planned = described(
        how, deletes=deletes, event_time="at" if ttl == "until an event time" else None, **TTLS[ttl]
    )
    made = program(planned.stages[0], compiled=True)
    assert bool(made.kernels) == (how == "compiled")
    with small_increments():
        for seed in range(3):
            goes_on(made, notes_of(Random(seed)), Random(seed))
