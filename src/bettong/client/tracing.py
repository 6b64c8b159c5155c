"""Spans of a client: of each sampled frame, from the call that sends it to its receipt. See `bettong.traces`."""

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from typing import NamedTuple

from bettong.closing import Closing
from bettong.config.reading import read_client
from bettong.edges.trace_export import ReportingService, TraceExport, require_exporter
from bettong.identifiers import Origin, SequenceNumber
from bettong.logs import of_library
from bettong.traces import FrameSampling, Report, send_span


class _Begun(NamedTuple):
    sequence: SequenceNumber
    trace_id: bytes
    messages: int
    begun_ns: int


class StreamTracing(Closing):
    """Traces frames of a stream. The thread that sends calls `begin`, the one that reads receipts `acknowledged`."""

    def __init__(
        self,
        origin: Origin,
        sampling: FrameSampling,
        report: Report,
        *,
        export: TraceExport | None = None,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        """`export`: opened here, and closed with this object."""
        self.sampling = sampling
        self._origin = origin
        self._report = report
        self._export = export
        self._resources = ExitStack()
        if export is not None:
            self._resources.enter_context(export)
        self._clock_ns = clock_ns
        self._lock = threading.Lock()
        # Spans of frames without a receipt, in their order: credits bound their number.
        self._begun: deque[_Begun] = deque()

    @classmethod
    def from_environment(cls, origin: Origin, instance: str) -> "StreamTracing | None":
        """As BETTONG_CLIENT_TRACE_* configure it; None without an endpoint. Raises SettingsError."""
        settings = read_client()
        if settings.trace_endpoint is None:
            return None
        require_exporter(settings.trace_endpoint, "BETTONG_CLIENT_TRACE_ENDPOINT")
        export = TraceExport(
            settings.trace_endpoint, ReportingService("client", instance), of_library(__name__)
        )
        return cls(origin, FrameSampling(settings.trace_ratio), export.report, export=export)

    def begin(self, sequence: int, sent_ns: int, messages: int) -> None:
        """Starts the span of a frame that is about to be sent, if that is sampled."""
        number = SequenceNumber(sequence)
        trace_id = self.sampling.trace_id(self._origin, number, sent_ns)
        if trace_id is not None:
            with self._lock:
                self._begun.append(_Begun(number, trace_id, messages, self._clock_ns()))

    def withdraw(self, sequence: int) -> None:
        """Drops the span that was started last: its frame is not sent after all."""
        with self._lock:
            if self._begun and self._begun[-1].sequence == sequence:
                self._begun.pop()

    def acknowledged(self, sequence: int) -> None:
        """Ends and reports the spans of all frames up to that number, which are durable now."""
        ended: list[_Begun] = []
        with self._lock:
            while self._begun and self._begun[0].sequence <= sequence:
                ended.append(self._begun.popleft())
        for each in ended:
            self._report(
                send_span(
                    each.trace_id,
                    self._origin,
                    each.sequence,
                    messages=each.messages,
                    begun_ns=each.begun_ns,
                    ended_ns=self._clock_ns(),
                )
            )

    def close(self) -> None:
        """Exports the remaining spans, for some seconds at most."""
        self._resources.close()

    def abandon(self) -> None:
        """Closes without waiting: spans that are not exported yet may be lost."""
        if self._export is not None:
            self._export.abandon()
        self.close()
