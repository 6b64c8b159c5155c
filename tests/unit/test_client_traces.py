"""Traces of a client: each frame that was sent has one span, and a client that is abandoned waits for no collector."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from bettong.client.sender import Sender
from bettong.client.tracing import StreamTracing
from bettong.errors import ClientError
from bettong.identifiers import Origin
from bettong.v1.ingest_pb2 import IngestResponse
from bettong.v1.ingest_pb2_grpc import IngestServiceServicer, add_IngestServiceServicer_to_server
from tests.servers.closed_port import closed_port
from tests.servers.collector import Collector
from tests.servers.grpc_service import serving
from tests.waiting import bound_s, eventually

pytestmark = pytest.mark.usefixtures("exports_end")


class Grudging(IngestServiceServicer):
    """A sender that grants one credit, and another one with each receipt, which it sends when `may_answer` is set."""

    def __init__(self) -> None:
        self.may_answer = threading.Event()

    def ListSources(self, request: Any, context: Any) -> Any:  # noqa: N802
        raise NotImplementedError

    def Ingest(self, request_iterator: Any, context: Any) -> Iterator[IngestResponse]:  # noqa: N802
        del context
        next(request_iterator)
        response = IngestResponse()
        response.welcome.credits = 1
        response.welcome.frame_bytes_max = 1 << 20
        response.welcome.source.name = "orders"
        response.welcome.source.takes_rows = True
        response.welcome.source.arrow_schema = pa.schema([]).serialize().to_pybytes()
        yield response
        for request in request_iterator:
            if not self.may_answer.wait(30):
                return
            response = IngestResponse()
            response.receipt.acknowledged = request.frame.sequence
            response.receipt.credits = 1
            yield response


@contextmanager
def grudging() -> Iterator[tuple[Grudging, str]]:
    service = Grudging()
    with serving(partial(add_IngestServiceServicer_to_server, service)) as address:
        try:
            yield service, address
        finally:
            service.may_answer.set()


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Every frame is."""
    monkeypatch.setenv("BETTONG_CLIENT_TRACE_RATIO", "1")
    return monkeypatch


def test_a_frame_that_waited_for_a_credit_in_vain_and_is_sent_again_has_one_span(
    traced: pytest.MonkeyPatch, collector: tuple[Collector, str]
) -> None:
    taken, endpoint = collector
    with grudging() as (service, address):
        traced.setenv("BETTONG_CLIENT_TRACE_ENDPOINT", endpoint)
        with Sender(address, "orders", credit_wait_s=0.01) as sender:
            sender.send_rows([b"a"])
            for _ in range(5):
                with pytest.raises(ClientError, match="no credit"):
                    sender.send_rows([b"b"])
            with pytest.raises(ClientError, match="no credit"):
                sender.send_rows([b"c"], sequence=7)
            service.may_answer.set()
            sender.flush()
            assert sender.send_rows([b"b"]) == 2
            sender.flush()
            assert sender.send_rows([b"d"], sequence=9) == 9
    assert [each.attributes["bettong.sequence"] for each in taken.spans] == [1, 2, 9]


def test_a_client_reports_once_that_no_collector_takes_its_traces_and_opentelemetry_reports_nothing(
    traced: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with closed_port() as port:
        traced.setenv("BETTONG_CLIENT_TRACE_ENDPOINT", f"http://127.0.0.1:{port}")
        tracing = StreamTracing.from_environment(Origin("orders/feed"), "me")
        assert tracing is not None
        export = tracing._export
        assert export is not None
        with tracing:
            for each in (1, 2):
                tracing.begin(each, sent_ns=each, messages=1)
                tracing.acknowledged(each)
                eventually(lambda: export.dropped == each)  # noqa: B023 - awaited here
    (line,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert line.name == "bettong.client.tracing"
    assert line.getMessage() == (
        "traces are dropped until a collector takes them: does one listen there, for OTLP over gRPC?"
        f" endpoint='http://127.0.0.1:{port}'"
    )
    theirs = logging.getLogger("opentelemetry.exporter.otlp.proto.grpc.exporter")
    theirs.warning("of the user's own spans")
    assert caplog.messages[-1] == "of the user's own spans", "OpenTelemetry is the user's elsewhere"


@pytest.mark.timely
def test_a_client_that_is_abandoned_waits_for_no_collector(traced: pytest.MonkeyPatch) -> None:
    with grudging() as (service, address), socket.create_server(("127.0.0.1", 0)) as hanging:
        service.may_answer.set()
        traced.setenv("BETTONG_CLIENT_TRACE_ENDPOINT", f"http://127.0.0.1:{hanging.getsockname()[1]}")
        sender = Sender(address, "orders")
        sender.send_rows([b"a"])
        sender.flush()
        hanging.settimeout(30)
        with hanging.accept()[0]:  # the export is under way, and never answered
            began_s = time.monotonic()
            sender.abandon()
            sender.abandon()
            assert time.monotonic() - began_s < bound_s(1.0)
