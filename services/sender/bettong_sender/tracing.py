"""Spans of a sender: of each sampled frame that it receives, and of the frame's records. See `bettong.traces`.

event loop     notes when a frame arrives
splitters      begin its span once it is parsed, and append its records
log's thread   ends each record's span when the log answers; the last answer ends the frame's span
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from bettong.errors import LogError
from bettong.identifiers import Origin, SequenceNumber, TopicPartition
from bettong.traces import (
    FrameSampling,
    RecordPosition,
    Report,
    accept_context,
    accept_span,
    append_context,
    append_span,
)
from bettong_sender.answers import Log

Answer = Callable[[int | LogError], None]


@dataclass(frozen=True, slots=True)
class SenderTracing:
    """Which frames a sender traces, and where it reports their spans."""

    sampling: FrameSampling
    report: Report
    clock_ns: Callable[[], int] = time.time_ns

    def trace_frame(
        self, origin: Origin, sequence: SequenceNumber, sent_ns: int, client: FrameSampling, begun_ns: int
    ) -> "TracedFrame | None":
        """Traces a frame that arrived at `begun_ns`; None if it is not sampled. `client`: the client's own sampling."""
        trace_id = self.sampling.trace_id(origin, sequence, sent_ns)
        if trace_id is None:
            return None
        client_traces = client.trace_id(origin, sequence, sent_ns) is not None
        return TracedFrame(self, origin, sequence, trace_id, client_traces=client_traces, begun_ns=begun_ns)


class TracedFrame:
    """One sampled frame on its way to the log. Appended by one thread, answered by another."""

    def __init__(
        self,
        tracing: SenderTracing,
        origin: Origin,
        sequence: SequenceNumber,
        trace_id: bytes,
        *,
        client_traces: bool,
        begun_ns: int,
    ) -> None:
        self._tracing = tracing
        self._accept_context = accept_context(trace_id)
        self._accept_span = partial(
            accept_span, trace_id, origin, sequence, client_traces=client_traces, begun_ns=begun_ns
        )
        self._lock = threading.Lock()
        self._unanswered = 1  # the frame itself, until all of its records are appended
        self._messages = 0
        self._failed = ""

    def append(self, log: Log, to: TopicPartition, value: bytes, on_done: Answer) -> None:
        """Appends one of its records, with a header that names the record's span. Raises LogError, as `Log.append`."""
        context = append_context(self._accept_context, to)
        begun_ns = self._tracing.clock_ns()
        with self._lock:
            self._unanswered += 1
        try:
            log.append(
                to, value, partial(self._end_append, to, on_done, begun_ns), traceparent=context.traceparent
            )
        except LogError as error:
            self._report_append(to, begun_ns, error)
            raise

    def finish(self, messages: int, failed: str = "") -> None:
        """Notes that no more records are appended; the span ends with the last answer. `failed`: why not all were."""
        self._messages = messages
        self._count_answer(failed)

    def _end_append(self, to: TopicPartition, on_done: Answer, begun_ns: int, answer: int | LogError) -> None:
        on_done(answer)
        self._report_append(to, begun_ns, answer)

    def _report_append(self, to: TopicPartition, begun_ns: int, answer: int | LogError) -> None:
        offset, failed = (-1, str(answer)) if isinstance(answer, LogError) else (answer, "")
        self._tracing.report(
            append_span(
                self._accept_context,
                RecordPosition(*to, offset),
                begun_ns=begun_ns,
                ended_ns=self._tracing.clock_ns(),
                failed=failed,
            )
        )
        self._count_answer(failed)

    def _count_answer(self, failed: str) -> None:
        with self._lock:
            self._failed = self._failed or failed
            self._unanswered -= 1
            if self._unanswered:
                return
        ended_ns = self._tracing.clock_ns()
        self._tracing.report(
            self._accept_span(messages=self._messages, ended_ns=ended_ns, failed=self._failed)
        )
