"""How often a timer fires at one record: a million times if its times advance, a thousand if not."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import bettong
from bettong import Application
from bettong.application.plan import plan
from bettong.worker import firing_bounds
from bettong.worker.firing_bounds import FIRINGS_MAX, STUCK_MAX
from bettong.worker.operators import firings
from bettong.worker.partition import PartitionWorker
from bettong.worker.stage_program import StageProgram, program
from tests.samples.timers import CLOSE, FORMS, SET, Kept, Note, Rang, rang, tick
from tests.samples.worker import data, dead_letters, fold, worker
from tests.simulation.twins import compiled_twin

every_speed = pytest.mark.parametrize("how", FORMS)


def again(fired: bettong.Fired[int], kept: Kept) -> Rang:
    """Key 3 sets it to times that are over, and gets on with every fifth."""
    kept.count += 1
    kept.ring = fired.at
    if fired.key == 3:
        kept.ring = fired.at - 1 if kept.count % 5 else fired.at + 6
    return Rang(fired.key, fired.at, kept.count, 1)


def gently(fired: bettong.Fired[int], kept: Kept) -> Rang:
    kept.count += 1
    kept.ring = fired.at + fired.key
    return Rang(fired.key, fired.at, kept.count, 1)


@bettong.vectorized
def again_all(
    fired: bettong.Fired[int], kept: Kept, keys: bettong.RowIndexes
) -> tuple[Rang, bettong.RowIndexes]:
    due, state = _columns(fired), _columns(kept)
    state.count += 1
    state.ring = np.where(due.key != 3, due.at, np.where(state.count % 5 != 0, due.at - 1, due.at + 6))
    return Rang(due.key, due.at, state.count, 1), np.arange(len(due.at))


@bettong.vectorized
def gently_all(
    fired: bettong.Fired[int], kept: Kept, keys: bettong.RowIndexes
) -> tuple[Rang, bettong.RowIndexes]:
    due, state = _columns(fired), _columns(kept)
    state.count += 1
    state.ring = due.at + due.key
    return Rang(due.key, due.at, state.count, 1), np.arange(len(due.at))


def _columns(message: Any) -> Any:
    return message


RINGS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "python": (again, gently),
    "compiled": (compiled_twin(again), compiled_twin(gently)),
    "vectorized": (again_all, gently_all),
}


@cache
def made(how: str, number: int) -> StageProgram:
    function, _, on_close, *_ = FORMS[how]
    app = Application("meters")
    app.source("in", schema=Note, key="key").stateful(
        function, state=Kept, timers={"ring": RINGS[how][number], "close": on_close}, name="alarms"
    ).sink("out")
    return program(plan(app).stages[0], compiled=True)


def standing(how: str) -> PartitionWorker:
    return worker(made(how, 0))


def going_on(how: str) -> PartitionWorker:
    return worker(made(how, 1))


@every_speed
def test_a_timer_that_is_set_again_for_ever_becomes_a_dead_letter(how: str) -> None:
    one = standing(how)
    records = fold(one, [data("in/x", 1, [Note(1, SET, 5), Note(2, CLOSE, 5)]), tick(5)])
    (first, second) = dead_letters(records)
    assert (first.message, second.message) == (
        b'{"key":1,"timer":"ring","at":5}',
        b'{"key":2,"timer":"ring","at":5}',
    )
    assert "1,000 times in a row at one record" in first.reason
    assert "later time than fired.at" in first.reason
    assert one.tables["alarms"].state_of(1) == {"count": 1 + STUCK_MAX, "ring": None, "close": None}
    # The first one of key 2 was `close`, which goes by another clock.
    assert one.tables["alarms"].state_of(2) == {"count": 1 + 100 + STUCK_MAX, "ring": None, "close": None}
    assert fold(one, [tick(6)]) == []


@every_speed
def test_what_gets_on_again_and_again_does_not_stand_still(how: str) -> None:
    one = standing(how)
    assert dead_letters(fold(one, [data("in/x", 1, [Note(3, SET, 5)]), tick(1000)])) == []
    state = one.tables["alarms"].state_of(3)
    assert state is not None
    assert state["ring"] is not None
    assert state["count"] > 2 * STUCK_MAX


@every_speed
def test_a_timer_that_gets_on_catches_up_with_its_clock(how: str) -> None:
    """Two keys, whose steps are 1 and 2: by time, then by key, as a queue of them would be."""
    one = going_on(how)
    notes = [Note(1, SET, 5), Note(2, SET, 5)]
    records = fold(one, [data("in/x", 1, notes), tick(4 + 3 * STUCK_MAX)])
    assert dead_letters(records) == []
    expected = sorted(
        (at, key, 2 + (at - 5) // key) for key in (1, 2) for at in range(5, 5 + 3 * STUCK_MAX, key)
    )
    assert [(each.at, each.key, each.count) for each in rang(records)] == expected
    assert one.tables["alarms"].state_of(1) == {
        "count": 1 + 3 * STUCK_MAX,
        "ring": 5 + 3 * STUCK_MAX,
        "close": None,
    }


@every_speed
def test_what_gets_on_by_small_steps_becomes_a_dead_letter_after_many(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An hour of steps of a nanosecond would take years. Other keys are not affected."""
    assert FIRINGS_MAX == 1_000_000
    monkeypatch.setattr(firing_bounds, "FIRINGS_MAX", 300)
    one = going_on(how)
    notes = [Note(1, SET, 5), Note(2, SET, 5)]
    records = fold(one, [data("in/x", 1, notes), tick(4 + 400), tick(4 + 500)])
    (dead,) = dead_letters(records)
    assert dead.message == b'{"key":1,"timer":"ring","at":305}'
    assert "its key's timers fired 300 times at one record" in dead.reason
    assert [each.count for each in rang(records) if each.key == 1] == list(range(2, 302))
    assert one.tables["alarms"].state_of(1) == {"count": 301, "ring": None, "close": None}
    assert one.tables["alarms"].state_of(2) == {"count": 251, "ring": 505, "close": None}


@every_speed
@pytest.mark.parametrize("number", [0, 1])
def test_that_rounds_are_joined_changes_nothing(
    how: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for rounds in (2, 10**6):
        monkeypatch.setattr(firings, "_ROUNDS_JOINED", rounds)
        monkeypatch.setattr(firing_bounds, "STUCK_MAX", 20)
        one = worker(made(how, number))
        notes = [Note(1, SET, 5), Note(2, SET, 5), Note(3, SET, 7), Note(2, CLOSE, 6), Note(4, CLOSE, 9)]
        found.append((fold(one, [data("in/x", 1, notes), tick(60)]), one.snapshot()))
    assert found[0] == found[1]
    assert (dead_letters(found[0][0]) != []) == (number == 0)
