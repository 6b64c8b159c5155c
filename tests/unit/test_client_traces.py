"""Traces of a client: each frame that was sent has one span, and a client that is abandoned waits for no collector."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager
from typing import Any

import grpc
import pyarrow as pa
import pytest

from bettong.client.sender import Sender
from bettong.errors import ClientError
from bettong.local.addresses import LOOPBACK
from bettong.v1.ingest_pb2 import IngestResponse
from bettong.v1.ingest_pb2_grpc import IngestServiceServicer, add_IngestServiceServicer_to_server
from tests.servers.collector import collecting


class Grudging(IngestServiceServicer):
    """A sender that grants one credit, and another one with each receipt, which it gives when it may."""

    def __init__(self) -> None:
        self.may_answer = threading.Event()

    def ListSources(self, request: Any, context: Any) -> Any:  # noqa: N802
        raise NotImplementedError

    def Ingest(self, request_iterator: Any, context: Any) -> Iterator[IngestResponse]:  # noqa: N802
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
def serving() -> Iterator[tuple[Grudging, str]]:
    service, server = Grudging(), grpc.server(futures.ThreadPoolExecutor(2))
    add_IngestServiceServicer_to_server(service, server)
    address = f"{LOOPBACK}:{server.add_insecure_port(f'{LOOPBACK}:0')}"
    server.start()
    try:
        yield service, address
    finally:
        service.may_answer.set()
        server.stop(0).wait()


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Every frame is."""
    monkeypatch.setenv("BETTONG_CLIENT_TRACE_RATIO", "1")
    return monkeypatch


def test_a_frame_that_waited_for_a_credit_in_vain_and_is_sent_again_has_one_span(
    traced: pytest.MonkeyPatch,
) -> None:
    with collecting() as (collector, endpoint), serving() as (service, address):
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
    assert [each.attributes["bettong.sequence"] for each in collector.spans] == [1, 2, 9]
