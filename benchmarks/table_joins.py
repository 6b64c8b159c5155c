"""Messages with the newest one of a table, or that of their time, in the partition worker alone, fed from memory."""

from functools import cache

import numpy as np

import bettong
from benchmarks.folding import fold, worker_of
from benchmarks.interval_joins import Arrived, JoinLoad, Shipped, delivered, frames_of, pairs_in
from benchmarks.measuring import Sample
from benchmarks.workload import ORIGIN
from bettong.application.plan import Plan, plan
from bettong.frames.columns import Array
from bettong.frames.frame import tick_record
from bettong.identifiers import Origin
from bettong.worker.stage_program import StageProgram, program

KEYS = 100_000
KINDS = ("latest", "as of")
_STEP_NS = 10_000


def table_speed(kind: str, messages: int, *, compiled: bool, keys: int = KEYS) -> Sample:
    """Messages a second of one core's time, of both sides; `kind`: one of KINDS. The results are checked."""
    load, (application, ready) = _load(messages, keys), _ready(kind, compiled=compiled)
    origins = [Origin(f"{source.name}/{ORIGIN}") for source in application.sources]
    # The watermark waits for both sides from the beginning.
    frames = [tick_record("log", 1, dict.fromkeys(origins, 1)), *frames_of(application, load)]
    records, seconds = fold(worker_of(application.application, ready), frames)
    assert pairs_in(application, records) == _right(kind, load), "the pairs are wrong"
    return Sample(load.messages / seconds, seconds * 1e6 / load.messages)


def _right(kind: str, load: JoinLoad) -> tuple[int, int]:
    """How many pairs there are, and the sum of their totals."""
    (keys, times, weights), (other_keys, other_times, costs) = load.sides
    if kind == "latest":
        times, other_times = _in_log(load)
    width = int(max(times.max(), other_times.max())) + 1
    asked, valid = keys * width + times, other_keys * width + other_times
    order = np.argsort(valid)
    found = np.searchsorted(valid[order], asked, "right") - 1
    rows = order[np.maximum(found, 0)]
    paired = (found >= 0) & (other_keys[rows] == keys)
    return int(paired.sum()), int((weights[paired] + costs[rows[paired]]).sum())


def _in_log(load: JoinLoad) -> tuple[Array, Array]:
    """By message of each side, its place in the log."""
    places, begun = [np.empty(len(side[0]), np.int64) for side in load.sides], 0
    for _, side, part in load.parts():
        own = places[side][part]
        own[:] = begun + np.arange(len(own))
        begun += len(own)
    return places[0], places[1]


@cache
def _load(messages: int, keys: int) -> JoinLoad:
    """Half of each side, keys by chance, always the same; times rise by a step, those of the table by one ns more."""
    chance, count = np.random.default_rng(1), messages // 2
    times = np.arange(count) * _STEP_NS
    left, right = (
        (chance.integers(0, keys, count), times + lag, chance.integers(0, 1000, count)) for lag in (0, 1)
    )
    return JoinLoad((left, right))


@cache
def _ready(kind: str, *, compiled: bool) -> tuple[Plan, StageProgram]:
    app = bettong.Application("table-joins")
    left = app.source("shipped", schema=Shipped, key="key", event_time="at")
    right = app.source("arrived", schema=Arrived, key="key", event_time="at")
    join = left.join_latest if kind == "latest" else left.join_as_of
    join(right, delivered, name="pairs").sink("delivered")
    application = plan(app)
    return application, program(application.stages[0], compiled=compiled)
