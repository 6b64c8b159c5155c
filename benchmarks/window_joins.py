"""Pairs of two streams in the same windows, in the partition worker alone, fed from memory.

    python -m benchmarks.window_joins

measures windows on a grid and sessions in turns: compiled, and in plain Python.
"""

from datetime import timedelta
from functools import cache
from itertools import product
from statistics import median

import numpy as np

import bettong
from benchmarks.folding import fold, worker_of
from benchmarks.interval_joins import Arrived, JoinLoad, Shipped, delivered, frames_of, pairs_in
from benchmarks.measuring import Sample
from benchmarks.workload import ORIGIN
from bettong.application.plan import Plan, plan
from bettong.application.windows.kinds import Ranges, Sessions
from bettong.frames.columns import Array
from bettong.frames.frame import tick_record
from bettong.identifiers import Origin
from bettong.worker.stage_program import StageProgram, program

# Of 10,000 keys, each with a message a second and side.
KINDS: dict[str, Ranges | Sessions] = {
    "tumbling": bettong.tumbling(timedelta(seconds=2)),
    "sliding": bettong.sliding(timedelta(seconds=2), timedelta(seconds=1)),
    "sessions": bettong.sessions(timedelta(milliseconds=500)),
}
_TURNS = 5


def window_speed(kind: str, messages: int, *, compiled: bool) -> Sample:
    """Messages a second of one core's time, of both sides; `kind`: one of KINDS. The results are checked."""
    load, (application, ready) = _load(messages), _ready(kind, compiled=compiled)
    origins = [Origin(f"{source.name}/{ORIGIN}") for source in application.sources]
    # The watermark waits for both sides from the beginning.
    frames = [tick_record("log", 1, dict.fromkeys(origins, 1)), *frames_of(application, load)]
    records, seconds = fold(worker_of(application.application, ready), frames)
    assert pairs_in(application, records) == _right(KINDS[kind], load), "the pairs are wrong"
    return Sample(load.messages / seconds, seconds * 1e6 / load.messages)


def _right(kind: Ranges | Sessions, load: JoinLoad) -> tuple[int, int]:
    """How many pairs there are, and the sum of their totals."""
    of_right = np.repeat([False, True], [len(each[0]) for each in load.sides])
    keys, times, values = (np.concatenate(each) for each in zip(*load.sides, strict=True))
    found = _windows(kind, keys, times)
    groups = np.unique(np.concatenate(found), return_inverse=True)[1]
    of_right, values = np.tile(of_right, len(found)), np.tile(values, len(found))
    (lefts, left_sums), (rights, right_sums) = (
        (np.bincount(groups, own), np.bincount(groups, np.where(own, values, 0)))
        for own in (~of_right, of_right)
    )
    return int((lefts * rights).sum()), int((left_sums * rights + right_sums * lefts).sum())


def _windows(kind: Ranges | Sessions, keys: Array, times: Array) -> list[Array]:
    """Of each message a number for its key and window, and another one for each further window that it is in."""
    if isinstance(kind, Ranges):
        slides = times // kind.slide_ns
        width = int(slides.max()) + kind.panes
        return [keys * width + slides + later for later in range(kind.size_ns // kind.slide_ns)]
    order = np.lexsort((times, keys))
    begins = np.diff(keys[order], prepend=-1) != 0
    begins |= np.diff(times[order], prepend=0) > kind.gap_ns
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.cumsum(begins)
    return [numbers]


@cache
def _load(messages: int) -> JoinLoad:
    return JoinLoad.of(messages)


@cache
def _ready(kind: str, *, compiled: bool) -> tuple[Plan, StageProgram]:
    app = bettong.Application("window-joins")
    left = app.source("shipped", schema=Shipped, key="key", event_time="at")
    right = app.source("arrived", schema=Arrived, key="key", event_time="at")
    left.join_window(right, KINDS[kind], delivered, name="pairs").sink("delivered")
    application = plan(app)
    return application, program(application.stages[0], compiled=compiled)


def main() -> None:
    """Prints the median and the range of all turns."""
    modes = list(product(KINDS, ((True, 1_000_000), (False, 100_000))))
    for kind, (compiled, _) in modes:
        _ready(kind, compiled=compiled)
    turns = [
        [window_speed(kind, messages, compiled=compiled).value for kind, (compiled, messages) in modes]
        for _ in range(_TURNS)
    ]
    for (kind, (compiled, _)), found in zip(modes, zip(*turns, strict=True), strict=True):
        print(
            f"{kind}, {'compiled' if compiled else 'plain Python':12} {median(found):12,.0f} messages/s"
            f" ({min(found):,.0f} - {max(found):,.0f})"
        )


if __name__ == "__main__":
    main()
