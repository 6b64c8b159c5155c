"""Spans of deliveries: of each result of a sampled frame, from reading it until a destination or a subscriber has it.

See `bettong.traces`. A result has a span for each destination, and for each subscriber that is there.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from bettong.traces import RecordPlace, Report, TraceContext, deliver_span
from bettong_receiver.delivery.connector import SinkBatch


class DeliveryTracing:
    """Of one route. `topics`: of each sink; `to`: the route's name. Safe to use from any one thread."""

    def __init__(
        self,
        report: Report,
        topics: Mapping[str, str],
        to: str,
        *,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._report = report
        self._topics = topics
        self._to = to
        self._clock_ns = clock_ns

    def delivered(self, batches: Sequence[SinkBatch[Any]], read_before_s: float) -> None:
        """These batches have just been delivered, so long after they were read."""
        ended_ns = self._clock_ns()
        for batch in batches:
            sink, partition = batch.key
            for each in batch.frames:
                if not each.traceparent or (before := TraceContext.parse(each.traceparent)) is None:
                    continue
                self._report(
                    deliver_span(
                        before,
                        RecordPlace(self._topics[sink], partition, each.offset),
                        sink,
                        self._to,
                        messages=len(each.messages),
                        begun_ns=ended_ns - round(read_before_s * 1e9),
                        ended_ns=ended_ns,
                    )
                )


class _Waiting(NamedTuple):
    before: TraceContext
    place: RecordPlace
    messages: int
    begun_ns: int


class SubscriberTracing:
    """Of one subscription; `to` is its own name. `read` and `delivered` may be called from two threads.

    What is read and never delivered is as many results as a subscription holds at most.
    """

    def __init__(
        self, report: Report, sink: str, to: str, *, clock_ns: Callable[[], int] = time.time_ns
    ) -> None:
        self._report = report
        self._sink = sink
        self._to = to
        self._clock_ns = clock_ns
        # By partition and the offset behind the record.
        self._waiting: dict[tuple[int, int], _Waiting] = {}

    def read(self, traceparent: bytes, place: RecordPlace, messages: int) -> None:
        """A result of a sampled frame is about to be sent."""
        if (before := TraceContext.parse(traceparent)) is not None:
            waiting = _Waiting(before, place, messages, self._clock_ns())
            self._waiting[place.partition, place.offset + 1] = waiting

    def delivered(self, partition: int, offset: int) -> None:
        """GRPC has taken the response behind which the partition stands at `offset`."""
        found = self._waiting.pop((partition, offset), None)
        if found is not None:
            self._report(
                deliver_span(
                    found.before,
                    found.place,
                    self._sink,
                    self._to,
                    messages=found.messages,
                    begun_ns=found.begun_ns,
                    ended_ns=self._clock_ns(),
                )
            )


def each_of(*listeners: Callable[[Sequence[SinkBatch[Any]], float], None]) -> Callable[..., None]:
    """One listener to deliveries that calls all of these."""

    def call(batches: Sequence[SinkBatch[Any]], read_before_s: float) -> None:
        for each in listeners:
            each(batches, read_before_s)

    return call
