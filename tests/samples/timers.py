"""Alarms that are set by messages, in plain Python, compiled and vectorized; and what they mean, message by message."""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

import bettong
from bettong import NEVER, Application
from bettong.application.plan import Plan, plan
from bettong.frames.frame import tick_record
from bettong.identifiers import Origin
from bettong.worker.output.framing import OutputRecord
from bettong.worker.partition import PartitionWorker
from bettong.worker.stage_program import StageProgram, program
from tests.samples.worker import data, results, worker
from tests.simulation.twins import compiled_twin

OUT = "meters.sink.out"
SET, CLOSE, CLEAR, FAIL, COUNT = range(5)


@dataclass
class Note:
    """`what`: which of the numbers above. FAIL sets an alarm and raises."""

    key: bettong.u32
    what: bettong.u8
    at: int


@dataclass
class Rang:
    key: bettong.u32
    at: int
    count: int
    which: bettong.u8


@dataclass
class Kept:
    count: int = 0
    ring: bettong.LogTimer = NEVER
    close: bettong.Timer = NEVER


def take(note: Note, kept: Kept) -> None:
    kept.count += 1
    if note.what in (SET, FAIL):
        kept.ring = note.at
    if note.what == CLOSE:
        kept.close = note.at
    if note.what == CLEAR:
        kept.ring = bettong.NEVER
    if note.what == FAIL:
        raise ValueError("fail")


def ring(fired: bettong.Fired[int], kept: Kept) -> Rang | None:
    """By its time: sets itself to the past, raises when it is set again, gives nothing, or a result."""
    kept.count += 1
    if fired.at % 5 == 0:
        kept.ring = fired.at - 2
    if fired.at % 5 == 1:
        kept.ring = fired.at + 7
        raise ValueError("one")
    if fired.at % 5 == 2:
        return None
    return Rang(fired.key, fired.at, kept.count, 1)


def close(fired: bettong.Fired[int], kept: Kept) -> Rang:
    kept.count += 100
    kept.ring = fired.at
    return Rang(fired.key, fired.at, kept.count, 2)


@bettong.vectorized
def take_all(note: Note, kept: Kept, keys: bettong.RowIndexes) -> tuple[Rang, bettong.RowIndexes]:
    note_, state = _columns(note), _columns(kept)
    np.add.at(state.count, keys, 1)
    rings = np.isin(note_.what, (SET, FAIL, CLEAR))
    state.ring[keys[rings]] = np.where(note_.what == CLEAR, NEVER, note_.at)[rings]
    closes = note_.what == CLOSE
    state.close[keys[closes]] = note_.at[closes]
    if np.any(note_.what == FAIL):
        raise ValueError("fail")
    none = np.arange(0)
    return Rang(none, none, none, none), none  # type: ignore[arg-type]


@bettong.vectorized
def ring_all(
    fired: bettong.Fired[int], kept: Kept, keys: bettong.RowIndexes
) -> tuple[Rang, bettong.RowIndexes]:
    due, state = _columns(fired), _columns(kept)
    state.count += 1
    state.ring = np.where(due.at % 5 == 0, due.at - 2, np.where(due.at % 5 == 1, due.at + 7, state.ring))
    if np.any(due.at % 5 == 1):
        raise ValueError("one")
    rows = np.flatnonzero(due.at % 5 != 2)
    return Rang(due.key[rows], due.at[rows], state.count[rows], 1), rows


@bettong.vectorized
def close_all(
    fired: bettong.Fired[int], kept: Kept, keys: bettong.RowIndexes
) -> tuple[Rang, bettong.RowIndexes]:
    due, state = _columns(fired), _columns(kept)
    state.count += 100
    state.ring = due.at
    return Rang(due.key, due.at, state.count, 2), np.arange(len(due.at))


def is_over(kept: Kept) -> bool:
    return kept.count % 7 == 6


def _columns(message: Any) -> Any:
    """What a vectorized function gets: the fields are columns."""
    return message


_COMPILED = {each: compiled_twin(each) for each in (take, ring, close, is_over)}
FORMS: dict[str, tuple[Callable[..., Any], ...]] = {
    "python": (take, ring, close, is_over),
    "compiled": tuple(_COMPILED.values()),
    "vectorized": (take_all, ring_all, close_all),
}


def described(how: str, *, deletes: bool = False, event_time: str | None = None, **more: Any) -> Plan:
    """Notes -> alarms -> out."""
    function, on_ring, on_close, *over = FORMS[how]
    app = Application("meters")
    app.source("in", schema=Note, key="key", event_time=event_time).stateful(
        function,
        state=Kept,
        name="alarms",
        timers={"ring": on_ring, "close": on_close},
        delete_when=over[0] if deletes else None,
        **more,
    ).sink("out")
    return plan(app)


@cache
def made(how: str, deletes: bool = False, on_error: str = "dead-letter") -> StageProgram:  # noqa: FBT001, FBT002 - kept by `cache`
    return program(described(how, deletes=deletes, on_error=on_error).stages[0], compiled=True)


def fresh(how: str, **more: Any) -> PartitionWorker:
    return worker(made(how, **more))


def value_of(number: int, at_ns: int, watermark_ns: int, notes: list[Note]) -> bytes:
    if not notes:
        return tick(at_ns, watermark_ns)
    return data("in/x", number, notes, previous=0, ingest_ns=at_ns, watermark_ns=watermark_ns)


def tick(log_ns: int, watermark_ns: int | None = None) -> bytes:
    """Time passes; by default both clocks come to the same."""
    event_ns = log_ns if watermark_ns is None else watermark_ns
    return tick_record("in", log_ns, {Origin("in/x"): event_ns})


def rang(records: list[OutputRecord]) -> list[Rang]:
    return results(records, OUT, Rang)


@dataclass
class Meaning:
    """What the functions above mean: a queue of (time, key), from which the earliest is taken."""

    deletes: bool = False
    states: dict[int, Kept] = field(default_factory=dict)
    log_ns: int = 0
    watermark_ns: int = 0
    results: list[Rang] = field(default_factory=list)
    dead_letters: list[tuple[str, str]] = field(default_factory=list)

    def record(self, log_ns: int, watermark_ns: int, notes: list[Note]) -> None:
        """A record of the log."""
        self.log_ns = max(self.log_ns, log_ns)
        self._fire()
        for note in notes:
            message = f'{{"key":{note.key},"what":{note.what},"at":{note.at}}}'
            self._call(take, note, note.key, message)
        self.watermark_ns = max(self.watermark_ns, watermark_ns)
        self._fire()

    def _fire(self) -> None:
        queue = [(at, key, which) for key in self.states for at, which in self._due(key)]
        heapq.heapify(queue)
        while queue:
            at, key, which = heapq.heappop(queue)
            if key not in self.states or (at, which) not in self._due(key):
                continue
            timer, function = (("ring", ring), ("close", close))[which]
            setattr(self.states[key], timer, NEVER)
            message = json.dumps({"key": key, "timer": timer, "at": at}, separators=(",", ":"))
            self._call(function, bettong.Fired(key, at), key, message)
            for at, which in self._due(key) if key in self.states else ():
                heapq.heappush(queue, (at, key, which))

    def _due(self, key: int) -> list[tuple[int, int]]:
        times = ((self.states[key].ring, self.log_ns), (self.states[key].close, self.watermark_ns))
        return [(at, which) for which, (at, clock_ns) in enumerate(times) if at <= clock_ns]

    def _call(self, function: Callable[..., Any], message: Any, key: int, text: str) -> None:
        state = self.states.setdefault(key, Kept())
        try:
            result = function(message, state)
            if self.deletes and is_over(state):
                del self.states[key]
        except ValueError as error:
            self.dead_letters.append((f"ValueError: {error}", text))
            return
        if result is not None:
            self.results.append(copy(result))
