"""Spans of deliveries: for each result of a sampled frame, from reading it until a destination has stored it.

See `bettong.traces`; spans of subscribers are in `bettong_receiver.tracing`.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bettong.traces import RecordPosition, Report, TraceContext, deliver_span
from bettong_receiver.delivery.connector import SinkBatch


class DeliveryTracing:
    """Traces one route. `topics`: the topic of each sink; `to`: the route's name. Use it from one thread."""

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
        """Reports batches that have just been delivered, `read_before_s` after they were read."""
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
    """Combines several delivery listeners into one."""

    def call(batches: Sequence[SinkBatch[Any]], read_before_s: float) -> None:
        for each in listeners:
            each(batches, read_before_s)

    return call
