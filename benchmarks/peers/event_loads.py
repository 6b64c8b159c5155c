"""The messages of the workloads by event time, in the order of their times, and their right answers.

First come the starters: two messages of each of 400 keys, of which the second closes what the first opened. When their
results are there, whoever runs has started and serves every partition. Then the load, with keys by chance, always the
same. At last, far ahead, a message of each key: bytewax and Quix Streams close a key's windows by that key's messages.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import process_time

import numpy as np

from benchmarks.peers import event_answers
from benchmarks.peers.events import (
    APPROVED,
    BOUND_MS,
    EVENT,
    LEFT,
    MS_NS,
    PATIENCE_MS,
    PLACED,
    RIGHT,
    SIZE_MS,
    SLIDE_MS,
    WINDOW_MS,
)
from benchmarks.peers.load import INPUT, Load, Record
from bettong.frames.columns import Array
from examples.market_spread_oracle import Results

KEYS_MANY, KEYS_SOME, KEYS_FEW = 100_000, 10_000, 1_000
_STARTERS = 400
# A past time on the border of every window: a broker refuses times that are an hour ahead.
_START_MS = 1_600_000_200_000
# How many windows, or waits for an approval, the load of many keys has, however large it is.
_STRETCHES = 5
# Of a slide each key has so many messages, and of a second of the join one on each side.
_PER_KEY = 10

_Answer = Callable[[Sequence[bytes]], list[bytes]]


@dataclass(frozen=True, slots=True)
class _Events:
    """Columns of messages."""

    keys: Array
    times_ms: Array
    values: Array

    @classmethod
    def at_once(cls, keys: Array, time_ms: int, value: int) -> "_Events":
        """One message of each key."""
        return cls(keys, np.full(len(keys), time_ms), np.full(len(keys), value))

    @classmethod
    def spread(cls, keys: Array, values: Array, start_ms: int, span_ms: int) -> "_Events":
        """Messages at even distances."""
        return cls(keys, start_ms + np.arange(len(keys)) * span_ms // len(keys), values)

    def packed(self) -> list[bytes]:
        """As the wire has them."""
        columns = (self.keys, self.times_ms * MS_NS, self.values)
        return [EVENT.pack(*each) for each in zip(*(column.tolist() for column in columns), strict=True)]


@dataclass(frozen=True, slots=True)
class EventLoad:
    """A load as bytes, and what is asked about it."""

    opening: list[bytes]
    timed: list[bytes]
    answer: _Answer
    sided: bool = False

    def of_race(self) -> Load:
        """As records. The order of a key's results is not judged: who closes windows together promises none."""
        return Load(
            [self._record(message) for message in self.opening],
            [self._record(message) for message in self.timed],
            len(self.timed),
            len(self.answer(self.opening)),
            _by_key(self.answer(self.opening + self.timed)),
            _by_key,
            (LEFT, RIGHT) if self.sided else (INPUT,),
        )

    def loop_per_s(self) -> float:
        """Messages a second of the plain loop that gives the answer."""
        messages = self.opening + self.timed
        begun = process_time()
        self.answer(messages)
        return len(messages) / (process_time() - begun)

    def _record(self, message: bytes) -> Record:
        key, at_ns, value = EVENT.unpack(message)
        topic = (LEFT, RIGHT)[value & 1] if self.sided else INPUT
        return Record(message, b"%d" % key, topic=topic, time_ms=at_ns // MS_NS)


def tumbling_load(messages: int) -> EventLoad:
    """Five windows of 100,000 keys."""
    return _counted(messages, KEYS_MANY, WINDOW_MS, _STRETCHES * WINDOW_MS, event_answers.tumbling_counts)


def sliding_load(messages: int) -> EventLoad:
    """As many slides as ten messages a key fill, of 1,000 keys."""
    span_ms = messages * SLIDE_MS // (_PER_KEY * KEYS_FEW)
    return _counted(messages, KEYS_FEW, SIZE_MS, span_ms, event_answers.sliding_counts)


def join_load(messages: int) -> EventLoad:
    """A message a second of each key on each side; every value is there once, even on the left and odd on the right."""
    keys = np.random.default_rng(1).integers(0, KEYS_SOME, messages)
    span_ms = messages * 1000 // (2 * KEYS_SOME)
    starters = np.arange(_STARTERS)
    bell_ms = _START_MS + 10 * BOUND_MS + span_ms + 10 * BOUND_MS
    opening = [_Events.at_once(starters, _START_MS + side, side) for side in range(2)]
    load = _Events.spread(keys, 2 + np.arange(messages), _START_MS + 10 * BOUND_MS, span_ms)
    bell = [_Events.at_once(starters, bell_ms + side, 2 * (messages + 1) + side) for side in range(2)]
    timed = load.packed() + bell[0].packed() + bell[1].packed()
    return EventLoad(opening[0].packed() + opening[1].packed(), timed, event_answers.pairs_within, sided=True)


def timer_load(messages: int) -> EventLoad:
    """Orders of 100,000 keys and their approvals, so that each key has two messages in the time of a timer."""
    chance = np.random.default_rng(1)
    keys, kinds = chance.integers(0, KEYS_MANY, messages), chance.integers(PLACED, APPROVED + 1, messages)
    starters, begin_ms = np.arange(_STARTERS), _START_MS + PATIENCE_MS
    span_ms = _STRETCHES * PATIENCE_MS
    opening = _Events.at_once(starters, _START_MS, PLACED).packed()
    opening += _Events.at_once(starters, begin_ms, APPROVED).packed()
    timed = _Events.spread(keys, kinds, begin_ms, span_ms).packed()
    bell = _Events.at_once(_all_keys(keys), begin_ms + span_ms + PATIENCE_MS, APPROVED)
    return EventLoad(opening, timed + bell.packed(), event_answers.overdue_orders)


def _counted(messages: int, keys_count: int, size_ms: int, span_ms: int, answer: _Answer) -> EventLoad:
    chance = np.random.default_rng(1)
    keys, values = chance.integers(0, keys_count, messages), chance.integers(0, 1000, messages)
    starters, begin_ms = np.arange(_STARTERS), _START_MS + size_ms
    opening = (
        _Events.at_once(starters, _START_MS, 1).packed() + _Events.at_once(starters, begin_ms, 1).packed()
    )
    timed = _Events.spread(keys, values, begin_ms, span_ms).packed()
    bell = _Events.at_once(_all_keys(keys), begin_ms + span_ms + 2 * size_ms, 0)
    return EventLoad(opening, timed + bell.packed(), answer)


def _by_key(results: Sequence[bytes]) -> Results:
    found: Results = {}
    for result in results:
        found.setdefault(b"%d" % int.from_bytes(result[:8]), []).append(result)
    return {key: sorted(values) for key, values in found.items()}


def _all_keys(keys: Array) -> Array:
    return np.union1d(keys, np.arange(_STARTERS))
