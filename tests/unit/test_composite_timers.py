"""Timers of keys of several fields: their functions get the tuple, in each execution mode."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

import bettong
from bettong import NEVER, Application, Fired, RowIndexes, Width
from bettong.application.plan import plan
from bettong.frames.frame import tick_record
from bettong.identifiers import Origin
from bettong.worker.output.framing import OutputRecord
from bettong.worker.stage_program import program
from tests.samples.worker import data, dead_letters, fold, results, tick, worker


@dataclass
class Trade:
    symbol: Annotated[str, Width(5)]
    venue: int
    order: int


@dataclass
class Count:
    symbol: str
    venue: int
    count: int


@dataclass
class Kept:
    count: int = 0


@dataclass
class Alarm:
    at: bettong.LogTimer = NEVER


def set_alarm(trade: Trade, alarm: Alarm) -> Count | None:
    alarm.at = trade.order
    return None


def ring(fired: Fired[tuple[str, int]], alarm: Alarm) -> Count:
    symbol, venue = fired.key
    return Count(symbol, venue, fired.at)


def test_a_timer_of_a_tuple_gets_the_tuple_and_fires_in_its_order() -> None:
    app = Application("meters")
    source = app.source("in", schema=Trade, key=("symbol", "venue"))
    source.stateful(set_alarm, state=Alarm, timers={"at": ring}).sink("out")
    (stage,) = plan(app).stages
    messages = [Trade(symbol, venue, 5) for symbol, venue in [("b", 1), ("a", 2), ("a", -2)]]
    records = fold(worker(program(stage, compiled=True)), [data("in/a", 1, messages), tick(9)])
    found = results(records, "meters.sink.out", Count)
    assert [(each.symbol, each.venue) for each in found] == [("a", -2), ("a", 2), ("b", 1)]


@dataclass
class Lot:
    """A trade of many kinds of keys."""

    symbol: Annotated[str, Width(5)]
    venue: bettong.i16
    order: bettong.u64
    tag: Annotated[bytes, Width(3)]
    is_buy: bool
    at: int


@dataclass
class Watch:
    due: bettong.Timer = NEVER
    again: bettong.LogTimer = NEVER
    seen: int = 0


@dataclass
class Rung:
    symbol: Annotated[str, Width(5)]
    venue: int
    is_buy: bool
    at: int
    seen: int


@bettong.compiled
def watch(lot: Lot, kept: Watch) -> None:
    kept.seen += 1
    kept.due = lot.at + 10 * lot.venue


@bettong.compiled
def ring_due(fired: Fired[tuple[str, int, bool]], kept: Watch) -> Rung:
    symbol, venue, is_buy = fired.key
    if venue == 3:
        raise ValueError("no such venue")
    kept.again = fired.at + 7
    return Rung(symbol, venue, is_buy, fired.at, kept.seen)


@bettong.compiled
def ring_again(fired: Fired[tuple[str, int, bool]], kept: Watch) -> Rung:
    found = Rung(fired.key[0], fired.key[1] * 100, fired.key[2], fired.at, kept.seen)
    kept.seen = 0
    return found


def watched(*, compiled: bool) -> Any:
    """Timers of three parts, and behind them a compiled computation that goes by the same key."""
    app = Application("meters")
    source = app.source("in", schema=Lot, key=("symbol", "venue", "is_buy"), event_time="at")
    timers = {"due": ring_due, "again": ring_again}
    rung = source.stateful(watch, state=Watch, timers=timers, name="watch")
    rung.stateful(count_rung, state=Kept, name="rung").sink("out")
    (stage,) = plan(app).stages
    return program(stage, compiled=compiled)


@bettong.compiled
def count_rung(rung: Rung, kept: Kept) -> Rung:
    kept.count += 1
    return Rung(rung.symbol, rung.venue, rung.is_buy, rung.at, 1000 * kept.count + rung.seen)


def compared(records: list[OutputRecord]) -> list[Any]:
    """All but the lines of tracebacks: compiled code knows where it raises less well."""
    letters = dead_letters(records)
    for each in letters:
        each.ClearField("traceback")
    return [record for record in records if record.topic != "meters.dead-letters"] + letters


def test_a_compiled_timer_of_a_tuple_fires_as_in_plain_python() -> None:
    """Results, dead letters and states, in any cuts; a worker takes over after each record."""
    lots = [
        Lot("abcé"[each % 4 :], each % 7 - 3, each, b"xy\0", is_buy=each % 3 == 0, at=50 + each * 3 % 60)
        for each in range(120)
    ]
    for size in (1, 5, 40):
        python, compiled = worker(watched(compiled=False)), worker(watched(compiled=True))
        found = list[Rung]()
        parts = [lots[start : start + size] for start in range(0, len(lots), size)]
        for number, part in enumerate(parts, 1):
            value = data("in/a", number, part, ingest_ns=20 * number, watermark_ns=20 * number)
            expected = fold(python, [value])
            assert compared(fold(compiled, [value])) == compared(expected)
            found += results(expected, "meters.sink.out", Rung)
            saved, compiled = compiled.snapshot(), worker(watched(compiled=True))
            compiled.restore(saved)
            assert compiled.snapshot() == saved
        last = tick_record("in", 10**6, {Origin("in/a"): 10**6})
        expected = fold(python, [last])
        assert compared(fold(compiled, [last])) == compared(expected)
        found += results(expected, "meters.sink.out", Rung)
        assert {each.venue for each in found} >= {-3, 2, -300, 200}
        assert any(each.is_buy for each in found)
        assert (
            "no such venue" in {each.reason.split(": ")[-1] for each in dead_letters(expected)} or size < 40
        )
        assert compiled.keys == python.keys


def test_a_vectorized_timer_of_a_tuple_gets_a_tuple_of_columns() -> None:
    @bettong.vectorized
    def watch_all(lots: Lot, kept: Watch, rows: RowIndexes) -> None:
        due = np.array(kept.due)
        due[np.asarray(rows)] = np.asarray(lots.at) + 2
        kept.due = due  # type: ignore[assignment] # a column

    @bettong.vectorized
    def ring_all(fired: Fired[Any], kept: Watch, rows: RowIndexes) -> Rung:
        symbols, venues, sides = fired.key
        return Rung(symbols, venues, sides, fired.at, kept.seen)

    app = Application("meters")
    source = app.source("in", schema=Lot, key=("symbol", "venue", "is_buy"), event_time="at")
    source.stateful(watch_all, state=Watch, timers={"due": ring_all, "again": ring_all}).sink("out")
    (stage,) = plan(app).stages
    lots = [
        Lot(symbol, venue, 1, b"abc", is_buy=True, at=5) for symbol, venue in [("b", 1), ("a", 2), ("a", -2)]
    ]
    records = fold(worker(program(stage, compiled=True)), [data("in/a", 1, lots, watermark_ns=9)])
    found = results(records, "meters.sink.out", Rung)
    assert found == [Rung(*each, is_buy=True, at=7, seen=0) for each in [("a", -2), ("a", 2), ("b", 1)]]


def test_a_compiled_timer_of_a_key_of_no_field_fires() -> None:
    @bettong.compiled
    def set_one(lot: Lot, kept: Watch) -> None:
        kept.due = lot.at + 1

    @bettong.compiled
    def ring_one(fired: Fired[tuple[()]], kept: Watch) -> Rung:
        return Rung("", len(fired.key), is_buy=False, at=fired.at, seen=kept.seen)

    app = Application("meters")
    source = app.source("in", schema=Lot, key=(), event_time="at")
    source.stateful(set_one, state=Watch, timers={"due": ring_one, "again": ring_one}).sink("out")
    (stage,) = plan(app).stages
    log = [data("in/a", 1, [Lot("a", 1, 1, b"abc", is_buy=True, at=5)], watermark_ns=9)]
    found = [fold(worker(program(stage, compiled=each)), log) for each in (False, True)]
    assert found[0] == found[1]
    assert results(found[0], "meters.sink.out", Rung) == [Rung("", 0, is_buy=False, at=6, seen=0)]
