"""Windows of the aggregates that keep more than a value, in plain Python and compiled, in the worker alone."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import make_dataclass
from datetime import timedelta
from typing import Annotated, Any

import numpy as np

import bettong
from benchmarks.folding import fold, worker_of
from benchmarks.workload import timed_frames
from bettong import Width
from bettong.application.plan import Plan, plan
from bettong.application.windows.aggregate import Aggregate
from bettong.frames.columns import Columns
from bettong.worker.stage_program import program

FRAME_MESSAGES = 4096
KEYS, PER_KEY = 1_000, 100
_WINDOW_NS = 1_000_000_000
# What each makes of a window of a key, and the type of the result.
AGGREGATES: Mapping[str, tuple[Aggregate, Any]] = {
    "Count": (bettong.Count(), int),
    "Top 3": (bettong.Top(3, "page", by="took"), list[str]),
    "Distinct, numbers": (bettong.Distinct("person"), int),
    "Distinct, text": (bettong.Distinct("page"), int),
    "ApproxDistinct, numbers": (bettong.ApproxDistinct("person"), int),
    "ApproxDistinct, text": (bettong.ApproxDistinct("page"), int),
    "Quantile": (bettong.Quantile("took", 0.99), float),
}

Visit = make_dataclass(
    "Visit",
    [
        ("key", bettong.i64),
        ("at", bettong.i64),
        ("person", bettong.i64),
        ("took", float),
        ("page", Annotated[str, Width(12)]),
    ],
)


def visits(events: int, plan_of: Plan) -> list[bytes]:
    """Records of one partition: in each window, each key has some hundred."""
    chance = np.random.default_rng(1)
    columns = (
        chance.integers(0, KEYS, events),
        np.arange(events) * (_WINDOW_NS // (KEYS * PER_KEY)),
        chance.integers(0, 10_000, events),
        chance.lognormal(0, 1, events),
        np.char.mod("page-%d", chance.integers(0, 1_000, events)).astype("S12"),
    )
    source = plan_of.sources[0]
    found = Columns(source.schema, events, columns)
    return timed_frames(source, found, FRAME_MESSAGES, columns[1])


def speed(name: str, events: int, panes: int) -> tuple[float, float]:
    """Events a second of one core's time: of plain Python, and compiled. Both give the same records.

    `panes`: how many slides a window has; tumbling ones have one.
    """
    aggregate, result = AGGREGATES[name]
    row = make_dataclass("Row", [("key", bettong.i64), ("end", bettong.i64), ("found", result)])
    app = bettong.Application("window-aggregates")
    source: Any = app.source("visits", schema=Visit, key="key", event_time="at")
    made: Any = bettong.compiled(bettong.aggregate(row, found=aggregate))
    slide = timedelta(seconds=1) / panes  # in whole microseconds
    source.window(bettong.sliding(slide * panes, slide), made, name="rows").sink("out")
    application = plan(app)
    frames = visits(events, application)
    found = []
    for compiled in (False, True):
        ready = program(application.stages[0], compiled=compiled)
        # Compiles.
        fold(worker_of(application.application, ready), frames[:2])
        found.append(fold(worker_of(application.application, ready), frames))
    assert found[0][0] == found[1][0], f"{name}: results differ"
    return events / found[0][1], events / found[1][1]


def main() -> None:
    """Prints each; the arguments say of how many events, and how many slides a window has."""
    events, panes = (
        int(given) if given else usual
        for given, usual in zip([*sys.argv[1:3], "", ""][:2], (400_000, 1), strict=True)
    )
    for name in AGGREGATES:
        python, compiled = speed(name, events, panes)
        print(f"{name:24} {python / 1e6:8.3f} {compiled / 1e6:8.3f} million/s {compiled / python:6.1f} times")


if __name__ == "__main__":
    main()
