"""Event times of the messages that rows come from, Unix ns: computed on first use."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from bettong.application.event_time import EventTime
from bettong.application.plan import StageInput
from bettong.frames.columns import Array, Columns
from bettong.frames.frame import CLOCK_NS_MAX, Frame
from bettong.frames.times import decode_times, instants_ns
from bettong.user_errors import ANY_ERROR


class EventTimes:
    """The event times of one frame's messages, or of what fired in one call."""

    __slots__ = ("_find", "_values")

    def __init__(self, find: Callable[[], Array]) -> None:
        self._find = find
        self._values: Array | None = None

    @classmethod
    def of(cls, values: Array) -> EventTimes:
        """Event times that are known already."""
        return cls(lambda: values)

    def values(self) -> Array:
        """64-bit integers, one a message."""
        if self._values is None:
            self._values = self._find()
        return self._values


def event_times_of(
    entry: StageInput, columns: Columns, frame: Frame, without: frozenset[int] = frozenset()
) -> EventTimes:
    """The event times of a frame as it enters a stage. `without`: indexes of messages that no user function may see.

    The sender refuses messages without an event time of 64 bits above 0. A message that has none all the same, because
    the user's function has changed since, has its ingest time. Raises FrameError where the frame, of another stage, has
    times for another number of messages.
    """
    if frame.event_times and entry.event_time is None:
        times = decode_times(frame.event_times, columns.length, "event times")
        return EventTimes.of(_not_negative(times, frame.ingest_ns))
    return EventTimes(partial(_find, entry.event_time or EventTime(), columns, frame.ingest_ns, without))


def _find(of: EventTime, columns: Columns, ingest_ns: int, without: frozenset[int]) -> Array:
    if isinstance(of.of, str):
        column = columns.columns[columns.schema.position(of.of)]
        if isinstance(column, pa.Array):
            instants, outside = instants_ns(column)
            return np.where(outside, ingest_ns, instants)
        return _not_negative(np.asarray(column), ingest_ns)
    found = np.full(columns.length, ingest_ns)
    if of.of is not None:
        kept = [index for index in range(columns.length) if index not in without]
        messages = iter(columns.take(np.array(kept, np.int64)) if without else columns)
        for index in kept:
            found[index] = _computed_time(of.of, messages, ingest_ns)
    return found


def _computed_time(function: Callable[[Any], int], messages: Any, ingest_ns: int) -> int:
    try:
        at_ns = function(next(messages))
        return at_ns if type(at_ns) is int and 0 <= at_ns <= CLOCK_NS_MAX else ingest_ns
    except ANY_ERROR:
        return ingest_ns


def _not_negative(times: Array, ingest_ns: int) -> Array:
    found = times.astype(np.int64, copy=False)
    return found if not len(found) or found.min() >= 0 else np.where(found < 0, ingest_ns, found)
