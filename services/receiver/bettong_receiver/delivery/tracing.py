"""Spans of deliveries: of each result of a sampled frame, from reading it until a destination has it.

See `bettong.traces`; `bettong_receiver.tracing` has those of subscribers.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bettong.traces import RecordPosition, Report, TraceContext, deliver_span
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
                        RecordPosition(self._topics[sink], partition, each.offset),
                        sink,
                        self._to,
                        messages=len(each.messages),
                        begun_ns=ended_ns - round(read_before_s * 1e9),
                        ended_ns=ended_ns,
                    )
                )


def each_of(*listeners: Callable[[Sequence[SinkBatch[Any]], float], None]) -> Callable[..., None]:
    """One listener to deliveries that calls all of these."""

    def call(batches: Sequence[SinkBatch[Any]], read_before_s: float) -> None:
        for each in listeners:
            each(batches, read_before_s)

    return call
