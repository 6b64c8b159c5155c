"""Complete requests: their size is limited by method, and no call keeps them in memory."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
import structlog
from grpc_health.v1 import health_pb2, health_pb2_grpc

from bettong.client import Credentials
from bettong.config.access import Read
from bettong.config.reading import read
from bettong.config.receiver import ReceiverSettings
from tests.servers.grpc_echo import (
    ANSWER_S_MAX,
    REQUEST_BYTES_MAX,
    TOKEN,
    TOKENS,
    Call,
    refused,
    run,
    secured,
    served,
    subscription,
)

METHODS = {
    "/bettong.v1.SubscribeService/Subscribe": 10_000,
    "/bettong.v1.IngestService/ListSources": 4096,
    "/grpc.health.v1.Health/Check": 4096,
    "/grpc.health.v1.Health/Watch": 4096,
}
LASTING = "/test.Lasting/Wait"


def of_bytes(method: str, size: int) -> Call:
    """A call whose request has a name of this many bytes."""
    request = health_pb2.HealthCheckRequest(service="x" * (size - 3)).SerializeToString()
    assert len(request) == size

    def call(address: str, credentials: Credentials) -> object:
        with credentials.channel(address) as connected:
            channel: Any = connected
            metadata = credentials.metadata(address)
            return next(channel.unary_stream(method)(request, metadata=metadata, timeout=ANSWER_S_MAX))

    return call


@pytest.mark.parametrize("method", METHODS)
def test_a_request_that_is_larger_than_its_method_needs_is_refused_with_the_bound(
    method: str, tmp_path: Path
) -> None:
    (tokens := tmp_path / "tokens.toml").write_text(TOKENS)
    size = METHODS[method] + 1

    async def scene() -> None:
        async with served({"tokens": str(tokens)}) as address:
            code, text = await refused(of_bytes(method, size), address, Credentials(token=TOKEN))
            assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert f"a request of {size} bytes; this method takes at most {size - 1}" in text

    run(scene())


def test_a_request_of_the_maximum_size_is_accepted() -> None:
    async def scene() -> None:
        async with served({}) as address:
            call = subscription("x" * (REQUEST_BYTES_MAX["/bettong.v1.SubscribeService/Subscribe"] - 3))
            assert await asyncio.to_thread(call, address, Credentials())

    run(scene())


def test_health_cannot_be_watched_so_strangers_occupy_no_calls() -> None:
    def watch(address: str, credentials: Credentials) -> object:
        with credentials.channel(address) as channel:
            stub: Any = health_pb2_grpc.HealthStub(channel)
            return next(stub.Watch(health_pb2.HealthCheckRequest(service="unknown"), timeout=ANSWER_S_MAX))

    async def scene() -> None:
        async with served({}) as address:
            code, text = await refused(watch, address, Credentials())
            assert code is grpc.StatusCode.UNIMPLEMENTED
            assert "call Check" in text

    run(scene())


@pytest.mark.parametrize("guarded", [False, True])
@pytest.mark.parametrize("streaming", [False, True])
def test_a_long_call_does_not_keep_its_request_in_memory(
    guarded: bool,  # noqa: FBT001 - a parameter of pytest
    streaming: bool,  # noqa: FBT001
    tmp_path: Path,
) -> None:
    (tokens := tmp_path / "tokens.toml").write_text(TOKENS)
    settings = {"application": "x.py"} | ({"tokens": str(tokens)} if guarded else {})
    seen: list[bytes] = []
    nobodys = [bytes(1000)]

    def parsed(data: bytes) -> bytes:
        seen.append(data)
        return data

    async def wait(request: bytes, context: Any) -> None:
        del request
        await context.write(b"begun")
        await asyncio.Event().wait()

    async def converse(requests: AsyncIterator[bytes], context: Any) -> None:
        async for request in requests:
            del request
            await context.write(b"begun")

    async def scene() -> None:
        permissions = {LASTING: lambda _: Read("rejected")}
        security = secured(read(ReceiverSettings, settings), permissions, structlog.get_logger())
        server = grpc.aio.server(interceptors=security.interceptors)
        one: Any = grpc.unary_stream_rpc_method_handler(wait, request_deserializer=parsed)
        several: Any = grpc.stream_stream_rpc_method_handler(converse, request_deserializer=parsed)
        method = several if streaming else one
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("test.Lasting", {"Wait": method}),)
        )
        address = f"127.0.0.1:{security.listen(server, '127.0.0.1:0')}"
        await server.start()
        try:
            async with grpc.aio.insecure_channel(address) as channel:
                metadata = (("authorization", f"Bearer {TOKEN}"),) if guarded else ()
                call: Any = channel.stream_stream(LASTING)(metadata=metadata, timeout=ANSWER_S_MAX)
                await call.write(bytes(4000))
                assert await call.read() == b"begun"
                assert sys.getrefcount(seen[0]) == sys.getrefcount(nobodys[0])
                call.cancel()
        finally:
            await server.stop(None)

    run(scene())
