"""Folds a record, and makes the headers of its output: times, and the trace of a sampled frame.

No fold reads these headers, and both schedules write them alike. See `bettong.latency_parts` and `bettong.traces`.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

from bettong.edges.kafka_log import Record
from bettong.latency_parts import stamped
from bettong.traces import RecordPosition, Report, TraceContext, fold_span
from bettong.worker.output.framing import OutputRecord
from bettong.worker.partition import PartitionWorker
from bettong_processor.crashes.guard import Fold


class StampedOutput(NamedTuple):
    """The output of a record, and the headers for each of its records; empty for none."""

    records: list[OutputRecord]
    times: bytes = b""
    traceparent: bytes = b""


class Stamping:
    """One for each process. `measures`: whether records get times. `report`: None if spans are not exported.

    Without it the trace context is passed on unchanged: the next service's span becomes a child of the previous one's.
    """

    def __init__(
        self,
        *,
        measures: bool = True,
        report: Report | None = None,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._measures = measures
        self._report = report
        self._clock_ns = clock_ns

    def fold(self, worker: PartitionWorker, fold: Fold, record: Record) -> StampedOutput:
        """Folds the next record of a worker. Raises the errors of `fold`."""
        if not self._measures:
            return StampedOutput(fold(record.offset, record.value))
        if record.traceparent and self._report is not None:
            return self._fold_traced(worker, fold, record, self._report)
        begun_ns = self._clock_ns()
        records = fold(record.offset, record.value)
        times = stamped(record.times, begun_ns, self._clock_ns()) if records else b""
        return StampedOutput(records, times, record.traceparent)

    def _fold_traced(
        self, worker: PartitionWorker, fold: Fold, record: Record, report: Report
    ) -> StampedOutput:
        before, messages = TraceContext.parse(record.traceparent), worker.counters.messages
        begun_ns = self._clock_ns()
        records = fold(record.offset, record.value)
        ended_ns = self._clock_ns()
        times = stamped(record.times, begun_ns, ended_ns) if records else b""
        if before is None:
            return StampedOutput(records, times)
        span = fold_span(
            before,
            RecordPosition(record.topic, record.partition, record.offset),
            worker.id,
            messages=worker.counters.messages - messages,
            results=len(records),
            begun_ns=begun_ns,
            ended_ns=ended_ns,
        )
        report(span)
        return StampedOutput(records, times, span.context.traceparent)
