"""Spans of subscribers: each result of a sampled frame, from reading it until gRPC accepts it. See `bettong.traces`."""

import time
from collections.abc import Callable
from typing import NamedTuple

from bettong.traces import RecordPosition, Report, TraceContext, deliver_span


class _Waiting(NamedTuple):
    before: TraceContext
    position: RecordPosition
    messages: int
    begun_ns: int


class SubscriberTracing:
    """Traces one subscription, named `to`. `read` and `delivered` may be called from two threads.

    Spans of results that are never delivered stay in memory: at most as many as the subscription holds results.
    """

    def __init__(
        self, report: Report, sink: str, to: str, *, clock_ns: Callable[[], int] = time.time_ns
    ) -> None:
        self._report = report
        self._sink = sink
        self._to = to
        self._clock_ns = clock_ns
        # By partition and the offset after the record.
        self._waiting: dict[tuple[int, int], _Waiting] = {}

    def read(self, traceparent: bytes, position: RecordPosition, messages: int) -> None:
        """Begins the span of a result of a sampled frame, before it is sent."""
        if (before := TraceContext.parse(traceparent)) is not None:
            waiting = _Waiting(before, position, messages, self._clock_ns())
            self._waiting[position.partition, position.offset + 1] = waiting

    def delivered(self, partition: int, offset: int) -> None:
        """Ends the span: gRPC has accepted the response after which the partition is at `offset`."""
        found = self._waiting.pop((partition, offset), None)
        if found is not None:
            self._report(
                deliver_span(
                    found.before,
                    found.position,
                    self._sink,
                    self._to,
                    messages=found.messages,
                    begun_ns=found.begun_ns,
                    ended_ns=self._clock_ns(),
                )
            )
