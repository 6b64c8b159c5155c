"""Windows of the aggregates that keep more than a value, and what they give in plain Python and compiled."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

import bettong
from bettong import Application, Width
from bettong.application.plan import Plan, plan
from bettong.application.windows.kinds import WindowKind
from bettong.worker.stage_program import StageProgram, program
from bettong.worker.state.pane_table import PaneTable
from tests.samples.both_speeds import fitting_late

OUT, LATE = "meters.sink.out", "meters.sink.late"


@dataclass
class Reading:
    """`ratio` may be NaN or infinite; `took` may not, but where a test means it."""

    shop: Annotated[str, Width(5)]
    at: int
    amount: int
    took: float
    ratio: bettong.f32
    small: bettong.i8
    large: bettong.u64
    name: Annotated[str, Width(11)]
    tag: Annotated[bytes, Width(3)]
    is_new: bool


@dataclass
class Ranks:
    """`least` has less room than what it is of: some results do not fit."""

    end: int
    count: int
    top: list[str]
    least: list[bettong.i16]
    largest: list[bettong.u64]
    by_name: list[float]
    by_tag: list[bytes]
    newest: list[bool]


@dataclass
class Gathered:
    key: Annotated[str, Width(5)]
    end: int
    last: Annotated[str, Width(11)]
    amounts: int
    ratios: int
    names: float
    tags: int
    news: int
    larges: bettong.u8
    new_ratios: int
    about_amounts: int
    about_ratios: int
    about_names: float
    about_tags: int
    new_larges: int
    median: float
    longest: float
    sixth: float
    top: list[int]


RANKS: dict[str, Any] = {
    "count": bettong.Count(),
    "top": bettong.Top(3, "name", by="took"),
    "least": bettong.Top(2, "amount", smallest=True),
    "largest": bettong.Top(4, "large"),
    "by_name": bettong.Top(2, "ratio", by="name", where="is_new"),
    "by_tag": bettong.Top(3, "tag", by="tag", smallest=True),
    "newest": bettong.Top(1, "is_new", by="small"),
}
GATHERED: dict[str, Any] = {
    "last": bettong.Last("name"),
    "amounts": bettong.Distinct("amount"),
    "ratios": bettong.Distinct("ratio"),
    "names": bettong.Distinct("name"),
    "tags": bettong.Distinct("tag"),
    "news": bettong.Distinct("is_new"),
    "larges": bettong.Distinct("large"),
    "new_ratios": bettong.Distinct("ratio", where="is_new"),
    "about_amounts": bettong.ApproxDistinct("amount"),
    "about_ratios": bettong.ApproxDistinct("ratio"),
    "about_names": bettong.ApproxDistinct("name"),
    "about_tags": bettong.ApproxDistinct("tag"),
    "new_larges": bettong.ApproxDistinct("large", where="is_new"),
    "median": bettong.Quantile("took", 0.5),
    "longest": bettong.Quantile("took", 1),
    "sixth": bettong.Quantile("small", 0.17),
    "top": bettong.Top(2, "small", by="took"),
}
AGGREGATES: dict[type[Any], dict[str, Any]] = {Ranks: RANKS, Gathered: GATHERED}


@cache
def described(kind: WindowKind, late: Any, result: Any) -> Plan:
    """`in`, by windows, to `out` and maybe `late`."""
    app = Application("meters")
    source = app.source("in", schema=Reading, key="shop", event_time="at")
    made: Any = bettong.compiled(bettong.aggregate(result, **AGGREGATES[result]))
    late = fitting_late(kind, late)
    node = source.window(kind, made, name="readings", late=late)
    node.sink("out")
    if late == "side":
        node.late.sink("late")
    return plan(app)


@cache
def ready(kind: WindowKind, late: Any, result: Any, *, compiled: bool) -> StageProgram:
    """Its only stage."""
    (stage,) = described(kind, late, result).stages
    return program(stage, compiled=compiled)


def reading(shop: int, at_ns: int, number: int) -> Reading:
    """Values that follow from a number; one in 13 has a time that no quantile and no rank has."""
    ratios = (0.0, -0.0, float("nan"), 2.0, -7.25, float("inf"), 1e30)
    took = float("nan") if number % 13 == 9 else (number * 37 % 19 - 9) * 10.0 ** (number % 30 - 15)
    return Reading(
        shop=f"s{shop}",
        at=at_ns,
        amount=number * 7919 % 41 - 17 + (2**55 if number % 11 == 10 else 0),
        took=took,
        ratio=ratios[number * 5 % 7],
        small=number * 31 % 255 - 127,
        large=number * 0x9E3779B97F4A7C15 % 2**64 if number % 4 else 7,
        name="abcdefghéjk"[number % 4 : number % 4 + number % 7],
        tag=bytes([number % 3, 200 + number % 5, 0]),
        is_new=number % 3 == 0,
    )


def words_in_use(table: PaneTable) -> int:
    """Words of segments that are some pane's: all that were ever used but those that nobody has."""
    words, spare, used = table.panes.items.arrays
    free = 0
    for power, first in enumerate(spare.tolist()):
        begin = first
        while begin >= 0:
            free += 1 << power
            begin = int(words[begin])
    return int(used[0]) - free
