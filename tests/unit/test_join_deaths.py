"""Joins that kill the worker, in real processes: found, left out, and nothing else is lost."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import pytest

import bettong
from bettong import Application
from bettong.application.plan import plan
from bettong.worker.exclusions import ExcludedTimer, Exclusion
from bettong.worker.partition import PartitionWorker
from bettong.worker.progress import FoldPosition
from bettong.worker.stage_program import StageProgram, program
from tests.samples.joins import (
    US,
    Entry,
    Event,
    Make,
    Pair,
    as_of,
    entry,
    event,
    in_window,
    is_left,
    is_right,
    pairs,
    record,
    us,
    within,
)
from tests.samples.timers import tick as tick_of
from tests.samples.worker import dead_letters, fold, worker
from tests.simulation.worker_lives import DONE, fold_in_a_process, lived, output

SEGFAULT = "killed the worker: signal 11 (SIGSEGV)"
KILLS = 13


def deadly(left: Event | None, right: Entry | None) -> Pair:
    """Kills where the left one's value is 13."""
    if left is not None and left.value == KILLS:
        ctypes.string_at(0)
    found = left or right
    assert found is not None
    return Pair(found.key, -1 if left is None else left.value, -1 if right is None else right.value)


def tame(left: Event | None, right: Entry | None) -> Pair:
    found = left or right
    assert found is not None
    return Pair(found.key, -1 if left is None else left.value, -1 if right is None else right.value)


# Of each kind of join, when the pair of key 3 is due by time, in ns.
BY_TIME: dict[str, tuple[Make, int]] = {
    "within": (within(-1, 4, "left"), 6 * US + 1),
    "as of": (as_of(2, "left"), 2 * US + 1),
    "window": (in_window(bettong.tumbling(us(5)), "left"), 5 * US),
}


def ready(make: Make, combine: Any = deadly) -> StageProgram:
    app = Application("meters")
    events = app.source("in", schema=Event, key="key", event_time="at")
    left, right = events.filter(is_left), events.filter(is_right).map(entry)
    make(left, right, combine, name="pairs").sink("out")
    return program(plan(app).stages[0], compiled=False)


def log_of(guilty: int) -> list[bytes]:
    """Left ones of keys 1 to 4, of which that of key 3 is guilty, and later one of key 3 with a partner."""
    return [
        record(1, [event(key, "l", 2, guilty if key == 3 else key) for key in (1, 2, 3, 4)], 2),
        tick_of(60, 40 * US),
        record(2, [event(3, "r", 60, 8), event(3, "l", 60, 7)], 60),
        tick_of(120, 99 * US),
    ]


@pytest.mark.parametrize("name", BY_TIME)
def test_what_kills_by_time_is_a_dead_letter_and_does_not_come_back(name: str, tmp_path: Path) -> None:
    make, due_ns = BY_TIME[name]
    log = log_of(KILLS)
    assert lived(ready(make), log, tmp_path) == 3
    once = output(tmp_path)
    (dead,) = dead_letters(once)
    text = f'{{"key":3,"timer":"due","at":{due_ns}}}'.encode()
    assert (dead.computation, dead.message, dead.reason, dead.fired) == ("pairs", text, SEGFAULT, True)
    assert pairs(once) == [(1, -1), (2, -1), (4, -1), (7, 8)]
    assert fold_in_a_process(ready(make), log, tmp_path, 0) == DONE
    assert output(tmp_path) == once


def test_a_message_that_kills_with_its_partner_is_a_dead_letter(tmp_path: Path) -> None:
    log = [
        record(1, [event(1, "l", 2, 1), event(3, "l", 2, KILLS), event(3, "l", 2, 5)], 2),
        record(2, [event(1, "r", 3, 2), event(3, "r", 3, 3), event(1, "r", 3, 4)], 3),
    ]
    assert lived(ready(within(-1, 4, "inner")), log, tmp_path) == 3
    (dead,) = dead_letters(output(tmp_path))
    assert (dead.computation, dead.index, dead.reason) == ("pairs", 1, SEGFAULT)
    assert pairs(output(tmp_path)) == [(1, 2), (1, 4)]


@pytest.mark.parametrize("name", BY_TIME)
def test_rows_marked_one_by_one_give_what_they_give_together(name: str) -> None:
    of = ready(BY_TIME[name][0], tame)
    marks: list[FoldPosition] = []
    together, marked = worker(of), worker(of)
    marked.progress.mark = marks.append
    for value in log_of(5):
        assert fold(marked, [value]) == fold(together, [value])
        assert marked.snapshot() == together.snapshot()
    assert {each.timer for each in marks} > {b""}
    assert {each.message for each in marks} >= {0, 1, 2, 3}


@pytest.mark.parametrize("all_of_them", [False, True])
@pytest.mark.parametrize("name", BY_TIME)
def test_what_is_left_out_is_gone_and_the_others_come(name: str, *, all_of_them: bool) -> None:
    make, due_ns = BY_TIME[name]
    one: PartitionWorker = worker(ready(make, tame))
    timer = b"" if all_of_them else f'{{"key":3,"timer":"due","at":{due_ns}}}'.encode()
    one.exclusions = {
        1: Exclusion(1, timers=(ExcludedTimer("pairs", timer, "pairs", "killed"),), is_logged=True)
    }
    log = log_of(5)
    found = fold(one, log[:2])
    assert len(dead_letters(found)) == (4 if all_of_them else 1)
    assert pairs(found) == ([] if all_of_them else [(1, -1), (2, -1), (4, -1)])
    assert one.keys == 0
    assert pairs(fold(one, log[2:])) == [(7, 8)]
