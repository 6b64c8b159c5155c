"""What every table of states promises, held to a dict: for objects and for records of an array."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong import Application, Width
from bettong.application.plan import StageInput
from bettong.application.schema import schema_of
from bettong.errors import SnapshotError
from bettong.frames.columns import Columns
from bettong.worker.batch import Batch
from bettong.worker.state import objects as object_module
from bettong.worker.state import records as record_module
from bettong.worker.state.objects import ObjectTable
from bettong.worker.state.records import RecordTable
from bettong.worker.state.table import SavedStates, StateTable

TTL_NS = 1000
FIRST = 7


@dataclass
class Item:
    key: Annotated[str, Width(4)]


@dataclass
class Kept:
    total: int = FIRST


def use(item: Item, kept: Kept) -> Item:
    return item


SCHEMA = schema_of(Item)
Make = Callable[[timedelta | None], StateTable]


def node(ttl: timedelta | None) -> Any:
    return (
        Application("app")
        .source("in", schema=Item, key="key")
        .stateful(use, state=Kept, name="fold", ttl=ttl)
    )


def objects(ttl: timedelta | None) -> StateTable:
    return ObjectTable(node(ttl))


def records(ttl: timedelta | None) -> StateTable:
    return RecordTable(node(ttl), np.dtype("S4"))


def batch(keys: list[int], log_ns: int = 0) -> Batch:
    columns = Columns.of_messages(SCHEMA, [Item(f"k{key}") for key in keys])
    return Batch.of_frame(StageInput("in", SCHEMA, "key"), columns, log_ns)


def add(table: StateTable, keys: list[int], log_ns: int = 0) -> None:
    """Adds one to the total of each key, as a function would in the order of the rows."""
    rows = batch(keys, log_ns)
    opened = table.open(rows)
    for row, key in enumerate(rows.key_values()):
        if isinstance(opened, ObjectTable):
            (opened.get(key) or opened.create(key)).total += 1
        else:
            opened.states["total"][opened.slots[row]] += 1


def totals(table: StateTable) -> dict[str, int]:
    found = {key if isinstance(key, str) else bytes(key).decode(): state for key, state in table.items()}  # type: ignore[arg-type]
    assert all(table.state_of(key) == state for key, state in found.items())
    return {key: state["total"] for key, state in found.items()}


both = pytest.mark.parametrize("make", [objects, records])

KEYS = st.lists(st.integers(0, 12), max_size=8)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), KEYS, st.integers(0, 400)),
        st.tuples(st.just("remove"), KEYS, st.just(0)),
        st.tuples(st.just("save"), st.just([]), st.just(0)),
        st.tuples(st.just("crash"), st.just([]), st.just(0)),
        st.tuples(st.just("expire"), st.just([]), st.integers(0, 1500)),
    ),
    max_size=30,
)


@both
@given(ttl=st.sampled_from([None, timedelta(microseconds=TTL_NS // 1000)]), steps=STEPS)
def test_a_table_is_a_dict_whose_keys_end_and_what_was_saved_makes_it_again(
    make: Make, ttl: timedelta | None, steps: list[tuple[str, list[int], int]]
) -> None:
    """A crash goes back to what was last saved, to the increments from their root on, and folds the rest again.

    Increments are small, so that a round of writing every key takes several.
    """
    with ExitStack() as patches:
        for module in (object_module, record_module):
            patches.enter_context(patch.multiple(module, INCREMENT_KEYS=2, WHOLE_FROM=1))
        _compare(make, ttl, steps)


def _compare(make: Make, ttl: timedelta | None, steps: list[tuple[str, list[int], int]]) -> None:
    table = make(ttl)
    model: dict[str, tuple[int, int]] = {}
    log_ns = 0
    increments: list[tuple[SavedStates, bool]] = []
    root = round_ = 0
    since: list[tuple[str, list[int], int]] = []

    def do(step: tuple[str, list[int], int]) -> None:
        what, keys, clock_ns = step
        if what == "add":
            add(table, keys, clock_ns)
        elif what == "remove":
            table.remove(batch(keys))
        else:
            table.expire(clock_ns)

    for what, keys, forward_ns in steps:
        log_ns += forward_ns
        step = (what, keys, log_ns)
        if what == "save":
            begins = table.settled
            round_ = len(increments) if begins else round_
            increments.append((table.increment(begins=begins), begins))
            root = round_ if table.settled else root
            since = []
        elif what == "crash":
            table = make(ttl)
            for saved, begins in increments[root:]:
                table.load(saved, begins=begins)
            for each in since:
                do(each)
            table.expire(log_ns)
        else:
            do(step)
            since.append(step)
        if ttl is not None:
            model = {key: each for key, each in model.items() if log_ns - each[1] < TTL_NS}
        for key in keys:
            if what == "add":
                model[f"k{key}"] = (model.get(f"k{key}", (FIRST, 0))[0] + 1, log_ns)
            else:
                model.pop(f"k{key}", None)
        table.expire(log_ns)
        assert totals(table) == {key: total for key, (total, _) in model.items()}


@both
def test_memory_is_bounded_by_the_keys_that_live(make: Make) -> None:
    table = make(timedelta(microseconds=8))
    for clock in range(200):
        table.expire(clock * 1000)
        add(table, [clock * 3 + each for each in range(3)], clock * 1000)
        assert table.keys <= 3 * (8 + 1 + 1), "those of the time to live, and of an eighth of it"


@both
def test_no_older_increment_brings_a_key_back(make: Make) -> None:
    table = make(None)
    add(table, [1, 2])
    first = table.increment(begins=True)
    table.remove(batch([1]))
    second = table.increment(begins=True)
    add(table, [1])
    third = table.increment(begins=True)
    for increments, expected in (
        ((first, second), {"k2": FIRST + 1}),
        ((first, second, third), {"k2": FIRST + 1, "k1": FIRST + 1}),
    ):
        again = make(None)
        for each in increments:
            again.load(each, begins=True)
        assert totals(again) == expected


@both
def test_equal_states_have_equal_bytes_whatever_has_ended(make: Make) -> None:
    table, straight = make(None), make(None)
    add(table, [1, 2, 3])
    table.remove(batch([1, 3]))
    add(table, [3])
    add(straight, [2, 3])
    assert table.dump() == straight.dump()


@both
def test_what_was_saved_without_a_time_to_live_begins_to_age_when_it_is_read(make: Make) -> None:
    old = make(None)
    add(old, [1], 50)
    table = make(timedelta(microseconds=1))
    table.expire(5000)
    table.load(old.increment(begins=True), begins=True)
    table.expire(5999)
    assert totals(table) == {"k1": FIRST + 1}
    table.expire(6000)
    assert totals(table) == {}


@both
def test_damaged_times_are_refused(make: Make) -> None:
    table = make(timedelta(seconds=1))
    add(table, [1])
    saved = table.increment(begins=True)
    for last_ns in (saved.last_ns * 2, saved.last_ns[:-1]):
        with pytest.raises(SnapshotError, match="state of 'fold'"):
            make(timedelta(seconds=1)).load(saved._replace(last_ns=last_ns), begins=True)
