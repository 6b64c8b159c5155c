"""A client whose stream another client holds waits for the lease of a dead one to expire, but not for a live one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import grpc
import pytest

from bettong.client.courier import Courier
from bettong.client.credentials import Credentials
from bettong.errors import RefusedError
from bettong.v1.ingest_pb2 import Hello, IngestResponse
from bettong.v1.ingest_pb2_grpc import IngestServiceServicer, add_IngestServiceServicer_to_server
from tests.servers.grpc_service import serving
from tests.waiting import eventually

LEASE_S = 0.4


class Holds(IngestServiceServicer):
    """Says at first that another client holds the stream; `answers`: what its lease has left, how long each takes."""

    def __init__(self, answers: list[tuple[float, float]]) -> None:
        self.answers = answers
        self.sessions = 0

    def ListSources(self, request: Any, context: Any) -> Any:  # noqa: N802
        raise NotImplementedError

    def Ingest(self, request_iterator: Any, context: Any) -> Iterator[IngestResponse]:  # noqa: N802
        next(request_iterator)
        self.sessions += 1
        if self.answers:
            left_s, takes_s = self.answers.pop(0)
            said_s = time.monotonic() + takes_s
            eventually(lambda: time.monotonic() >= said_s)
            context.set_trailing_metadata((("bettong-lease-ms", str(round(left_s * 1000))),))
            context.abort(grpc.StatusCode.ALREADY_EXISTS, "held")
        response = IngestResponse()
        response.welcome.credits = 1
        yield response
        for _ in request_iterator:
            pass


def welcomed(service: Holds) -> None:
    """Connects a client; raises RefusedError when it gives up."""
    hello = Hello(source="orders", stream="feed")
    with serving(partial(add_IngestServiceServicer_to_server, service)) as address:
        courier = Courier(address, hello, reconnect_s=10.0, credentials=Credentials())
        try:
            courier.welcome()
        finally:
            courier.abandon()


def test_an_answer_that_takes_longer_than_the_lease_has_left_does_not_say_that_its_holder_is_alive() -> None:
    service = Holds([(LEASE_S, 0), (0.01, 2 * LEASE_S)])
    welcomed(service)
    assert service.sessions == 3


def test_a_lease_that_was_renewed_is_of_a_client_that_is_alive() -> None:
    service = Holds([(LEASE_S, 0)] * 1000)
    began_s = time.monotonic()
    with pytest.raises(RefusedError, match="held"):
        welcomed(service)
    assert time.monotonic() - began_s >= LEASE_S
