"""Spans of a client: of each sampled frame that it sends, from the call to the receipt. See `bettong.traces`."""

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
    """Of one stream. `begin` is for the thread that sends, `acknowledged` for the one that reads receipts."""

    def __init__(
        self,
        origin: Origin,
        sampling: FrameSampling,
        report: Report,
        *,
        export: TraceExport | None = None,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        """`export`: entered here, left with it."""
        self.sampling = sampling
        self._origin = origin
        self._report = report
        self._export = export
        self._resources = ExitStack()
        if export is not None:
            self._resources.enter_context(export)
        self._clock_ns = clock_ns
        self._lock = threading.Lock()
        # Those without a receipt, in their order: credits bound them.
        self._begun: deque[_Begun] = deque()

    @classmethod
    def from_environment(cls, origin: Origin, instance: str) -> "StreamTracing | None":
        """What BETTONG_CLIENT_TRACE_* say; None without an endpoint. Raises SettingsError."""
        settings = read_client()
        if settings.trace_endpoint is None:
            return None
        require_exporter(settings.trace_endpoint, "BETTONG_CLIENT_TRACE_ENDPOINT")
        export = TraceExport(
            settings.trace_endpoint, ReportingService("client", instance), of_library(__name__)
        )
        return cls(origin, FrameSampling(settings.trace_ratio), export.report, export=export)

    def begin(self, sequence: int, sent_ns: int, messages: int) -> None:
        """A frame is about to be sent."""
        number = SequenceNumber(sequence)
        trace_id = self.sampling.trace_id(self._origin, number, sent_ns)
        if trace_id is not None:
            with self._lock:
                self._begun.append(_Begun(number, trace_id, messages, self._clock_ns()))

    def withdraw(self, sequence: int) -> None:
        """The frame that was begun last is not sent after all."""
        with self._lock:
            if self._begun and self._begun[-1].sequence == sequence:
                self._begun.pop()

    def acknowledged(self, sequence: int) -> None:
        """All frames up to that number are durable."""
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
        """Exports what waits, for some seconds at most."""
        self._resources.close()

    def abandon(self) -> None:
        """Waits for nothing: what is not exported yet may be lost."""
        if self._export is not None:
            self._export.abandon()
        self.close()
