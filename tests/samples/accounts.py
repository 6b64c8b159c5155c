"""An application with every kind of computation, at each speed, whose accounts can be told by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np

import bettong
from bettong import Application, RowIndexes
from bettong.testing.outcome import Outcome


@dataclass
class Order:
    """Of a customer. A value of 13 is what functions raise for."""

    customer: bettong.u32
    at: int
    value: int


@dataclass
class Rate:
    customer: bettong.u32
    at: int


@dataclass
class Sum:
    customer: bettong.u32
    total: int


@dataclass
class Whole:
    """Of a window."""

    key: int
    total: int


@dataclass
class Kept:
    total: int = 0


@dataclass
class Ringing:
    """Rings as long after a customer's order as its value says."""

    due: bettong.Timer = bettong.NEVER
    count: int = 0


def is_positive(order: Order) -> bool:
    if order.value == 13:
        raise ValueError("thirteen")
    return order.value > 0


def doubled(order: Order) -> Order:
    if order.value == 5:
        raise ValueError("five")
    return Order(order.customer, order.at, 2 * order.value)


def split(order: Order) -> Iterator[Order]:
    for part in range(order.value % 3):
        yield Order(order.customer, order.at, part)


def add(order: Order, kept: Kept) -> Sum | None:
    if order.value == 20:
        raise ValueError("twenty")
    kept.total += order.value
    if kept.total % 4:
        return None
    return Sum(order.customer, kept.total)


@bettong.vectorized
def all_positive(orders: Order) -> bool:
    if np.any(orders.value == 13):
        raise ValueError("thirteen")
    return orders.value > 0


@bettong.vectorized
def all_doubled(orders: Order) -> Order:
    if np.any(orders.value == 5):
        raise ValueError("five")
    return Order(orders.customer, orders.at, 2 * orders.value)


@bettong.vectorized
def all_split(orders: Order) -> tuple[Order, RowIndexes]:
    values: Any = orders.value
    found = [(row, part) for row, value in enumerate(values.tolist()) for part in range(value % 3)]
    rows = np.array([row for row, _ in found], np.int64)
    customers: Any = orders.customer
    times: Any = orders.at
    parts: Any = np.array([part for _, part in found], np.int64)
    return Order(customers[rows], times[rows], parts), rows


@bettong.vectorized
def add_all(orders: Order, kept: Kept, keys: RowIndexes) -> tuple[Sum, RowIndexes]:
    values: Any = orders.value
    customers: Any = orders.customer
    state: Any = kept
    if np.any(values == 20):
        raise ValueError("twenty")
    found = []
    for row, key in enumerate(keys.tolist()):
        state.total[key] += values[row]
        if state.total[key] % 4 == 0:
            found.append((row, int(state.total[key])))
    rows = np.array([row for row, _ in found], np.int64)
    totals: Any = np.array([total for _, total in found], np.int64)
    return Sum(customers[rows], totals), rows


PLAIN: dict[str, Any] = {"positive": is_positive, "double": doubled, "parts": split, "totals": add}
FUNCTIONS: dict[str, dict[str, Any]] = {
    "python": PLAIN,
    "compiled": {name: bettong.compiled(function) for name, function in PLAIN.items()},
    "vectorized": {"positive": all_positive, "double": all_doubled, "parts": all_split, "totals": add_all},
}


def chain(speed: str) -> Application:
    """A filter, a map behind it, and behind that one a flat_map and a stateful: alike at each speed."""
    app = Application("accounts")
    orders = app.source("orders", schema=Order, key="customer")
    of = FUNCTIONS[speed]
    positive = orders.filter(of["positive"], name="positive")
    double = positive.map(of["double"], name="double")
    double.flat_map(of["parts"], name="parts").sink("to-parts")
    double.stateful(of["totals"], state=Kept, name="totals").sink("to-totals")
    return app


def ring(fired: bettong.Fired[int], ringing: Ringing) -> Sum:
    if ringing.count == 2:
        raise ValueError("two")
    return Sum(fired.key, ringing.count)


def wind_up(order: Order, ringing: Ringing) -> None:
    ringing.count += 1
    ringing.due = order.at + order.value


def paired(order: Order, rate: Rate) -> Sum:
    if order.value == 26:
        raise ValueError("twenty-six")
    return Sum(order.customer, rate.at)


def encoded(order: Order) -> bytes:
    if order.value == 9:
        raise ValueError("nine")
    return b"x"


def place(whole: Whole) -> int:
    if whole.total == 9:
        raise ValueError("nowhere")
    return whole.total % 7


def every_kind(*, has_timers: bool = True) -> Application:
    """Three stages: windows with late messages, a join, timers, branches, dead letters as rows, `local`."""
    app = Application("accounts")
    orders = app.source(
        "orders", schema=Order, key="customer", event_time="at", out_of_order=timedelta(microseconds=1)
    )
    rates = app.source("rates", schema=Rate, key="customer", event_time="at")
    positive = orders.filter(is_positive, name="positive")
    positive.dead_letters.sink("refused")
    branches = positive.branch(small=lambda order: order.value < 5, large=lambda order: order.value > 8)
    branches["small"].sink("small-ones")
    branches["large"].sink("coded", encoder=encoded, on_error="skip")
    every = bettong.aggregate(Whole, total=bettong.Sum("value"))
    windows = positive.window(
        bettong.sliding(timedelta(microseconds=10), timedelta(microseconds=5)),
        every,
        name="seen",
        late="side",
    )
    windows.late.sink("late-ones")
    windows.key_by(place, name="places").stateful(add_whole, state=Kept, name="by_place").sink("by-place")
    pairs = positive.join_within(
        rates, timedelta(microseconds=-5), timedelta(microseconds=5), paired, name="pairs"
    )
    pairs.sink("pairs-out")
    if has_timers:
        positive.stateful(wind_up, state=Ringing, timers={"due": ring}, name="rings").sink("rung")
    branches["small"].merge(branches["large"]).local("value").window(
        bettong.tumbling(timedelta(microseconds=10)),
        bettong.aggregate(Whole, total=bettong.Count()),
        name="counts",
    ).sink("counted")
    return app


def add_whole(whole: Whole, kept: Kept) -> Sum:
    kept.total += whole.total
    return Sum(whole.key, kept.total)


def taken_and_given(outcome: Outcome) -> dict[str, Sequence[int | None]]:
    """Of each place: in, used, filtered, late, dead letters, skipped, out."""
    return {
        f"{each.kind} {each.name}" if each.kind in ("input", "output") else each.name: (
            each.counts.taken,
            each.used,
            each.filtered,
            each.counts.late,
            each.counts.dead_letters,
            each.counts.skipped,
            each.counts.given,
        )
        for each in outcome.accounts
    }
