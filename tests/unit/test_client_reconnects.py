"""A client whose service was away finds it soon after it is back."""

from __future__ import annotations

import statistics
import time
from concurrent import futures

import grpc
import pytest

from bettong.client.credentials import Credentials
from bettong.local.addresses import LOOPBACK, free_ports
from tests.waiting import bound_s, eventually

# After so long, gRPC's own back-off, which doubles from one second, waits two.
AWAY_S = 3.0
BACK_S_MAX = 1.0


def serving(address: str) -> grpc.Server:
    echo: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(
        lambda request, _: request
    )
    server = grpc.server(futures.ThreadPoolExecutor(1))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("echo", {"Echo": echo}),))
    server.add_insecure_port(address)
    server.start()
    return server


def answers(call: grpc.UnaryUnaryMultiCallable[bytes, bytes]) -> bool:
    try:
        return call(b"x") == b"x"
    except grpc.RpcError:
        return False


def back_after_s(address: str) -> float:
    """Seconds from the restart of the service to its first answer."""
    server = serving(address)
    with Credentials().channel(address) as channel:
        call: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary("/echo/Echo")
        eventually(lambda: answers(call))
        server.stop(0).wait()
        away_s = time.monotonic()
        eventually(lambda: not answers(call) and time.monotonic() - away_s > AWAY_S)
        server = serving(address)
        back_s = time.monotonic()
        eventually(lambda: answers(call))
        server.stop(0)
        return time.monotonic() - back_s


@pytest.mark.timely
def test_a_client_finds_its_service_within_a_second_of_its_return() -> None:
    address = f"{LOOPBACK}:{free_ports(1)[0]}"
    assert statistics.median(back_after_s(address) for _ in range(3)) < bound_s(BACK_S_MAX)
