"""What a vectorized function must be is checked when the application is built, and tried before anything runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pytest

import bettong
from bettong import Application, RowIndexes, Width
from bettong.application.execution_mode import ExecutionMode, execution_mode_of
from bettong.application.plan import plan
from bettong.worker.partition import PartitionWorker
from bettong.worker.stage_program import program
from tests.samples.application import refused
from tests.samples.worker import data, dead_letters, fold, python, results, worker


@dataclass
class Item:
    key: Annotated[str, Width(4)]
    value: int


@dataclass
class Kept:
    total: int = 0
    last: Annotated[str, Width(4)] = ""


@dataclass
class Loose:
    text: str = ""


def source(key: Any = "key") -> bettong.Stream[Any]:
    return Application("meters").source("in", schema=Item, key=key)


def one_or_none(item: Item) -> Item | None:
    return item if item.value else None


def many(item: Item) -> list[Item]:
    return [item]


def as_number(item: Item) -> int:
    return item.value


def of_state(item: Item, kept: Kept, key: RowIndexes) -> Item | None:
    return None if kept.total and key[0] else item


def lists(item: Item, kept: Kept, key: RowIndexes) -> list[Item]:
    return [item] * kept.total * len(key)


def without_row_indexes(item: Item, kept: Kept) -> Item:
    return Item(item.key, kept.total)


def wrong_row_indexes(item: Item, kept: Kept, key: str) -> Item:
    return Item(key, kept.total)


def text(item: Item) -> str:
    return item.key


def as_bytes(item: Item) -> bytes:
    return item.key.encode()


@pytest.mark.parametrize(
    ("function", "call", "text"),
    [
        (
            one_or_none,
            lambda marked: source().map(marked),
            "map 'one_or_none': must return one message for each",
        ),
        (many, lambda marked: source().map(marked), "map 'many': must return one message for each"),
        (
            many,
            lambda marked: source().flat_map(marked),
            "flat_map 'many': a vectorized function returns tuple[Message, bettong.RowIndexes], not list[",
        ),
        (as_number, lambda marked: source().filter(marked), "filter 'as_number': must return bool, not int"),
        (
            of_state,
            lambda marked: source().stateful(marked, state=Kept),
            "tuple[Message, bettong.RowIndexes], or one result a row, or None",
        ),
        (
            lists,
            lambda marked: source().stateful(marked, state=Kept),
            "stateful 'lists': a vectorized",
        ),
        (
            without_row_indexes,
            lambda marked: source().stateful(marked, state=Kept),
            "must take three arguments, messages,",
        ),
        (
            wrong_row_indexes,
            lambda marked: source().stateful(marked, state=Kept),
            "parameter 'key' is annotated str, but gets",
        ),
        (text, source, "key of 'in': it is called for one message at a time"),
        (
            as_bytes,
            lambda marked: source().sink("out", encoder=marked),
            "encoder of sink 'out': it is called for one",
        ),
    ],
)
def test_what_no_vectorized_function_can_be_is_refused_when_it_is_given(
    function: Any, call: Callable[[Any], object], text: str
) -> None:
    def copy(*arguments: Any) -> Any:
        return function(*arguments)

    copy.__name__, copy.__signature__ = function.__name__, inspect.signature(function, eval_str=True)  # type: ignore[attr-defined]
    with refused(text):
        call(bettong.vectorized(copy))


def test_a_function_is_marked_once_and_all_of_a_computation_alike() -> None:
    with refused("@bettong.vectorized: <built-in", "is no plain function"):
        bettong.vectorized(print)

    def twice(item: Item) -> Item:
        return item

    with refused("@bettong.vectorized: 'twice' is marked @bettong.compiled already"):
        bettong.vectorized(bettong.compiled(twice))
    assert execution_mode_of(twice) is ExecutionMode.COMPILED
    assert execution_mode_of(many) is ExecutionMode.PYTHON


def unknown_field(item: Item) -> Item:
    doubled = item.value * 2
    return Item(item.key, doubled + item.other)  # type: ignore[attr-defined]  # wrong


def broken(value: Any) -> Any:
    return np.asarray(value) @ np.ones(3)  # wrong


def calls_what_is_broken(item: Item) -> Item:
    return Item(item.key, broken(item.value))


def float_for_int(item: Item) -> Item:
    return Item(item.key, item.value / 2)  # type: ignore[arg-type]


def raising_fold(item: Item, kept: Kept, key: RowIndexes) -> Item:
    kept.total[key] = item.value  # type: ignore[index]
    return item.nothing  # type: ignore[attr-defined,no-any-return]  # wrong


def replaced_by_one(item: Item, kept: Kept, key: RowIndexes) -> Item:
    kept.total = np.int64(len(key))  # type: ignore[assignment]
    return item


@pytest.mark.parametrize(
    ("function", "more", "reason"),
    [
        (unknown_field, {}, "AttributeError: 'Item' object has no attribute 'other'"),
        (calls_what_is_broken, {}, "ValueError: matmul:"),
        (float_for_int, {}, "WrongColumnsError: field 'value': float64 is no int"),
        (raising_fold, {"state": Kept}, "AttributeError: 'Item' object has no attribute 'nothing'"),
        (replaced_by_one, {"state": Kept}, "WrongColumnsError: field 'total': one int64 for the whole frame"),
    ],
)
def test_a_mistake_that_shows_without_a_message_is_reported_with_function_and_line(
    function: Any, more: dict[str, Any], reason: str
) -> None:
    called = broken if function is calls_what_is_broken else function
    lines, first = inspect.getsourcelines(called)
    wrong = [first + at for at, line in enumerate(lines) if line.rstrip().endswith("# wrong")]
    marked = bettong.vectorized(function)
    stream = source()
    (stream.stateful(marked, **more) if more else stream.map(marked)).sink("out")
    location = f"{function.__name__!r} ({__file__}:{(wrong or [inspect.getsourcelines(function)[1]])[0]})"
    with refused(f"{location} cannot be vectorized: for a frame without rows: {reason}"):
        python(stream.app)
    del function.__dict__["__bettong_execution_mode__"]


@bettong.vectorized
def unchanged(item: Item, kept: Any, key: RowIndexes) -> Item:
    return item if len(key) >= 0 else kept


@pytest.mark.parametrize(
    ("key", "state", "text"),
    [
        (text, Kept, "vectorized 'unchanged': the key of 'in' is a function; key by fields"),
        ("key", Loose, "vectorized 'unchanged': Loose: text has no fixed width"),
        ("key", dict, "vectorized 'unchanged': state=dict: expected a dataclass"),
    ],
)
def test_key_and_state_have_fixed_widths(key: Any, state: Any, text: str) -> None:
    stream = source(key)
    stream.stateful(unchanged, state=state).sink("out")
    with refused(text):
        python(stream.app)


@bettong.compiled
def count(item: Item, kept: Kept) -> Item:
    kept.total += 1
    kept.last = item.key
    return Item(item.key, kept.total)


@bettong.vectorized
def count_all(item: Item, kept: Kept, key: RowIndexes) -> tuple[Item, RowIndexes]:
    every: Any = item
    order = np.argsort(key, kind="stable")
    first = np.searchsorted(key[order], key[order])
    totals = np.empty_like(key)
    state: Any = kept
    totals[order] = np.arange(len(key)) - first + 1 + state.total[key[order]]
    state.total += np.bincount(key, minlength=len(state.total))
    state.last = np.where(state.total > 3, "longer", state.last)
    return Item(every.key, totals), np.arange(len(key))  # type: ignore[arg-type]


def counting(function: Any, *, compiled: bool) -> PartitionWorker:
    stream = source()
    stream.stateful(function, state=Kept, name="count").sink("out")
    return worker(program(plan(stream.app).stages[0], compiled=compiled))


def test_compiled_and_vectorized_functions_go_on_with_each_others_states() -> None:
    vectorized = counting(count_all, compiled=False)
    fold(vectorized, [data("in/a", 1, [Item("a", 0), Item("b", 0), Item("a", 0)])])
    compiled = counting(count, compiled=True)
    compiled.restore(vectorized.increment()[1])
    fold(compiled, [data("in/a", 2, [Item("a", 0)])])
    vectorized = counting(count_all, compiled=False)
    vectorized.restore(compiled.snapshot())
    assert vectorized.tables["count"].state_of("a") == {"total": 3, "last": "a"}
    records = fold(vectorized, [data("in/a", 3, [Item("b", 0), Item("b", 0)])])
    assert results(records, "meters.sink.out", Item) == [Item("b", 2), Item("b", 3)]


def test_a_state_that_does_not_fit_is_the_dead_letter_of_its_row_and_leaves_the_state() -> None:
    of = counting(count_all, compiled=False)
    records = fold(of, [data("in/a", 1, [Item("a", 0), Item("b", 0), *[Item("a", 0)] * 4])])
    assert [each.index for each in dead_letters(records)] == [4, 5]
    assert {each.reason for each in dead_letters(records)} == {
        "SchemaError: field 'last': longer than 4 bytes"
    }
    assert of.tables["count"].state_of("a") == {"total": 3, "last": ""}
    assert [each.value for each in results(records, "meters.sink.out", Item)] == [1, 1, 2, 3]
