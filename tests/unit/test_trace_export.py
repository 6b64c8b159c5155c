"""Spans reach a collector that speaks OpenTelemetry's protocol; nothing waits for one that does not answer."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import grpc
import pytest
import structlog
from opentelemetry.proto.trace.v1.trace_pb2 import Span as WireSpan
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from bettong.config.reading import read
from bettong.config.service import ServiceSettings
from bettong.edges import trace_export
from bettong.edges.trace_export import ReportingService, TraceExport, exporting, require_exporter
from bettong.errors import SettingsError
from bettong.loaded_modules import hidden
from bettong.traces import SpanKind, TraceContext, TraceSpan
from tests.servers.closed_port import closed_port
from tests.servers.collector import Collector
from tests.waiting import bound_s, eventually

SILENT = structlog.wrap_logger(structlog.ReturnLogger(), processors=[])
REPORTER = ReportingService("sender", "sender-1", "shop")
T_NS = 1_700_000_000_000_000_000

pytestmark = pytest.mark.usefixtures("exports_end")


def span(index: int = 0, *, parent: bytes = b"", failed: str = "") -> TraceSpan:
    context = TraceContext(bytes(range(16)), index.to_bytes(8))
    about: dict[str, str | int] = {"bettong.origin": "orders/feed", "bettong.sequence": index}
    return TraceSpan("accept orders", SpanKind.SERVER, context, parent, T_NS, T_NS + 5, about, failed)


class Lines:
    """A log that records its lines."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, dict[str, Any]]] = []

    def warning(self, event: str, **more: Any) -> None:
        self.lines.append(("warning", event, more))

    def info(self, event: str, **more: Any) -> None:
        self.lines.append(("info", event, more))


def test_a_collector_gets_all_that_a_span_says(collector: tuple[Collector, str]) -> None:
    taken, endpoint = collector
    with TraceExport(endpoint, REPORTER, SILENT) as export:
        export.report(span(1))
        export.report(span(2, parent=b"12345678", failed="the disk is full"))
    assert export.exported == 2
    root, child = taken.spans
    assert root.resource["service.name"] == "bettong-sender"
    assert root.resource["service.instance.id"] == "sender-1"
    assert root.resource["service.namespace"] == "shop"
    assert root.span.trace_id == bytes(range(16))
    assert root.span.span_id == (1).to_bytes(8)
    assert root.span.parent_span_id == b""
    assert root.span.name == "accept orders"
    assert root.span.kind == WireSpan.SPAN_KIND_SERVER
    assert (root.span.start_time_unix_nano, root.span.end_time_unix_nano) == (T_NS, T_NS + 5)
    assert root.attributes == {"bettong.origin": "orders/feed", "bettong.sequence": 1}
    assert root.span.status.code == Status.STATUS_CODE_UNSET
    assert child.span.parent_span_id == b"12345678"
    assert child.span.status.code == Status.STATUS_CODE_ERROR
    assert child.span.status.message == "the disk is full"


@pytest.mark.parametrize("kind", SpanKind)
def test_each_kind_of_span_is_one_of_opentelemetrys(collector: tuple[Collector, str], kind: SpanKind) -> None:
    taken, endpoint = collector
    with TraceExport(endpoint, REPORTER, SILENT) as export:
        export.report(TraceSpan("x", kind, TraceContext(b"1" * 16, b"2" * 8), b"", T_NS, T_NS))
    assert WireSpan.SpanKind.Name(taken.spans[0].span.kind) == f"SPAN_KIND_{kind.name}"


def test_spans_come_while_the_service_runs_and_many_in_one_request(collector: tuple[Collector, str]) -> None:
    taken, endpoint = collector
    with TraceExport(endpoint, REPORTER, SILENT) as export:
        export.report(span())
        assert taken.wait(lambda: len(taken.spans) == 1)
        for index in range(3000):
            export.report(span(index))
        assert taken.wait(lambda: len(taken.spans) == 3001)
        assert export.dropped == 0


@pytest.mark.timely
def test_without_a_collector_reporting_neither_waits_nor_fails_and_all_is_counted() -> None:
    log = Lines()
    with closed_port() as port:
        with TraceExport(f"http://127.0.0.1:{port}", REPORTER, log, queue_spans_max=10) as export:  # type: ignore[arg-type]
            began_s = time.monotonic()
            for index in range(1000):
                export.report(span(index))
            assert time.monotonic() - began_s < bound_s(0.5)
            assert export.dropped >= 980
            eventually(lambda: log.lines, what="the log says that nobody takes them")
            export.report(span())
            began_s = time.monotonic()
        assert time.monotonic() - began_s < bound_s(1.0), "who stops does not wait for it"
    assert export.exported == 0
    assert [(level, more["endpoint"]) for level, _, more in log.lines] == [
        ("warning", f"http://127.0.0.1:{port}")
    ]


def test_a_stop_before_a_collector_has_answered_is_logged() -> None:
    """A short program, which had no contact with the collector before."""
    log = Lines()
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        hanging.settimeout(30)
        endpoint = f"http://127.0.0.1:{hanging.getsockname()[1]}"
        with TraceExport(endpoint, REPORTER, log) as export:  # type: ignore[arg-type]
            export.report(span())
            connection, _ = hanging.accept()
        connection.close()
    assert [(level, more["endpoint"]) for level, _, more in log.lines] == [("warning", endpoint)]


def test_refused_spans_are_dropped_and_later_ones_exported(
    collector: tuple[Collector, str],
) -> None:
    taken, endpoint = collector
    log = Lines()
    taken.refuse = grpc.StatusCode.INVALID_ARGUMENT
    with TraceExport(endpoint, REPORTER, log) as export:  # type: ignore[arg-type]
        for index in range(3):
            export.report(span(index))
        assert taken.wait(lambda: taken.refused > 0)
        eventually(lambda: export.dropped == 3)
        export.report(span(7))
        eventually(lambda: export.dropped == 4)
        taken.refuse = None
        export.report(span(8))
        assert taken.wait(lambda: len(taken.spans) == 1)
        eventually(lambda: len(log.lines) == 2)
    assert [(level, more.get("dropped")) for level, _, more in log.lines] == [("warning", None), ("info", 4)]
    assert (export.exported, export.dropped) == (1, 4)
    assert export.metrics() == {"dropped_spans": 4}


def test_all_threads_may_report_at_once_and_none_is_lost_uncounted(collector: tuple[Collector, str]) -> None:
    _, endpoint = collector
    with TraceExport(endpoint, REPORTER, SILENT, queue_spans_max=50) as export:

        def report_many() -> None:
            for index in range(500):
                export.report(span(index))

        threads = [threading.Thread(target=report_many) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert export.exported + export.dropped == 2000


# For a new process, because the first import of gRPC fixes its fork handlers. Prints the exit codes of forks.
_FORKS = """
import os, sys
from tests.unit.test_trace_export import REPORTER, SILENT, TraceExport, span
from tests.waiting import eventually

with TraceExport(sys.argv[1], REPORTER, SILENT) as export:
    for index in range(60):
        export.report(span(1))
        export._full.set()  # so that the export runs during the fork
        child = os.fork()
        if child == 0:
            export.report(span(2))
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    export.report(span(3))
    # Leaving waits for 2 s, in which a busy machine may not reach the collector.
    eventually(lambda: export.exported == 61, what="all is exported")
"""


def test_forks_report_nothing_and_live(collector: tuple[Collector, str]) -> None:
    """A worker folds a record that has killed others in a fork first, with all that the worker has."""
    taken, endpoint = collector
    root = Path(__file__).parents[2]
    call = [sys.executable, "-c", "import bettong.edges.trace_export\n" + _FORKS, endpoint]
    done = subprocess.run(call, cwd=root, check=True, capture_output=True, text=True, timeout=60)
    assert (done.stdout.split(), done.stderr) == (["0"] * 60, "")
    assert taken.wait(lambda: len(taken.spans) == 61)
    assert {each.attributes["bettong.sequence"] for each in taken.spans} == {1, 3}


def test_a_failed_setup_of_opentelemetry_is_logged_once_and_all_spans_are_dropped_and_counted(
    monkeypatch: pytest.MonkeyPatch, collector: tuple[Collector, str]
) -> None:
    _, endpoint = collector
    log = Lines()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "zstd")
    with TraceExport(endpoint, REPORTER, log) as export:  # type: ignore[arg-type]
        for index in range(3):
            export.report(span(index))
        eventually(lambda: log.lines, what="the log says why there are no traces")
        eventually(lambda: export.dropped == 3)
        for index in range(3):
            export.report(span(index))
        assert export.dropped == 6, "none waits for an exporter that there is not"
    ((level, text, more),) = log.lines
    assert level == "warning"
    assert text.startswith("traces are off: ")
    assert "OTEL_EXPORTER_OTLP_COMPRESSION" in more["fault"]


def test_a_span_that_cannot_be_sent_drops_only_its_batch(
    collector: tuple[Collector, str],
) -> None:
    """Such as one whose text is no Unicode: what raises in the export does not end it."""
    taken, endpoint = collector
    log = Lines()
    with TraceExport(endpoint, REPORTER, log) as export:  # type: ignore[arg-type]
        export.report(span(1, failed="secret \udcff"))
        eventually(lambda: export.dropped == 1)
        export.report(span(2))
        assert taken.wait(lambda: len(taken.spans) == 1)
        eventually(lambda: len(log.lines) == 2)
    assert (export.exported, export.dropped) == (1, 1)
    assert [level for level, *_ in log.lines] == ["warning", "info"]
    assert log.lines[0][2]["fault"] == "UnicodeEncodeError"
    assert "secret" not in str(log.lines)


def settings(monkeypatch: pytest.MonkeyPatch, **values: str) -> ServiceSettings:
    monkeypatch.setenv("BETTONG_APPLICATION", "app.py")
    for name, value in values.items():
        monkeypatch.setenv(f"BETTONG_{name}", value)
    return read(ServiceSettings)


def test_there_are_no_traces_by_default_nor_where_nothing_is_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = set(threading.enumerate())
    for own in ({}, {"TRACE_ENDPOINT": "http://127.0.0.1:4317", "MEASURES": "off"}):
        with exporting(settings(monkeypatch, **own), "sender", "shop", SILENT) as export:
            assert export is None
    assert not set(threading.enumerate()) - before


def test_an_endpoint_is_all_that_traces_need(
    monkeypatch: pytest.MonkeyPatch, collector: tuple[Collector, str]
) -> None:
    taken, endpoint = collector
    own = settings(monkeypatch, TRACE_ENDPOINT=endpoint, INSTANCE="sender-9")
    assert own.trace_ratio == 0.01
    with exporting(own, "sender", "shop", SILENT) as export:
        assert export is not None
        export.report(span())
    assert taken.spans[0].resource["service.instance.id"] == "sender-9"


def test_traces_without_opentelemetry_are_an_error_that_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trace_export, "_EXPORTER", "opentelemetry.nowhere.grpc")
    with pytest.raises(SettingsError, match=r"BETTONG_TRACE_ENDPOINT.*pip install 'bettong\[traces\]'"):
        require_exporter("http://127.0.0.1:4317", "BETTONG_TRACE_ENDPOINT")
    require_exporter(None, "BETTONG_TRACE_ENDPOINT")


def test_nothing_of_opentelemetry_is_loaded_where_there_are_no_traces() -> None:
    """Nor by what Spark's workers, clients and services load of it."""
    program = (
        "import sys, bettong.client, bettong_sender.service, bettong_receiver.service,"
        " bettong_processor.resident.task, bettong_processor.micro_batch.task;"
        " sys.exit(any(each.split('.')[0] == 'opentelemetry' for each in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=120).returncode == 0


def test_a_package_is_hidden_while_the_block_lasts_and_there_again_behind_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    with hidden("colorsys"), pytest.raises(ImportError):
        import_module("colorsys")
    assert import_module("colorsys").ONE_THIRD
    with hidden("colorsys"):
        assert import_module("colorsys").ONE_THIRD, "what is loaded stays"
