"""Windows of every aggregate that has a compiled form, and what they give in plain Python and compiled."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

import bettong
from bettong import Application, Width
from bettong.application.plan import Plan, plan
from bettong.application.streams import WindowedStream
from bettong.application.windows.kinds import WindowKind
from bettong.worker.stage_program import StageProgram, program
from tests.samples.both_speeds import fitting_late

OUT, LATE = "meters.sink.out", "meters.sink.late"


@dataclass
class Sale:
    shop: Annotated[str, Width(5)]
    at: int
    amount: int
    price: float
    small: bettong.i8
    large: bettong.u64
    label: str
    name: Annotated[str, Width(11)]
    tag: Annotated[bytes, Width(3)]
    is_new: bool


@dataclass
class Sales:
    """`total` and `cheapest` have less room than what they are of: some results do not fit."""

    end: int
    count: bettong.u16
    total: bettong.i8
    mean: float
    price: float
    cheapest: bettong.f32
    dearest: float
    mean_price: float
    least: bettong.i8
    most: bettong.i16
    least_large: bettong.u64
    most_large: bettong.u64
    total_large: bettong.u64
    first: Annotated[str, Width(11)]
    last: Annotated[str, Width(6)]
    tag: Annotated[bytes, Width(4)]
    was_new: bool
    new_count: int
    new_total: int
    new_price: float
    key: Annotated[str, Width(5)]
    start: float
    final: bool


def aggregated() -> Any:
    """All of them, compiled."""
    return bettong.compiled(
        bettong.aggregate(
            Sales,
            count=bettong.Count(),
            total=bettong.Sum("amount"),
            mean=bettong.Mean("amount"),
            price=bettong.Sum("price"),
            cheapest=bettong.Min("price"),
            dearest=bettong.Max("price"),
            mean_price=bettong.Mean("price"),
            least=bettong.Min("small"),
            most=bettong.Max("small"),
            least_large=bettong.Min("large"),
            most_large=bettong.Max("large"),
            total_large=bettong.Sum("large"),
            first=bettong.First("name"),
            last=bettong.Last("name"),
            tag=bettong.Last("tag"),
            was_new=bettong.First("is_new"),
            new_count=bettong.Count(where="is_new"),
            new_total=bettong.Sum("amount", where="is_new"),
            new_price=bettong.Sum("price", where="is_new"),
        )
    )


def windowed(kind: Any, **options: Any) -> WindowedStream[Any, Sale]:
    """`in`, by windows, to `out` and maybe `late`."""
    app = Application("meters")
    source = app.source("in", schema=Sale, key="shop", event_time="at")
    node = source.window(kind, aggregated(), name="sales", **options)
    node.sink("out")
    if options.get("late") == "side":
        node.late.sink("late")
    return node


@cache
def described(kind: WindowKind, late: str) -> Plan:
    """The plan of such an application."""
    return plan(windowed(kind, late=fitting_late(kind, late)).app)


@cache
def ready(kind: WindowKind, late: str, *, compiled: bool) -> StageProgram:
    """Its only stage."""
    (stage,) = described(kind, late).stages
    return program(stage, compiled=compiled)


def sale(shop: int, at_ns: int, number: int) -> Sale:
    """A sale whose values follow from a number; one in eight has a price that 32 bits cannot hold."""
    return Sale(
        shop=f"s{shop}",
        at=at_ns,
        amount=number * 7919 % 41 - 17 + (2**55 if number % 11 == 10 else 0),
        price=(number * 37 % 19 - 9) / 7 or -0.0 if number % 8 else 1e39,
        small=number * 31 % 255 - 127,
        large=number * 0x9E3779B97F4A7C15 % 2**64,
        label="x" * (number % 5),
        name="abcdefghijk"[number % 4 : number % 4 + number % 7 + 1],
        tag=bytes([number % 250 + 1] * 2 + [0]),
        is_new=number % 3 == 0,
    )
