"""States that go by time, in compiled and vectorized functions: what `time_pipelines.py` has in plain Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import bettong
from bettong import RowIndexes
from bettong.application.streams import Stream
from tests.samples.time_pipelines import Build, Event, Line, since_start


@dataclass
class Number:
    events: int = 0


@dataclass
class Seen:
    """How many events a key had, and when it is to be called, by each clock."""

    events: int = 0
    event_due_at: bettong.Timer = bettong.NEVER
    log_due_at: bettong.LogTimer = bettong.NEVER


@dataclass
class Counted:
    """`at`: of a timer that fired; 0: of an event."""

    key: bettong.u32
    value: int
    events: int
    at: int


@bettong.compiled
def counted(event: Event, number: Number) -> Counted:
    number.events += 1
    return Counted(event.key, event.value, number.events, 0)


@bettong.compiled
def waiting(event: Event, seen: Seen) -> None:
    """Each event moves the timer of event time on, the first alone sets the other one."""
    seen.events += 1
    seen.event_due_at = event.at + 5_000_000_000
    if seen.events == 1:
        seen.log_due_at = event.at + 15_000_000_000


@bettong.compiled
def fired(of: bettong.Fired[int], seen: Seen) -> Counted:
    return Counted(of.key, 0, seen.events, of.at)


@bettong.compiled
def has_two(number: Number) -> bool:
    return number.events == 2


@bettong.vectorized
def counted_all(event: Event, number: Number, key_rows: RowIndexes) -> tuple[Counted, RowIndexes]:
    """One row after the other: several of a frame may have one key."""
    columns: Any = number
    events = []
    for key_row in key_rows.tolist():
        columns.events[key_row] += 1
        events.append(int(columns.events[key_row]))
    found: Any = np.array(events, np.int64)
    nothing: Any = np.zeros(len(events), np.int64)
    return Counted(event.key, event.value, found, nothing), np.arange(len(events))


def counted_line(of: Counted) -> Line:
    if of.at:
        return Line(f"{of.key} at {since_start(of.at)}: {of.events}")
    return Line(f"{of.key} {of.value}: {of.events}")


def lasting_fast(name: str, function: Callable[..., Any], state: type[Any], **options: Any) -> Build:
    def build(events: Stream[Event]) -> Stream[Line]:
        numbers: Stream[Counted] = events.stateful(function, state=state, name=name, **options)
        return numbers.map(counted_line, name=f"{name}-line")

    return build


TIMERS = {"event_due_at": fired, "log_due_at": fired}
