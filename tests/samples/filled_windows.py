"""Windows on a grid that fire without messages, too, of every aggregate that has a result then, in both speeds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

import bettong
from bettong import Application, Width
from bettong.application.plan import Plan, plan
from bettong.application.windows.kinds import Ranges
from bettong.worker.stage_program import StageProgram, program
from tests.samples.gathering_windows import LATE, OUT, Reading

__all__ = ["LATE", "OUT", "Filled", "described", "ready"]


@dataclass
class Filled:
    """`small` has less room than what it is of: some results do not fit."""

    key: Annotated[str, Width(5)]
    start: int
    end: int
    count: int
    new_count: int
    small: bettong.i8
    large: bettong.u64
    ratio: bettong.f32
    new_ratio: float
    names: int
    ratios: int
    about: int
    top: list[int]


AGGREGATES: dict[str, Any] = {
    "count": bettong.Count(),
    "new_count": bettong.Count(where="is_new"),
    "small": bettong.Sum("small"),
    "large": bettong.Sum("amount", where="is_new"),
    "ratio": bettong.Sum("ratio"),
    "new_ratio": bettong.Sum("ratio", where="is_new"),
    "names": bettong.Distinct("name"),
    "ratios": bettong.Distinct("ratio"),
    "about": bettong.ApproxDistinct("large"),
    "top": bettong.Top(2, "small", by="large"),
}


@cache
def described(kind: Ranges, late: Any) -> Plan:
    """`in`, by windows, to `out` and maybe `late`."""
    app = Application("meters")
    source = app.source("in", schema=Reading, key="shop", event_time="at")
    made = bettong.compiled(bettong.aggregate(Filled, **AGGREGATES))
    node = source.window(kind, made, name="readings", late=late, emit_empty=True)
    node.sink("out")
    if late == "side":
        node.late.sink("late")
    return plan(app)


@cache
def ready(kind: Ranges, late: Any, *, compiled: bool) -> StageProgram:
    """Its only stage."""
    (stage,) = described(kind, late).stages
    return program(stage, compiled=compiled)
