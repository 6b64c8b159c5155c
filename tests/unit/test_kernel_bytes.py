"""Fixed-width bytes in compiled functions equal those of plain Python, including NULs at the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import pytest

import bettong
from bettong import Application, ApplicationError, Width
from bettong.application.plan import plan
from bettong.worker.stage_program import program
from tests.samples.worker import data, dead_letters, fold, results, worker

OUT = "meters.sink.out"
RAW = [b"\0\0\0", b"a\0\0", b"ab\0", b"abc", b"\0bc", b"\xff\0\xff"]


@dataclass
class Item:
    key: int
    raw: Annotated[bytes, Width(3)]
    other: Annotated[bytes, Width(3)]
    short: Annotated[bytes, Width(2)]


@dataclass
class Made:
    key: int
    raw: Annotated[bytes, Width(3)] = b""
    wide: Annotated[bytes, Width(5)] = b""
    narrow: Annotated[bytes, Width(2)] = b""


@dataclass
class Seen:
    raw: Annotated[bytes, Width(4)] = b""
    times: int = 0


def measured(item: Item) -> Made:
    return Made(len(item.raw), item.raw, item.raw, item.short)


def by_index(item: Item) -> Made:
    return Made(item.raw[0] + 1000 * item.raw[-1] + 10**6 * item.raw[item.key])


def compared(item: Item) -> Made:
    found = (item.raw == b"ab") + 2 * (item.raw == b"ab\0") + 4 * (b"abc" != item.raw)  # noqa: SIM300
    return Made(found + 8 * (item.raw == item.other) + 16 * (item.raw == item.short))


def one_of_some(item: Item) -> Made:
    return Made(item.raw in (b"a", b"ab\0", b"abc", b"abcd"))


def given_where_there_is_no_room(item: Item) -> Made:
    return Made(1, narrow=item.raw)


def named_in_an_error(item: Item) -> Made:
    if item.key >= 0:
        raise ValueError(item.raw)
    return Made(0)


STATELESS = [
    measured,
    by_index,
    compared,
    one_of_some,
    given_where_there_is_no_room,
    named_in_an_error,
]


def remembered(item: Item, seen: Seen) -> Made:
    seen.times += 1 + 10 * (seen.raw == item.raw)
    length = len(seen.raw)
    seen.raw = item.raw
    return Made(1000 * length + seen.times, seen.raw)


def outcomes(function: Callable[..., Any], items: list[Item]) -> Any:
    """Results and dead letters, in plain Python and compiled."""
    app = Application("meters")
    source: Any = app.source("in", schema=Item, key="key")
    marked = bettong.compiled(function)
    made = (
        source.stateful(marked, state=Seen, name="made")
        if function is remembered
        else source.map(marked, name="made")
    )
    made.sink("out")
    found = []
    for compiled in (False, True):
        records = fold(worker(program(plan(app).stages[0], compiled=compiled)), [data("in/a", 1, items)])
        failures = [(each.index, each.reason) for each in dead_letters(records)]
        found.append((results(records, OUT, Made), failures))
    return found


ITEMS = [Item(key, raw, other, raw[:2]) for key, raw in enumerate(RAW[:3]) for other in RAW] + [
    Item(1, raw, b"abc", b"ab") for raw in RAW
]


@pytest.mark.parametrize("function", STATELESS)
def test_bytes_of_a_message_are_those_of_plain_python(function: Callable[..., Any]) -> None:
    (expected, refused), (found, reasons) = outcomes(function, ITEMS)
    assert found == expected
    assert [index for index, _ in reasons] == [index for index, _ in refused]
    assert bool(expected) != bool(refused)


def test_bytes_that_end_in_nul_are_refused_where_a_state_would_make_them_shorter() -> None:
    items = [Item(1, raw, raw, b"ab") for raw in RAW]
    (expected, _), (found, reasons) = outcomes(remembered, items)
    assert [each.raw for each in found] == [each.raw for each in expected if each.raw[-1]]
    assert [each.key // 1000 for each in found] == [0, 3, 3]
    text = "ValueError: bytes that end in NUL, which states of compiled functions cannot hold"
    assert reasons == [(index, text) for index, each in enumerate(RAW) if not each[-1]]


def kept_in_a_set(item: Item) -> Made:
    return Made(len({item.raw, item.other}))


def test_what_bytes_cannot_do_in_compiled_code_is_refused_before_anything_runs() -> None:
    with pytest.raises(ApplicationError, match="kept_in_a_set"):
        outcomes(kept_in_a_set, ITEMS)
