"""Ten million keys whose states end by time to live, and a million timers that wait: the worker alone, from memory."""

import gc
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import cache

import numpy as np
import psutil

import bettong
from benchmarks.folding import FRAME_MESSAGES, fold, worker_of
from benchmarks.measuring import Sample
from benchmarks.workload import log_frame
from bettong.application.plan import Plan, plan
from bettong.frames.columns import Array, Columns
from bettong.frames.frame import decode
from bettong.worker.stage_program import StageProgram, program

# A key has two messages, a minute of the log clock apart, and ends ten minutes after the second.
KEYS_LIVE = 10_000_000
TTL = timedelta(minutes=10)
_MINUTE_NS = 60 * 10**9
_LIFE_MINUTES = 11
MEASURED_MINUTES = 30
# Of the keys that give a result, and of the messages to each of them.
_SHOWN = 4096
TIMERS, BUSY_KEYS, TIMED_MESSAGES = 1_000_000, 1_000, 8_000_000
_HOUR_NS = 60 * _MINUTE_NS


@dataclass(slots=True)
class Visit:
    """Of a key. `wake_at`: when it wants to be called; 0 for never."""

    key: bettong.i64
    wake_at: bettong.i64


@dataclass(slots=True)
class Visits:
    """How many a key had."""

    count: bettong.i64 = 0


@dataclass(slots=True)
class Waking:
    """How many a key had, and when it is to be called."""

    count: bettong.i64 = 0
    wake_at: bettong.LogTimer = bettong.NEVER


@dataclass(slots=True)
class Counted:
    """How many a key had."""

    key: bettong.i64
    count: bettong.i64


@bettong.compiled
def count_visits(visit: Visit, state: Visits) -> Counted | None:
    """Each key that is a multiple of 4096 shows its count."""
    state.count += 1
    return Counted(visit.key, state.count) if visit.key % 4096 == 0 else None


@bettong.compiled
def count_and_wait(visit: Visit, state: Waking) -> Counted | None:
    """As `count_visits`; some messages set the timer of their key."""
    state.count += 1
    if visit.wake_at > 0:
        state.wake_at = visit.wake_at
    return Counted(visit.key, state.count) if visit.key % 4096 == 0 else None


@bettong.compiled
def woken(fired: bettong.Fired[bettong.i64], state: Waking) -> Counted | None:
    """Shows the count."""
    return Counted(fired.key, state.count)


@cache
def _ready(*, timers: bool) -> tuple[Plan, StageProgram]:
    app = bettong.Application("many-keys")
    visits = app.source("visits", schema=Visit, key="key")
    if timers:
        visits.stateful(count_and_wait, state=Waking, timers={"wake_at": woken}).sink("counted")
    else:
        visits.stateful(count_visits, state=Visits, ttl=TTL).sink("counted")
    application = plan(app)
    return application, program(application.stages[0], compiled=True)


class _Fold:
    """One worker, and the seconds that it took."""

    def __init__(self, *, timers: bool) -> None:
        self._application, ready = _ready(timers=timers)
        self.worker = worker_of(self._application.application, ready)
        self.seconds = 0.0
        self.shown: list[tuple[int, int]] = []

    def take(self, keys: Array, wake_at: Array, now_ns: int) -> None:
        """Folds one frame; its results are kept."""
        source = self._application.sources[0]
        number = self.worker.next_offset + 1
        columns = Columns(source.schema, len(keys), (keys, wake_at))
        frame = log_frame(source, columns, sequence=number, previous=number - 1, now_ns=now_ns)
        records, seconds = fold(self.worker, [frame])
        self.seconds += seconds
        schema = self._application.stages[0].outputs[0].schema
        for record in records:
            if (payload := decode(record.value).columns) is not None:
                found = Columns.of_payload(schema, payload).columns
                self.shown += zip(*(np.asarray(each).tolist() for each in found), strict=True)


def ttl_memory() -> Sample:
    """By how much memory is larger at the end of half an hour of the log clock than at its beginning, in percent of it,
    while ten million keys live and as many as begin end; CPU seconds for a million messages. Checked.
    """
    run, process, per_minute = _Fold(timers=False), psutil.Process(), KEYS_LIVE // _LIFE_MINUTES
    sizes: list[int] = []
    for minute in range(_LIFE_MINUTES + MEASURED_MINUTES + 1):
        for part, keys in enumerate(_visited(minute, per_minute)):
            run.take(keys, np.zeros_like(keys), 1 + minute * _MINUTE_NS + part * FRAME_MESSAGES)
        # A snapshot takes what has changed with it, as it does every second where there is a store.
        run.worker.increment()
        gc.collect()
        if minute > _LIFE_MINUTES:
            sizes.append(process.memory_info().rss)
    live = run.worker.tables["count_visits"].keys
    assert live == per_minute * _LIFE_MINUTES, f"{live:,} keys live"
    shown = dict.fromkeys(range(0, per_minute * (_LIFE_MINUTES + MEASURED_MINUTES), _SHOWN), 2)
    assert {key: count for key, count in run.shown if key in shown} == shown, "the counts are wrong"
    line = np.polynomial.Polynomial.fit(np.arange(len(sizes)), sizes, 1)
    growth = float(line(len(sizes) - 1) - line(0))
    return Sample(100 * growth / sizes[0], run.seconds * 1e6 / run.worker.counters.messages)


def _visited(minute: int, per_minute: int) -> Iterator[Array]:
    """The keys of a minute's messages, in frames: as many new ones, and those of the minute before."""
    new = np.arange(minute * per_minute, (minute + 1) * per_minute)
    keys = np.concatenate([new - per_minute, new]) if minute else new
    return (keys[start : start + FRAME_MESSAGES] for start in range(0, len(keys), FRAME_MESSAGES))


def pending_timers() -> Sample:
    """Messages a second while a million timers of other keys are pending, in percent of the speed with none.

    Checked.
    """
    alone, beside = _timed_speed(0), _timed_speed(TIMERS)
    return Sample(100 * beside / alone)


def _timed_speed(timers: int) -> float:
    run = _Fold(timers=True)
    waiting = np.arange(BUSY_KEYS, BUSY_KEYS + TIMERS)
    wake_at = np.where(waiting < BUSY_KEYS + timers, _HOUR_NS + waiting, 0)
    for start in range(0, TIMERS, FRAME_MESSAGES):
        rows = slice(start, start + FRAME_MESSAGES)
        run.take(waiting[rows], wake_at[rows], 1 + start)
    run.seconds, run.shown = 0.0, []
    keys = np.random.default_rng(1).integers(0, BUSY_KEYS, TIMED_MESSAGES)
    none = np.zeros(FRAME_MESSAGES, np.int64)
    for start in range(0, TIMED_MESSAGES, FRAME_MESSAGES):
        frame = keys[start : start + FRAME_MESSAGES]
        run.take(frame, none[: len(frame)], TIMERS + start)
    seconds = run.seconds
    assert run.shown[-1] == (0, int((keys == 0).sum())), "the counts are wrong"
    run.shown = []
    run.take(keys[:1], none[:1], 2 * _HOUR_NS)
    fired = [key for key, _ in run.shown if key >= BUSY_KEYS]
    assert fired == waiting[:timers].tolist(), "the timers are wrong"
    return TIMED_MESSAGES / seconds
