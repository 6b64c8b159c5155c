"""Exports spans to an OpenTelemetry collector, by OTLP over gRPC, without disturbing the service.

    report ─> queue, bounded ─> thread ─> collector
              full: dropped, counted       unavailable: dropped, counted; logged once, and when it is back
                                           exporter cannot be created: the same for good, logged once

Reporting a span never blocks or fails. The thread imports OpenTelemetry's packages.
"""

import logging
import os
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from types import TracebackType
from typing import TYPE_CHECKING

from bettong import metrics
from bettong.config.service import ServiceSettings
from bettong.errors import SettingsError
from bettong.logs import Logger
from bettong.threads import BlockThread
from bettong.traces import TraceSpan

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import SpanContext

# Some 2 MB. At a hundred spans a second, a collector may stall for 40 s before spans are dropped.
QUEUE_SPANS_MAX = 4096
_BATCH_SPANS_MAX = 512
# How long a span waits for others: a request with one span costs the collector as much as one with hundreds.
_WAIT_S = 1.0
# One request, with the exporter's own retries.
_EXPORT_S_MAX = 5.0
# How long a stopping service waits for its last spans.
_CLOSE_S_MAX = 2.0
# OpenTelemetry's log lines from this thread are suppressed.
_THREAD = "bettong-traces"
_EXPORTER = "opentelemetry.exporter.otlp.proto.grpc"

# Must be set before gRPC is imported: its fork handlers, during an export, kill one fork in some hundreds, and a worker
# processes suspect records in a fork. A fork makes no calls.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")


@dataclass(frozen=True, slots=True)
class ReportingService:
    """The service that reports spans: `service` is its OpenTelemetry name; `application` may be empty."""

    service: str
    instance: str
    application: str = ""


def require_exporter(endpoint: str | None, setting: str) -> None:
    """Raises SettingsError if there is an endpoint but OpenTelemetry's packages are not installed."""
    if endpoint is None:
        return
    try:
        found = find_spec(_EXPORTER) is not None
    except ModuleNotFoundError:
        found = False
    if not found:
        raise SettingsError(
            f"{setting}: OpenTelemetry is not installed; pip install 'bettong[traces]', or leave it out"
        )


@contextmanager
def exporting(
    settings: ServiceSettings, service: str, application: str, log: Logger, *, instance: str = ""
) -> "Iterator[TraceExport | None]":
    """Exports a service's spans while the block lasts; yields None if traces are off.

    Enter it in the process that reports, because its thread does not survive a fork. `instance`: the process, if the
    service has several. Raises SettingsError.
    """
    if settings.trace_endpoint is None or not settings.measures:
        yield None
        return
    require_exporter(settings.trace_endpoint, "BETTONG_TRACE_ENDPOINT")
    reporter = ReportingService(service, instance or settings.instance, application)
    with TraceExport(settings.trace_endpoint, reporter, log) as export:
        yield export


class TraceExport(BlockThread):
    """Exports spans inside its `with` block, whose end waits for the last ones, at most `_CLOSE_S_MAX`.

    `exported`, `dropped`: numbers of spans so far.
    """

    def __init__(
        self,
        endpoint: str,
        reporter: ReportingService,
        log: Logger,
        *,
        queue_spans_max: int = QUEUE_SPANS_MAX,
    ) -> None:
        """`endpoint`: http://host:port, https:// for TLS."""
        super().__init__(_THREAD, close_s_max=_CLOSE_S_MAX)
        self.exported = self.dropped = 0
        self._endpoint = endpoint
        self._reporter = reporter
        self._log = log
        self._queue: deque[TraceSpan] = deque()
        self._queue_spans_max = queue_spans_max
        self._lock = threading.Lock()
        self._full = threading.Event()
        self._is_away = self._is_abandoned = self._is_off = False
        self._pid = os.getpid()

    def report(self, span: TraceSpan) -> None:
        """Queues a span, or drops it; never blocks, never raises. From any thread. Does nothing in a forked process."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            if self._is_off or len(self._queue) >= self._queue_spans_max:
                self.dropped += 1
                return
            self._queue.append(span)
            waiting = len(self._queue)
        if waiting >= _BATCH_SPANS_MAX:
            self._full.set()

    def metrics(self) -> dict[str, str | int | float]:
        """Metrics for the live record. From any thread."""
        return {metrics.DROPPED_SPANS.name: self.dropped}

    def abandon(self) -> None:
        """Makes leaving the block not wait: remaining spans are exported only if the process lives for some seconds."""
        self._is_abandoned = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._full.set()
        # Do not wait for a collector that does not answer.
        if not self._is_away and not self._is_abandoned:
            super().__exit__(kind, error, trace)
            if self._thread.is_alive():
                self._log_change(is_away=True)

    def _run(self) -> None:
        try:
            exporter = SpanExporter(self._endpoint, self._reporter)
        except Exception as error:  # noqa: BLE001 - its own variables can cause any error
            self._turn_off(error)
            return
        try:
            while not self._stopping.is_set():
                self._full.wait(_WAIT_S)
                self._full.clear()
                self._export_waiting(exporter)
            self._export_waiting(exporter)
        finally:
            exporter.close()

    def _export_waiting(self, exporter: "SpanExporter") -> None:
        while batch := self._next():
            fault = {}
            try:
                taken = exporter.export(batch)
            except Exception as error:  # noqa: BLE001 - such as gRPC's, of a header
                taken, fault = False, {"fault": type(error).__name__}  # its text may quote a token
            if taken:
                self.exported += len(batch)
            else:
                with self._lock:
                    self.dropped += len(batch)
            self._log_change(is_away=not taken, **fault)
            if not taken and self._stopping.is_set():
                return

    def _next(self) -> list[TraceSpan]:
        with self._lock:
            return [self._queue.popleft() for _ in range(min(len(self._queue), _BATCH_SPANS_MAX))]

    def _turn_off(self, error: Exception) -> None:
        self._log.warning(
            "traces are off: OpenTelemetry cannot be set up; correct its variables, OTEL_*, and start again",
            fault=str(error),
        )
        with self._lock:
            self._is_off = True
            self.dropped += len(self._queue)
            self._queue.clear()

    def _log_change(self, *, is_away: bool, **fault: str) -> None:
        """Logs when a collector becomes unavailable, and when it is back."""
        if is_away is self._is_away:
            return
        self._is_away = is_away
        if is_away:
            self._log.warning(
                "traces are dropped until a collector takes them: does one listen there, for OTLP over gRPC?",
                endpoint=self._endpoint,
                **fault,
            )
        else:
            self._log.info("traces are exported again", endpoint=self._endpoint, dropped=self.dropped)


class _ExportThreadFilter(logging.Filter):
    """Suppresses OpenTelemetry's log lines of exporting threads: it logs each attempt, while we log an outage once.

    Its loggers keep their level, because in a client's process the user may use OpenTelemetry, too.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """See logging.Filter."""
        return record.threadName != _THREAD


_EXPORT_THREAD_FILTER = _ExportThreadFilter()


def _silence_opentelemetry() -> None:
    """Filters every logger of the loaded modules: a filter applies only to its own logger, and each module has one."""
    for name, logger in list(logging.root.manager.loggerDict.items()):
        if name.startswith("opentelemetry.") and isinstance(logger, logging.Logger):
            logger.addFilter(_EXPORT_THREAD_FILTER)


class SpanExporter:
    """OpenTelemetry's exporter for our spans. For one thread."""

    def __init__(self, endpoint: str, reporter: ReportingService) -> None:
        """Imports OpenTelemetry, which takes a third of a second; connects with the first spans."""
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope

        _silence_opentelemetry()
        insecure = endpoint.startswith("http://")
        self._exporter = OTLPSpanExporter(endpoint=endpoint, insecure=insecure, timeout=_EXPORT_S_MAX)
        self._scope = InstrumentationScope("bettong", version("bettong"))
        self._resource = Resource.create(
            {
                "service.name": f"bettong-{reporter.service}",
                "service.instance.id": reporter.instance,
                "service.version": version("bettong"),
                **({"service.namespace": reporter.application} if reporter.application else {}),
            }
        )

    def export(self, spans: Sequence[TraceSpan]) -> bool:
        """Returns whether a collector accepted the spans. Blocks for at most `_EXPORT_S_MAX`, with retries."""
        from opentelemetry.sdk.trace.export import SpanExportResult

        return self._exporter.export([self._readable(each) for each in spans]) is SpanExportResult.SUCCESS

    def close(self) -> None:
        """Closes the connection."""
        self._exporter.shutdown()

    def _readable(self, span: TraceSpan) -> "ReadableSpan":
        from opentelemetry.sdk.trace import ReadableSpan
        from opentelemetry.trace import SpanKind
        from opentelemetry.trace.status import Status, StatusCode

        trace_id = span.context.trace_id
        return ReadableSpan(
            span.name,
            _sdk_context(trace_id, span.context.span_id),
            _sdk_context(trace_id, span.parent) if span.parent else None,
            self._resource,
            span.attributes,
            kind=SpanKind[span.kind.name],
            status=Status(StatusCode.ERROR, span.failed) if span.failed else Status(),
            start_time=span.begun_ns,
            end_time=span.ended_ns,
            instrumentation_scope=self._scope,
        )


def _sdk_context(trace_id: bytes, span_id: bytes) -> "SpanContext":
    from opentelemetry.trace import SpanContext, TraceFlags

    flags = TraceFlags(TraceFlags.SAMPLED)
    return SpanContext(int.from_bytes(trace_id), int.from_bytes(span_id), is_remote=True, trace_flags=flags)
