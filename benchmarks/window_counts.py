"""Counts of keys by windows, in the partition worker alone, fed from memory; and a plain loop that does the same.

`python -m benchmarks.window_counts EVENTS TURNS` prints how fast sessions are in both speeds, and tumbling and sliding
windows.
"""

import struct
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache, partial
from statistics import median

import numpy as np

import bettong
from benchmarks.folding import FRAME_MESSAGES, fold, worker_of
from benchmarks.measuring import Sample
from benchmarks.workload import timed_frames
from bettong.application.plan import Plan, plan
from bettong.application.windows.kinds import WindowKind
from bettong.frames.columns import Array, Columns
from bettong.frames.frame import decode
from bettong.worker.output.framing import OutputRecord
from bettong.worker.stage_program import StageProgram, program

# Of the events of a window, or of a slide, each key has so many.
EVENTS_PER_KEY, EVENTS_MANY = 10, 1000
KEYS_MANY, KEYS_FEW = 100_000, 1_000
# Slides of a sliding window, and how many of them the load has: so its windows are full for half of it.
SLIDES, SLIDES_MEASURED = 1000, 2000
# Of a window over many keys: all of their panes are kept at once.
SLIDES_FEW = 4
_SLIDE = timedelta(seconds=1)
_SLIDE_NS = 1_000_000_000
# Of a key that has an event each 100 ms on average, one in twenty begins a session.
_GAP = timedelta(milliseconds=300)
_GAP_NS = 300_000_000
_EVENT = struct.Struct("<qq")


@dataclass(slots=True)
class KeyEvent:
    """Something of a key, at an event time."""

    key: bettong.i64
    at: bettong.i64


@dataclass(slots=True)
class WindowCount:
    """How many a window of a key has."""

    key: bettong.i64
    end: bettong.i64
    count: bettong.i64


@dataclass(frozen=True, slots=True)
class EventLoad:
    """Events in the order of their times, with keys by chance, always the same."""

    keys: Array
    times: Array

    @classmethod
    def of(cls, events: int, *, keys: int, per_key: int) -> "EventLoad":
        """Each slide has `per_key` for each key."""
        chosen = np.random.default_rng(1).integers(0, keys, events)
        return cls(chosen, np.arange(events) * (_SLIDE_NS // (per_key * keys)))

    def frames(self, application: Plan) -> list[bytes]:
        """As the records of one partition."""
        source = application.sources[0]
        columns = Columns(source.schema, len(self.keys), (self.keys, self.times))
        return timed_frames(source, columns, FRAME_MESSAGES, self.times)

    def right(self, slides: int) -> tuple[int, int, list[tuple[int, int]]]:
        """Of windows of so many slides that are over at the end: how many events they have in all, and, of key 7, the
        ends and counts of each that has any.
        """
        last = int(self.times[-1]) // _SLIDE_NS
        numbers = self.times // _SLIDE_NS
        every = np.bincount(numbers, minlength=last + 1)
        own = np.bincount(numbers[self.keys == 7], minlength=last + 1)
        found = []
        total = 0
        for end in range(1, last + 1):
            start = max(0, end - slides)
            total += int(every[start:end].sum())
            if count := int(own[start:end].sum()):
                found.append((end * _SLIDE_NS, count))
        return total, last, found

    def right_sessions(self) -> tuple[int, int, list[tuple[int, int]]]:
        """The same of sessions, which all have ends of their own."""
        order = np.lexsort((self.times, self.keys))
        keys, times = self.keys[order], self.times[order]
        begins = np.append(True, (np.diff(keys) != 0) | (np.diff(times) > _GAP_NS))
        first = np.flatnonzero(begins)
        counts = np.diff(np.append(first, len(keys)))
        ends = times[first + counts - 1] + _GAP_NS + 1
        is_over = ends <= self.times[-1]
        own = is_over & (keys[first] == 7)
        found = list(zip(ends[own].tolist(), counts[own].tolist(), strict=True))
        return int(counts[is_over].sum()), int(is_over.sum()), found


def tumbling_speed(events: int, *, compiled: bool) -> Sample:
    """Events a second of one core's time, with 100,000 keys."""
    load = _load(events, KEYS_MANY)
    return _speed(bettong.tumbling(_SLIDE), load.right(1), load, compiled=compiled)


def sliding_speed(events: int) -> Sample:
    """The same of sliding windows, compiled: a message is in several, and each slide has a result of each key."""
    load = _load(events, KEYS_MANY)
    kind = bettong.sliding(SLIDES_FEW * _SLIDE, _SLIDE)
    return _speed(kind, load.right(SLIDES_FEW), load, compiled=True)


def session_speed(events: int, *, compiled: bool) -> Sample:
    """The same of sessions, of some twenty events each."""
    load = _load(events, KEYS_MANY)
    return _speed(bettong.sessions(_GAP), load.right_sessions(), load, compiled=compiled)


def python_against_loop(events: int) -> Sample:
    """Tumbling windows in plain Python, in percent of the speed of the plain loop; results are rare."""
    load = _load(events, KEYS_FEW, EVENTS_MANY)
    loop = plain_loop_per_s(load)
    found = _speed(bettong.tumbling(_SLIDE), load.right(1), load, compiled=False)
    return Sample(100 * found.value / loop, found.cpu_s_per_million)


def sliding_against_tumbling() -> Sample:
    """Windows of 1000 slides, in percent of the speed of tumbling ones of one slide: both give a result each slide."""
    load = _load(SLIDES_MEASURED * EVENTS_PER_KEY * KEYS_FEW, KEYS_FEW)
    tumbling = _speed(bettong.tumbling(_SLIDE), load.right(1), load, compiled=True)
    sliding = _speed(bettong.sliding(SLIDES * _SLIDE, _SLIDE), load.right(SLIDES), load, compiled=True)
    return Sample(100 * sliding.value / tumbling.value, sliding.cpu_s_per_million)


def plain_loop_per_s(load: EventLoad) -> float:
    """Events a second of what one would write without any framework, from bytes to results; checked."""
    messages = [_EVENT.pack(*each) for each in zip(load.keys.tolist(), load.times.tolist(), strict=True)]
    begun = time.process_time()
    results = _loop(messages)
    seconds = time.process_time() - begun
    total, _, own = load.right(1)
    assert sum(each.count for each in results) == total, "the plain loop is wrong"
    assert [(each.end, each.count) for each in results if each.key == 7] == own, "the plain loop is wrong"
    return len(messages) / seconds


def _loop(messages: list[bytes]) -> list[WindowCount]:
    results: list[WindowCount] = []
    counts: dict[int, int] = {}
    end = _SLIDE_NS
    for message in messages:
        event = KeyEvent(*_EVENT.unpack(message))
        if event.at >= end:
            results += [WindowCount(key, end, counts[key]) for key in sorted(counts)]
            counts = {}
            end = (event.at // _SLIDE_NS + 1) * _SLIDE_NS
        counts[event.key] = counts.get(event.key, 0) + 1
    return results


@cache
def _load(events: int, keys: int, per_key: int = EVENTS_PER_KEY) -> EventLoad:
    return EventLoad.of(events, keys=keys, per_key=per_key)


@cache
def ready_counts(kind: WindowKind, *, compiled: bool) -> tuple[Plan, StageProgram]:
    """An application that counts events by such windows."""
    app = bettong.Application("window-counts")
    source = app.source("events", schema=KeyEvent, key="key", event_time="at")
    counts = bettong.compiled(bettong.aggregate(WindowCount, count=bettong.Count()))
    source.window(kind, counts, name="counts").sink("counted")
    application = plan(app)
    return application, program(application.stages[0], compiled=compiled)


def _speed(
    kind: WindowKind, right: tuple[int, int, list[tuple[int, int]]], load: EventLoad, *, compiled: bool
) -> Sample:
    application, ready = ready_counts(kind, compiled=compiled)
    records, seconds = fold(worker_of(application.application, ready), load.frames(application))
    _check(application, records, right)
    return Sample(len(load.keys) / seconds, seconds * 1e6 / len(load.keys))


def _check(
    application: Plan, records: Sequence[OutputRecord], right: tuple[int, int, list[tuple[int, int]]]
) -> None:
    schema = application.stages[0].outputs[0].schema
    payloads = [payload for record in records if (payload := decode(record.value).columns) is not None]
    keys, ends, counts = (
        np.concatenate(each)
        for each in zip(*(Columns.of_payload(schema, each).columns for each in payloads), strict=True)
    )
    total, windows, own = right
    assert len(np.unique(ends)) == windows, "the windows are wrong"
    assert counts.sum() == total, "the counts are wrong"
    assert list(zip(ends[keys == 7].tolist(), counts[keys == 7].tolist(), strict=True)) == own, (
        "the windows of a key are wrong"
    )


def main() -> None:
    """Prints the medians and ranges of runs in turns."""
    events, turns = (
        int(given) if given else usual
        for given, usual in zip([*sys.argv[1:3], "", ""][:2], (2_000_000, 5), strict=True)
    )
    speeds = {
        "sessions, plain Python": partial(session_speed, events, compiled=False),
        "sessions, compiled": partial(session_speed, events, compiled=True),
        "tumbling, compiled": partial(tumbling_speed, events, compiled=True),
        "sliding, compiled": partial(sliding_speed, events),
    }
    # The first ones load machine code.
    session_speed(events, compiled=True)
    tumbling_speed(events, compiled=True)
    sliding_speed(events)
    found: dict[str, list[float]] = {name: [] for name in speeds}
    for _ in range(turns):
        for name, speed in speeds.items():
            found[name].append(speed().value / 1e6)
    for name, values in found.items():
        print(f"{name:24} {median(values):7.3f} ({min(values):.3f} - {max(values):.3f}) million events/s")


if __name__ == "__main__":
    main()
