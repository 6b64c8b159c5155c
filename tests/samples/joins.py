"""Events of two sides that are joined, and frames of them. What the joins mean: `tests.simulation.key_joins`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import bettong
from bettong import Application
from bettong.application.streams import JoinedStream
from bettong.frames.columns import Columns
from bettong.schema.schema import schema_of
from bettong.worker.output.framing import OutputRecord
from tests.samples.worker import data, frames, results

OUT = "meters.sink.out"
LATE = "meters.sink.late"
US = 1000
# A left event of this value fails with each partner.
UNLUCKY = 13


@dataclass
class Event:
    """`right`: of which side it is. A right one that is `gone` deletes what a table has."""

    key: bettong.u32
    right: bool
    at: int
    value: int
    gone: bool = False


@dataclass
class Entry:
    """An event of the right side."""

    key: bettong.u32
    at: int
    value: int
    gone: bool


@dataclass
class Pair:
    """The values of two events; -1 where there is no partner."""

    key: bettong.u32
    left: int
    right: int


def is_left(event: Event) -> bool:
    return not event.right


def is_right(event: Event) -> bool:
    return event.right


def entry(event: Event) -> Entry:
    return Entry(event.key, event.at, event.value, event.gone)


def pair(left: Event | None, right: Entry | None) -> Pair | None:
    """Raises for some pairs, and gives nothing for others."""
    found = Pair(
        left.key if left is not None else right.key if right is not None else 0,
        -1 if left is None else left.value,
        -1 if right is None else right.value,
    )
    if fails(found):
        raise ValueError(f"{found.left} and {found.right}")
    return None if is_nothing(found) else found


def fails(pair: Pair) -> bool:
    return pair.left == UNLUCKY or (7 * pair.left + 11 * pair.right) % 23 == 0


def is_nothing(pair: Pair) -> bool:
    return (7 * pair.left + 11 * pair.right) % 23 == 7


# Adds the join of two streams.
Make = Callable[..., JoinedStream[Any, Any, Any]]


def joined(make: Make, *, late: bool = True, **options: Any) -> Application:
    """Events by side, joined by `make(left, right, pair, ...)`, to `out`; those that are late to `late`."""
    app = Application("meters")
    events = app.source("in", schema=Event, key="key", event_time="at")
    left, right = events.filter(is_left), events.filter(is_right).map(entry)
    node = make(left, right, pair, name="pairs", **options)
    node.sink("out")
    if late and node.join_node.judges_lateness:
        node.late.sink("late")
    return app


def us(count: int) -> timedelta:
    """So many microseconds."""
    return timedelta(microseconds=count)


def within(lower: int, upper: int, how: str) -> Make:
    """Bounds in microseconds."""
    return lambda left, right, combine, **more: left.join_within(
        right, us(lower), us(upper), combine, how=how, **more
    )


def as_of(tolerance: int | None, how: str) -> Make:
    return lambda left, right, combine, **more: left.join_as_of(
        right, combine, tolerance=None if tolerance is None else us(tolerance), how=how, **more
    )


def latest(how: str, **own: Any) -> Make:
    return lambda left, right, combine, **more: left.join_latest(right, combine, how=how, **own, **more)


def in_window(window: Any, how: str) -> Make:
    return lambda left, right, combine, **more: left.join_window(right, window, combine, how=how, **more)


def pairs(records: list[OutputRecord]) -> list[tuple[int, int]]:
    return [(each.left, each.right) for each in results(records, OUT, Pair)]


def lates(records: list[OutputRecord]) -> list[int]:
    """The values of late events: those of the left side, then those of the right one."""
    return [each.value for kind in (Event, Entry) for each in late_of(records, kind)]


def late_of(records: list[OutputRecord], kind: type[Any]) -> list[Any]:
    """The late messages of a class."""
    schema = schema_of(kind)
    return [
        each
        for frame in frames(records, LATE)
        if frame.schema == schema.fingerprint and frame.columns is not None
        for each in Columns.of_payload(schema, frame.columns).messages()
    ]


def event(key: int, side: str, at: int, value: int, *, gone: bool = False) -> Event:
    """Of a time in microseconds."""
    return Event(key, side == "r", at * US, value, gone)


def record(number: int, events: list[Event], watermark: int, **more: Any) -> bytes:
    """In microseconds."""
    return data("in/x", number, events, watermark_ns=watermark * US, **more)
