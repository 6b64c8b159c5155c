"""A small server with a ServerSecurity, and calls to it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
import structlog
from grpc_health.v1 import health_pb2, health_pb2_grpc

from bettong.client import Credentials
from bettong.config.access import ListSources, Read, Write, digest
from bettong.config.reading import read
from bettong.config.receiver import ReceiverSettings
from bettong.config.service import ServingSettings
from bettong.edges.grpc_server import Bound, Permissions, Receiving, ServerSecurity
from bettong.edges.serving import Serving
from bettong.logs import Logger
from bettong.v1 import subscribe_pb2
from bettong.v1.ingest_pb2 import (
    Hello,
    IngestRequest,
    IngestResponse,
    ListSourcesRequest,
    ListSourcesResponse,
)
from bettong.v1.ingest_pb2_grpc import (
    IngestServiceServicer,
    IngestServiceStub,
    add_IngestServiceServicer_to_server,
)
from bettong.v1.subscribe_pb2_grpc import (
    SubscribeServiceServicer,
    SubscribeServiceStub,
    add_SubscribeServiceServicer_to_server,
)

PERMISSIONS: Permissions = {
    "/bettong.v1.IngestService/Ingest": lambda first: Write(first.hello.source, first.hello.stream),
    "/bettong.v1.IngestService/ListSources": lambda _: ListSources(),
    "/bettong.v1.SubscribeService/Subscribe": lambda request: Read(request.sink),
}
TOKEN = "the-token-of-feed"  # noqa: S105 - of this test
TOKENS = f"""
[feed]
sha256 = "{digest(TOKEN)}"
write = ["orders/feed-*"]
read = ["rejected"]
"""
ANSWER_S_MAX = 10.0
REQUEST_BYTES_MAX = {"/bettong.v1.SubscribeService/Subscribe": 10_000}


class Echo(IngestServiceServicer, SubscribeServiceServicer):
    """Answers each request of a session; its subscriptions never end."""

    async def Ingest(self, request_iterator: Any, context: Any) -> None:  # type: ignore[override]  # noqa: N802
        async for request in request_iterator:
            response = IngestResponse()
            response.receipt.acknowledged = request.frame.sequence
            await context.write(response)

    async def ListSources(self, *_: Any) -> ListSourcesResponse:  # noqa: N802
        return ListSourcesResponse()

    async def Subscribe(self, request: Any, context: Any) -> None:  # type: ignore[override]  # noqa: N802
        await context.write(subscribe_pb2.SubscribeResponse(messages=[request.sink.encode()]))
        await asyncio.Event().wait()


def secured(settings: ServingSettings, permissions: Permissions, log: Logger) -> ServerSecurity:
    """With room for all that a test sends."""
    bound = Bound(1 << 30, "of this test")
    receiving = Receiving(of_all=bound, of_connection=bound, message_bytes_max=1 << 22)
    return ServerSecurity(settings, permissions, receiving, log, REQUEST_BYTES_MAX)


@asynccontextmanager
async def served(settings: dict[str, Any], permissions: Permissions = PERMISSIONS) -> AsyncIterator[str]:
    """The address of a server with the ServerSecurity of these settings."""
    log: Logger = structlog.get_logger()
    security = secured(read(ReceiverSettings, {"application": "x.py", **settings}), permissions, log)
    server = grpc.aio.server(interceptors=security.interceptors)
    add_IngestServiceServicer_to_server(Echo(), server)
    add_SubscribeServiceServicer_to_server(Echo(), server)
    health_pb2_grpc.add_HealthServicer_to_server(Serving("bettong.v1.IngestService").servicer, server)
    port = security.listen(server, "127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


def run(scene: Coroutine[Any, Any, None]) -> None:
    """Runs a test's scene."""
    asyncio.run(asyncio.wait_for(scene, 30))


Call = Callable[[str, Credentials], object]


def healthy(address: str, credentials: Credentials) -> object:
    with credentials.channel(address) as channel:
        request = health_pb2.HealthCheckRequest()
        stub: Any = health_pb2_grpc.HealthStub(channel)
        return stub.Check(request, timeout=ANSWER_S_MAX)


def sources(address: str, credentials: Credentials) -> object:
    with credentials.channel(address) as channel:
        stub, metadata = IngestServiceStub(channel), credentials.metadata(address)
        return stub.ListSources(ListSourcesRequest(), metadata=metadata, timeout=ANSWER_S_MAX)


def session(*requests: IngestRequest) -> Call:
    """Sends requests, and returns how many answers came."""

    def call(address: str, credentials: Credentials) -> object:
        with credentials.channel(address) as channel:
            stub, metadata = IngestServiceStub(channel), credentials.metadata(address)
            return len(list(stub.Ingest(iter(requests), metadata=metadata, timeout=ANSWER_S_MAX)))

    return call


def subscription(sink: str) -> Call:
    """Awaits the first result."""

    def call(address: str, credentials: Credentials) -> object:
        with credentials.channel(address) as channel:
            stub, metadata = SubscribeServiceStub(channel), credentials.metadata(address)
            request = subscribe_pb2.SubscribeRequest(sink=sink)
            return next(stub.Subscribe(request, metadata=metadata, timeout=ANSWER_S_MAX))

    return call


def hello(source: str, stream: str) -> IngestRequest:
    return IngestRequest(hello=Hello(source=source, stream=stream))


def refusal_of(call: Call, address: str, credentials: Credentials) -> tuple[grpc.StatusCode, str]:
    """How a call is refused, which it must be."""
    with pytest.raises(grpc.RpcError) as raised:
        call(address, credentials)
    error: Any = raised.value
    return error.code(), error.details()


async def refused(call: Call, address: str, credentials: Credentials) -> tuple[grpc.StatusCode, str]:
    """The same in a scene."""
    return await asyncio.to_thread(refusal_of, call, address, credentials)
