"""`delete_when=`: asked after each call, and the next message of the key finds a new state, in the same frame, too."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from itertools import pairwise
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import bettong
from bettong import Application, Width
from bettong.application.plan import Plan, plan
from bettong.cli.check import tree
from bettong.worker.partition import PartitionWorker
from bettong.worker.stage_program import StageProgram, program
from tests.samples.application import refused
from tests.samples.worker import data, dead_letters, fold, results, worker
from tests.simulation.twins import compiled_twin

OUT = "meters.sink.out"


@dataclass
class Item:
    """A `value` of 0 raises after it was counted, 99 makes `is_over` raise, 5 a result that does not fit."""

    key: bettong.u32
    value: bettong.u8
    name: Annotated[str, Width(12)]


@dataclass
class Seen:
    key: bettong.u32
    count: bettong.i64
    small: bettong.u8
    name: Annotated[str, Width(12)]


@dataclass
class Kept:
    count: int = 0
    last: int = 0
    name: Annotated[str, Width(12)] = "-"


def see(item: Item, kept: Kept) -> Seen:
    kept.count += 1
    kept.last = item.value
    if item.value == 0:
        raise ValueError("zero")
    before = kept.name
    kept.name = item.name
    return Seen(item.key, kept.count, 300 if item.value == 5 else 1, before)


def see_many(item: Item, kept: Kept) -> list[Seen]:
    kept.count += 1
    kept.last = item.value
    if item.value == 0:
        raise ValueError("zero")
    before = kept.name
    kept.name = item.name
    return [Seen(item.key, kept.count, 300 if item.value == 5 else 1, before) for _ in range(item.value % 3)]


def is_over(kept: Kept) -> bool:
    if kept.last == 99:
        raise KeyError("over")
    return kept.count == 3 or kept.last == 7


def described(function: Any, delete_when: Any, **more: Any) -> Plan:
    app = Application("meters")
    app.source("in", schema=Item, key="key").stateful(
        function, state=Kept, name="see", delete_when=delete_when, **more
    ).sink("out")
    return plan(app)


@cache
def ready(*, many: bool, how: str) -> StageProgram:
    mark = compiled_twin if how == "compiled" else lambda each: each
    return program(described(mark(see_many if many else see), mark(is_over)).stages[0], compiled=True)


ITEMS = st.lists(
    st.builds(
        Item, st.integers(0, 3), st.sampled_from([0, 1, 2, 4, 5, 7, 99]), st.sampled_from(["a", "b", "ccc"])
    ),
    max_size=30,
)


@dataclass
class Model:
    """A model of the functions above, message by message."""

    many: bool
    states: dict[int, Kept]
    deleted: int = 0

    def take(self, item: Item) -> tuple[list[Seen], list[str]]:
        """Results and reasons of dead letters."""
        kept = self.states.setdefault(item.key, Kept())
        try:
            found: Any = see_many(item, kept) if self.many else [see(item, kept)]
            if is_over(kept):
                del self.states[item.key]
                self.deleted += 1
        except (ValueError, KeyError) as error:
            return [], [f"{type(error).__name__}: {error}"]
        fits = [each for each in found if each.small < 256]
        return fits, ["field 'small'"] * (len(found) - len(fits))


def split(items: list[Item], boundaries: Iterable[int]) -> Iterator[list[Item]]:
    bounds = sorted({0, len(items), *(each % (len(items) + 1) for each in boundaries)})
    return (items[start:stop] for start, stop in pairwise(bounds))


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("how", ["python", "compiled"])
@given(items=ITEMS, boundaries=st.lists(st.integers(0, 30)))
def test_it_is_asked_after_each_call_however_messages_are_cut_into_frames(
    many: bool,  # noqa: FBT001 - pytest fills it in
    how: str,
    items: list[Item],
    boundaries: list[int],
) -> None:
    model, one = Model(many, {}), worker(ready(many=many, how=how))
    expected = [model.take(item) for item in items]
    records = fold(
        one, [data("in/x", number, part) for number, part in enumerate(split(items, boundaries), 1)]
    )
    assert results(records, OUT, Seen) == [each for found, _ in expected for each in found]
    reasons = [each.reason for each in dead_letters(records)]
    for reason, (start) in zip(reasons, (each for _, found in expected for each in found), strict=True):
        assert start.split(":")[0] in reason
    table = one.tables["see"]
    assert {key: state["count"] for key, state in table.items()} == {
        key: kept.count for key, kept in model.states.items()
    }
    assert (one.keys, one.counters.deleted) == (len(model.states), model.deleted)


def test_a_generator_is_exhausted_before_it_is_asked() -> None:
    def see_later(item: Item, kept: Kept) -> Iterator[Seen]:
        yield Seen(item.key, kept.count, 1, "")
        kept.count = 3

    one = worker(program(described(see_later, is_over).stages[0], compiled=True))
    fold(one, [data("in/x", 1, [Item(1, 1, ""), Item(2, 1, "")])])
    assert (one.keys, one.counters.deleted) == (0, 2)


def test_each_result_of_a_generator_is_read_when_it_is_given() -> None:
    def see_one_object(item: Item, kept: Kept) -> Iterator[Seen]:
        seen = Seen(item.key, 0, 1, "")
        for seen.count in range(3):
            yield seen

    one = worker(program(described(see_one_object, is_over).stages[0], compiled=True))
    records = fold(one, [data("in/x", 1, [Item(1, 1, "")])])
    assert [each.count for each in results(records, OUT, Seen)] == [0, 1, 2]


def test_a_state_is_deleted_and_made_anew_in_one_frame_and_lives_for_its_time() -> None:
    for function, delete_when in ((see, is_over), (compiled_twin(see), compiled_twin(is_over))):
        plan_ = described(function, delete_when, ttl=timedelta(microseconds=5))
        one = worker(program(plan_.stages[0], compiled=True))
        items = [Item(1, 7, ""), Item(1, 1, ""), Item(2, 7, "")]
        fold(one, [data("in/x", 1, items, ingest_ns=1000)])
        assert [key for key, _ in one.tables["see"].items()] == [1]
        again: PartitionWorker = worker(one.program)
        again.restore(one.increment()[1])
        fold(again, [data("in/x", 2, [Item(3, 1, "")], ingest_ns=6000)])
        assert [key for key, _ in again.tables["see"].items()] == [3]
        assert (again.counters.deleted, again.counters.expired) == (2, 1)


@bettong.vectorized
def see_all(item: Item, kept: Kept, keys: bettong.RowIndexes) -> Item:
    return item


@bettong.vectorized
def is_over_all(kept: Kept) -> bool:
    return kept.count == 3


def other(item: Item) -> bool:
    return True


def two(kept: Kept, more: int) -> bool:
    return True


def number(kept: Kept) -> int:
    return 1


async def later(kept: Kept) -> bool:
    return True


@pytest.mark.parametrize(
    ("function", "delete_when", "texts"),
    [
        (see, 5, ["delete_when", "no function"]),
        (see, other, ["delete_when", "'item'", "Kept"]),
        (see, two, ["delete_when", "must take"]),
        (see, number, ["delete_when", "must return bool, not int"]),
        (see, later, ["delete_when", "async"]),
        (compiled_twin(see), is_over, ["delete_when= the mark of its functions, @bettong.compiled"]),
        (see, compiled_twin(is_over), ["delete_when= no mark"]),
        (
            see_all,
            is_over_all,
            ["delete_when= is asked after each message", "ttl="],
        ),
    ],
)
def test_what_cannot_be_asked_is_refused_where_it_is_given(
    function: Any, delete_when: Any, texts: list[str]
) -> None:
    with refused("'see'", *texts):
        described(function, delete_when)


def test_the_graph_shows_it() -> None:
    text = io.StringIO()
    Console(width=200, file=text).print(tree(described(see, is_over)))
    assert "state Kept, deleted when is_over" in text.getvalue()
