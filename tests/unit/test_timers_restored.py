"""Timers after a crash, a move and a change of the application: none is lost, none fires twice."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

import pytest

from bettong.errors import StateChangedError
from bettong.worker.output.framing import OutputRecord
from bettong.worker.partition import PartitionWorker
from bettong.worker.stage_program import program
from tests.samples.state_tables import small_increments
from tests.samples.timers import (
    CLEAR,
    CLOSE,
    COUNT,
    FAIL,
    SET,
    Kept,
    Note,
    Rang,
    close,
    described,
    fresh,
    rang,
    tick,
    value_of,
)
from tests.samples.worker import data, fold, worker


@pytest.mark.parametrize("deletes", [False, True])
@pytest.mark.parametrize("how", ["python", "compiled"])
@pytest.mark.parametrize("seed", range(3))
def test_a_crash_at_any_record_neither_loses_nor_repeats_a_timer(how: str, deletes: bool, seed: int) -> None:  # noqa: FBT001 - pytest fills it in
    chance, values, clock_ns = Random(seed), list[bytes](), 10
    for number in range(1, 61):
        clock_ns += chance.choice([0, 1, 4, 30])
        whats = chance.choices([SET, CLOSE, CLEAR, FAIL, COUNT], k=chance.randrange(4))
        notes = [Note(chance.randrange(12), what, clock_ns + chance.randrange(-5, 60)) for what in whats]
        values.append(value_of(number, clock_ns, clock_ns - 3, notes))
    with small_increments():
        straight, outputs, states = fresh(how, deletes=deletes), list[list[OutputRecord]](), list[bytes]()
        for value in values:
            outputs.append(fold(straight, [value]))
            states.append(straight.snapshot())
        assert sum(len(rang(each)) for each in outputs) > 30
        crashed, saved = fresh(how, deletes=deletes), list[tuple[int, int, bytes]]()
        for offset, value in enumerate(values):
            assert fold(crashed, [value]) == outputs[offset]
            if chance.random() < 0.5:
                increment, stored = crashed.increment()
                saved.append((increment.offset, increment.root, stored))
            crashed = restored(partial(fresh, how, deletes=deletes), saved)
            for again in range(crashed.next_offset, offset + 1):
                assert fold(crashed, [values[again]]) == outputs[again]
            assert crashed.snapshot() == states[offset]


def restored(make: Any, saved: list[tuple[int, int, bytes]]) -> PartitionWorker:
    one: PartitionWorker = make()
    for offset, _, stored in saved:
        if offset >= saved[-1][1]:
            one.restore(stored)
    return one


def test_a_timer_that_a_migration_makes_fires() -> None:
    old = fresh("python")
    fold(old, [data("in/x", 1, [Note(1, SET, 64)])])
    plan_ = described("python")
    node: Any = plan_.stages[0].operators[0].node

    def migrate(state: Any, version: int) -> Any:
        return Kept(state.count + 1000 * version, close=state.ring + 1)

    for made_ in (migrate, None):
        newer = replace(node, version=2, migrate=made_)
        stage = replace(plan_.stages[0], operators=(replace(plan_.stages[0].operators[0], node=newer),))
        one = worker(program(stage, compiled=True))
        if made_ is None:
            with pytest.raises(StateChangedError, match="timers ring by log clock, close by event time"):
                one.restore(old.snapshot())
        else:
            one.restore(old.snapshot())
            assert rang(fold(one, [tick(65)]))[0] == Rang(1, 65, 1101, 2)


def test_functions_have_the_same_code_where_it_matters() -> None:
    """A changed timer function is reported, like any changed function of a state."""
    plan_ = described("python")
    other = described("python")
    node: Any = other.stages[0].operators[0].node
    timers = tuple(replace(each, function=close) for each in node.timers)
    changed = replace(other.stages[0].operators[0], node=replace(node, timers=timers))
    codes = [
        program(stage, compiled=True).state_schemas["alarms"].code
        for stage in (plan_.stages[0], replace(other.stages[0], operators=(changed,)))
    ]
    assert codes[0] != codes[1]
