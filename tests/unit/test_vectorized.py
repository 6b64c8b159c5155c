"""Vectorized functions equal functions of single messages, however messages are batched into frames."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bettong
from bettong import Application, RowIndexes, Stream, Width
from bettong.errors import PoisonError
from bettong.worker.partition import PartitionWorker
from bettong.worker.stage_program import StageProgram
from tests.samples.worker import data, dead_letters, fold, python, results, worker

OUT = "meters.sink.out"
LARGE = 20


@dataclass
class Trade:
    symbol: Annotated[str, Width(4)]
    size: bettong.u8
    price: bettong.f64
    bits: bettong.u64
    bought: bool
    raw: Annotated[bytes, Width(2)]
    note: str


@dataclass
class Valued:
    symbol: Annotated[str, Width(4)]
    size: bettong.u8
    price: bettong.f32
    bits: bettong.u64
    bought: bool
    raw: Annotated[bytes, Width(2)]
    note: str
    kind: Annotated[str, Width(3)] = "std"


@dataclass
class Kept:
    total: int = 0
    bought: bool = False
    last: Annotated[str, Width(4)] = "none"


def value(trade: Trade) -> Valued:
    return Valued(
        trade.symbol, trade.size * 3, 10 / trade.price, trade.bits, not trade.bought, trade.raw, trade.note.upper()
    )  # fmt: skip


@bettong.vectorized
def values(trade: Trade) -> Valued:
    shouted: Any = pc.utf8_upper(trade.note)
    return Valued(
        trade.symbol, trade.size * 3, 10 / trade.price, trade.bits, np.logical_not(trade.bought), trade.raw, shouted
    )  # fmt: skip


def wanted(trade: Trade) -> bool:
    return trade.symbol == "äö" or (10 / trade.price > 1 and trade.bought)


@bettong.vectorized
def wanted_of_all(trade: Trade) -> bool:
    named: Any = trade.symbol == "äö"
    # An unnamed one alone is divided for.
    rest: Any = np.where(named, 10.0, trade.price)
    kept: bool = named | ((10 / rest > 1) & trade.bought)
    return kept


def copies(trade: Trade) -> list[Valued]:
    if trade.size == LARGE:
        raise ValueError("too many")
    return [Valued(trade.symbol, 1, 1.0, trade.bits, True, trade.raw, trade.note)] * (trade.size % 3)  # noqa: FBT003


@bettong.vectorized
def copies_of_all(trade: Trade) -> tuple[Valued, RowIndexes]:
    if (np.asarray(trade.size) == LARGE).any():
        raise ValueError("too many")
    every: Any = trade
    of = np.repeat(np.arange(len(every.size)), every.size % 3)
    reported = every.note.take(of)
    found = Valued(every.symbol[of], 1, 1.0, every.bits[of], True, every.raw[of], reported)  # noqa: FBT003
    return found, of


def add(trade: Trade, kept: Kept) -> Valued:
    kept.total += trade.size
    if trade.size == LARGE:
        raise ValueError("too many")
    kept.bought |= trade.bought
    before, kept.last = kept.last, trade.symbol
    return Valued(before, kept.total, 1.0, trade.bits, kept.bought, trade.raw, trade.note)


@bettong.vectorized
def add_all(trade: Trade, kept: Kept, key: RowIndexes) -> Valued:
    every: Any = trade
    state: Any = kept
    order = np.argsort(key, kind="stable")
    sums = np.cumsum(every.size[order])
    first = np.flatnonzero(np.diff(key[order], prepend=-1))
    lengths = np.diff(first, append=len(order))
    totals: Any = np.empty_like(sums)
    totals[order] = (
        sums - np.repeat(sums[first] - every.size[order][first], lengths) + state.total[key[order]]
    )
    bought: Any = np.empty_like(every.bought)
    flags = np.cumsum(every.bought[order])
    bought[order] = flags > np.repeat(flags[first] - every.bought[order][first], lengths)
    bought |= state.bought[key]
    known = state.last[key]
    before: Any = np.where(np.isin(np.arange(len(key)), order[first]), known, every.symbol)
    np.add.at(state.total, key, every.size)
    if (every.size == LARGE).any():
        raise ValueError("too many")
    np.logical_or.at(state.bought, key, every.bought)
    state.last[key] = every.symbol
    return Valued(before, totals, 1.0, every.bits, bought, every.raw, every.note)


TRADE = st.builds(
    Trade,
    symbol=st.sampled_from(["a", "äö", "four", ""]),
    size=st.sampled_from([0, 1, 2, 5, LARGE, 85, 86, 255]),
    price=st.sampled_from([0.0, 0.1, 4.0, 1e300, -2.5, 1e-100]),
    bits=st.sampled_from([0, 7, 2**63, 2**64 - 1]),
    bought=st.booleans(),
    raw=st.binary(min_size=2, max_size=2).filter(lambda each: not each.endswith(b"\0")),
    note=st.sampled_from(["", "x", "äöü", "a long note"]),
)

Build = Callable[[Stream[Any]], Stream[Any]]
PAIRS: dict[str, tuple[Build, Build]] = {
    "map": (lambda source: source.map(value), lambda source: source.map(values, name="value")),
    "filter": (
        lambda source: source.filter(wanted),
        lambda source: source.filter(wanted_of_all, name="wanted"),
    ),
    "flat_map": (
        lambda source: source.flat_map(copies),
        lambda source: source.flat_map(copies_of_all, name="copies"),
    ),
    "stateful": (
        lambda source: source.stateful(add, state=Kept),
        lambda source: source.stateful(add_all, state=Kept, name="add"),
    ),
}


def application(build: Build, key: Any = "symbol") -> Application:
    app = Application("meters")
    build(app.source("in", schema=Trade, key=key)).sink("out")
    return app


def outcome(of: StageProgram, log: list[list[Trade]]) -> tuple[list[Any], list[tuple[int, str]]]:
    """Results, and dead letters: the message's index in the whole log, and the computation."""
    one, found, dead, first = worker(of), [], [], 0
    for number, trades in enumerate(log, 1):
        records = fold(one, [data("in/a", number, trades)])
        found += results(records, OUT, of.stage.outputs[0].schema.message)
        dead += [(first + each.index, each.computation) for each in dead_letters(records)]
        first += len(trades)
    return found, sorted(dead)


@pytest.mark.parametrize("kind", PAIRS)
def test_a_vectorized_function_gives_what_one_of_single_messages_gives(kind: str) -> None:
    plain, vectorized = (python(application(build)) for build in PAIRS[kind])

    @settings(max_examples=50)
    @given(st.lists(TRADE, min_size=1, max_size=12), st.sets(st.integers(1, 11)))
    def check(trades: list[Trade], boundaries: set[int]) -> None:
        bounds = [0, *sorted(cut for cut in boundaries if cut < len(trades)), len(trades)]
        expected = outcome(plain, [trades])
        assert outcome(vectorized, [trades]) == expected
        assert outcome(vectorized, [trades[start:stop] for start, stop in pairwise(bounds)]) == expected

    check()


def test_frames_without_mistakes_take_one_call() -> None:
    calls: list[int] = []

    @bettong.vectorized
    def counting(trade: Trade) -> Trade:
        calls.append(len(trade.note))
        return trade

    of = python(application(lambda source: source.map(counting)))
    fold(worker(of), [data("in/a", 1, [trade()] * 7)])
    assert calls == [0, 7]  # none when it was tried


def trade(**changes: Any) -> Trade:
    values = {"symbol": "a", "size": 1, "price": 2.0, "bits": 3, "bought": True, "raw": b"xy", "note": "n"}
    return Trade(**(values | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", PAIRS)
def test_a_row_that_is_skipped_or_stops_is_the_one_that_is_to_blame(kind: str) -> None:
    function = {"map": values, "filter": wanted_of_all, "flat_map": copies_of_all, "stateful": add_all}[kind]
    more = {"state": Kept} if kind == "stateful" else {}
    bad = trade(price=0.0, size=LARGE)
    frame = data("in/a", 1, [trade(), trade(), bad, trade()])

    def of(on_error: str) -> PartitionWorker:
        def build(source: Stream[Any]) -> Stream[Any]:
            made: Stream[Any] = getattr(source, kind)(function, on_error=on_error, **more)
            return made

        return worker(python(application(build)))

    skips = of("skip")
    assert dead_letters(fold(skips, [frame])) == []
    assert (skips.counters.skipped, skips.counters.results) == (1, 3)
    with pytest.raises(PoisonError, match=r"offset 0, origin in/a, sequence 1, index 2\."):
        fold(of("stop"), [frame])


def whole(function: Callable[[Any], Any]) -> list[str]:
    """Why the rows of a frame of two become dead letters in a map of the function, which is tried with none."""

    @bettong.vectorized
    def later(trade: Trade) -> Trade:
        found: Trade = function(trade) if len(trade.note) else trade
        return found

    of = worker(python(application(lambda source: source.map(later))))
    return [each.reason for each in dead_letters(fold(of, [data("in/a", 1, [trade(), trade(size=2)])]))]


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (
            lambda trade: replace(trade, price=trade.price.sum()),
            "field 'price': one float64 for the whole frame",
        ),
        (
            lambda trade: replace(trade, price=trade.price[:1]),
            "field 'price': 1 values, expected one for each of 2 rows",
        ),
        (lambda trade: replace(trade, price=[1.0, 2.0]), "field 'price': list is no column"),
        (lambda trade: replace(trade, size=trade.price), "field 'size': float64 is no int"),
        (lambda trade: replace(trade, bought=trade.size), "field 'bought': int64 is no bool"),
        (lambda trade: replace(trade, symbol=trade.size), "field 'symbol': int64 is no text"),
        (lambda _: None, "returned NoneType, expected Trade of columns"),
        (lambda trade: replace(trade, raw=b"long"), "field 'raw': b'long' is longer than 2 bytes"),
        (lambda trade: trade.price.fill(1.0), "assignment destination is read-only"),
        (
            lambda trade: replace(trade, symbol=np.array([b"\xff", b"\xfe"])[: len(trade.note)]),
            "field 'symbol': no UTF-8",
        ),
        (lambda trade: replace(trade, note=pa.nulls(len(trade.note), pa.string())), "None is no text"),
        (
            lambda trade: replace(trade, note=pa.array([1, 2])[: len(trade.note)]),
            "field 'note': int64 is no text",
        ),
    ],
)
def test_what_is_no_column_of_the_schema_is_a_dead_letter_of_every_row(function: Any, reason: str) -> None:
    found = whole(function)
    assert len(found) == 2
    assert all(reason in each for each in found)


def test_text_compares_with_text_and_columns_may_come_from_anywhere() -> None:
    @bettong.vectorized
    def other(trade: Trade) -> Trade:
        every: Any = trade
        return Trade(
            symbol=np.where(every.symbol == "äö", np.array("ÄÖ"), np.strings.decode(every.symbol, "utf-8")),  # type: ignore[arg-type]
            size=pa.array(every.size + 1),
            price=every.size,
            bits=every.bits - 1,
            bought=False,
            raw=np.array(every.raw.tolist(), object),  # type: ignore[arg-type]
            note=np.array([b"\xc3\xa4"] * len(every.note)),  # type: ignore[arg-type]
        )

    of = worker(python(application(lambda source: source.filter(wanted_of_all).map(other))))
    records = fold(of, [data("in/a", 1, [trade(symbol="äö", bits=0), trade(symbol="no", bought=False)])])
    assert results(records, OUT, Trade) == [Trade("ÄÖ", 2, 1.0, 2**64 - 1, False, b"xy", "ä")]  # noqa: FBT003
    assert not dead_letters(records)
