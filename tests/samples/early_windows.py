"""Compiled windows with early results, of all kinds of aggregates, in both speeds. Times are in hundreds of ns, so that
event times and the log clock, by which early results are due, are of one size.
"""

from __future__ import annotations

from datetime import timedelta
from functools import cache
from typing import Any

import bettong
from bettong import Application
from bettong.application.plan import Plan, plan
from bettong.application.windows.kinds import Ephemeral, Ranges, Sessions, WindowKind
from bettong.worker.stage_program import StageProgram, program
from tests.samples import filled_windows, gathering_windows
from tests.samples.both_speeds import fitting_late
from tests.samples.compiled_windows import Sale, aggregated, sale
from tests.samples.gathering_windows import Reading, reading

EARLY = timedelta(microseconds=1)
UNIT_NS = 100
GRIDS: list[WindowKind] = [
    Ranges(1000, 1000, 0, 0),
    Ranges(700, 700, 300, 500),
    Ranges(1200, 400, 100, 3000),
    Ranges(900, 600, 0, 500),
    Ranges(5000, 100, 0, 0),
]
KINDS = [
    *GRIDS,
    Ephemeral(1200, 0),
    Ephemeral(900, 2000),
    Sessions(600, 0),
    Sessions(100, 0),
    Sessions(1100, 2000),
]
# By the result of the windows: messages, and aggregates.
SAMPLES: dict[str, tuple[type[Any], Any]] = {
    "values": (Sale, aggregated()),
    "gathered": (
        Reading,
        bettong.compiled(bettong.aggregate(gathering_windows.Gathered, **gathering_windows.GATHERED)),
    ),
    "filled": (
        Reading,
        bettong.compiled(bettong.aggregate(filled_windows.Filled, **filled_windows.AGGREGATES)),
    ),
}


@cache
def described(sample: str, kind: WindowKind, late: Any, early: timedelta | None = EARLY) -> Plan:
    """`in`, by windows, to `out` and maybe `late`. Those that are filled fire without messages, too."""
    app = Application("meters")
    schema, made = SAMPLES[sample]
    late = fitting_late(kind, late)
    source = app.source("in", schema=schema, key="shop", event_time="at")
    node = source.window(kind, made, name="windows", late=late, early=early, emit_empty=sample == "filled")
    node.sink("out")
    if late == "side":
        node.late.sink("late")
    return plan(app)


@cache
def ready(
    sample: str, kind: WindowKind, late: Any, early: timedelta | None = EARLY, *, compiled: bool
) -> StageProgram:
    """Its only stage."""
    (stage,) = described(sample, kind, late, early).stages
    return program(stage, compiled=compiled)


def message(sample: str, shop: int, at: int, number: int) -> Any:
    """A message of a time in units, whose values follow from a number."""
    return (sale if SAMPLES[sample][0] is Sale else reading)(shop, UNIT_NS * at, number)
