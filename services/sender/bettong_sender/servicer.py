"""The gRPC service: one client's call, from hello to status. See `protos/bettong/v1/ingest.proto`."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, cast

import grpc
from structlog.stdlib import BoundLogger

from bettong.config.access import ListSources, Write
from bettong.edges.grpc_server import ClientShares, Permissions, Receiving, caller
from bettong.ingest.refusal import Refusal, invalid, unavailable
from bettong.ingest.requests import read_hello
from bettong.ingest.session import SourceRoute
from bettong.schema.json_objects import JsonObjects
from bettong.traces import NO_SAMPLING, RATIO_METADATA, FrameSampling
from bettong.v1.ingest_pb2 import (
    DESCRIPTOR,
    Hello,
    IngestResponse,
    ListSourcesRequest,
    ListSourcesResponse,
    Source,
    Welcome,
)
from bettong_sender.feed import RECEIPTS_WAIT_S, Feed
from bettong_sender.intake import Intake
from bettong_sender.ownership import Lease, Ownership

# A call that does not say hello takes a session's place; this is long for a client that means it.
_HELLO_WAIT_S = 10.0

# Requests come as they are on the wire: see `bettong.ingest.requests`.
_Requests = AsyncIterator[bytes]
_Context = grpc.aio.ServicerContext[Any, IngestResponse]


def _write_permission(first: bytes) -> Write:
    hello = read_hello(first)
    return Write(hello.source, hello.stream)


# What a token must allow. A session that does not begin with a hello is refused for that.
PERMISSIONS: Permissions = {
    "/bettong.v1.IngestService/Ingest": _write_permission,
    "/bettong.v1.IngestService/ListSources": lambda _: ListSources(),
}


def handlers(servicer: "IngestServicer") -> grpc.GenericRpcHandler:
    """What a server needs to serve it: as protoc's, but that the requests of a session are not parsed."""
    return grpc.method_handlers_generic_handler(
        DESCRIPTOR.services_by_name["IngestService"].full_name,
        {
            "Ingest": grpc.stream_stream_rpc_method_handler(
                servicer.Ingest, response_serializer=IngestResponse.SerializeToString
            ),
            "ListSources": grpc.unary_unary_rpc_method_handler(
                servicer.ListSources,
                request_deserializer=ListSourcesRequest.FromString,
                response_serializer=ListSourcesResponse.SerializeToString,
            ),
        },
    )


class IngestServicer:
    """Each call is a feed of the intake. `stopping`: sessions end with UNAVAILABLE, new ones are refused."""

    def __init__(
        self,
        intake: Intake,
        ownership: Ownership,
        shares: ClientShares,
        receiving: Receiving,
        stopping: asyncio.Event,
        logger: BoundLogger,
    ) -> None:
        self._intake = intake
        self._shares = shares
        self._receiving = receiving
        self._ownership = ownership
        self._stopping = stopping
        self._logger = logger

    async def ListSources(  # noqa: N802 - the name in the proto
        self, request: ListSourcesRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> ListSourcesResponse:
        """See the proto."""
        del request, context
        return ListSourcesResponse(sources=[describe(route) for route in self._intake.routes.values()])

    async def Ingest(self, request_iterator: _Requests, context: _Context) -> None:  # noqa: N802
        """See the proto."""
        logger = self._logger.bind(peer=context.peer())
        try:
            client = caller(context)
            with self._shares.share(client):
                requests = self._received(request_iterator, context.peer())
                async with contextlib.aclosing(requests):
                    await self._session(requests, context, client, logger)
        except Refusal as refusal:
            # It is the answer of tasks that its traceback leads to: a circle around the frame that was refused, which
            # would be found by the garbage collector alone, and that looks rarely.
            refusal.__traceback__ = None
            self._intake.status.refused += 1
            logger.info("session refused", status=refusal.code.value, reason=str(refusal))
            await context.abort(
                grpc.StatusCode[refusal.code.value], str(refusal), tuple(refusal.metadata.items())
            )

    async def _received(self, requests: _Requests, peer: str) -> AsyncGenerator[bytes, None]:
        """The requests, each counted when it has come whole."""
        self._receiving.opened(peer)
        # What gRPC iterates with: not closed, it holds the last message until the garbage collector comes, and that
        # comes rarely.
        messages = cast("AsyncGenerator[bytes, None]", aiter(requests))
        try:
            async with contextlib.aclosing(messages):
                async for request in messages:
                    self._receiving.delivered(peer, len(request))
                    given = [request]
                    del request
                    yield given.pop()
        finally:
            self._receiving.closed(peer)

    async def _session(
        self, requests: _Requests, context: _Context, client: str, logger: BoundLogger
    ) -> None:
        hello = await self._hello(requests)
        if self._stopping.is_set():
            raise unavailable("the sender stops; connect again")
        self._check_name(hello)
        feed = self._intake.open(hello, client, _sampling_of(context))
        try:
            async with self._ownership.hold(feed, client=hello.client, peer=context.peer()) as lease:
                await self._intake.guards.refresh()
                credits_ = await feed.open(lease.durable)
                await self._ownership.confirm(lease, feed.opened)
                welcome = Welcome(
                    credits=credits_,
                    frame_bytes_max=feed.route.frame_bytes_max,
                    frame_messages_max=feed.route.frame_messages_max,
                    source=describe(feed.route),
                    acknowledged=lease.durable,
                )
                await context.write(IngestResponse(welcome=welcome))
                logger.info("session opened", origin=feed.origin, acknowledged=welcome.acknowledged)
                await self._converse(feed, lease, requests, context)
                if hello.ephemeral or hello.finite:
                    await feed.end(kept=not hello.ephemeral)
                    lease.ended = hello.ephemeral
                logger.info("session closed", origin=feed.origin)
        finally:
            feed.close()

    def _check_name(self, hello: Hello) -> None:
        """Raises Refusal for the name of a stream that the sender itself feeds."""
        route = self._intake.routes.get(hello.source)
        transport = route.source.from_ if route is not None else None
        if transport is not None and transport.owns(hello.stream):
            raise invalid(
                f"stream {hello.stream!r} of source {hello.source!r} is that of a partition of {transport.title};"
                " choose another name"
            )

    async def _hello(self, requests: _Requests) -> Hello:
        try:
            return read_hello(await asyncio.wait_for(anext(requests), _HELLO_WAIT_S))
        except TimeoutError:
            raise invalid(f"no hello within {_HELLO_WAIT_S:.0f} s; say hello first in a session") from None
        except StopAsyncIteration:
            raise invalid("the session ended before a hello; say hello first in a session") from None

    async def _converse(self, feed: Feed, lease: Lease, requests: _Requests, context: _Context) -> None:
        """Takes frames and writes receipts until the client has finished, a refusal, or the sender's stop."""
        reading = asyncio.create_task(self._read(feed, lease, requests, context.peer()))
        receipts = asyncio.create_task(_write_receipts(feed, context))
        stopping = asyncio.create_task(self._stopping.wait())
        tasks: tuple[asyncio.Task[Any], ...] = (reading, receipts, stopping)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                reading.cancel()
            feed.finish()
            finished = _is_well(reading)
            if finished:
                await asyncio.wait((receipts, stopping), return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait((receipts,), timeout=RECEIPTS_WAIT_S)
            for task in (receipts, reading):
                if task.done() and not task.cancelled():
                    task.result()
            if not (finished and _is_well(receipts)):
                raise unavailable("the sender stops; connect again and resend what has no receipt")
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(self, feed: Feed, lease: Lease, requests: _Requests, peer: str) -> None:
        async for request in requests:
            with self._receiving.waiting(peer, len(request)):
                await feed.await_room(lease)
            await feed.take_request(request, lease)
            del request


def describe(route: SourceRoute) -> Source:
    """A source, as it is described to clients."""
    schema = route.source.schema
    return Source(
        name=route.source.name,
        schema=schema.fingerprint,
        arrow_schema=schema.arrow.serialize().to_pybytes(),
        takes_rows=route.source.decoder is not None,
        takes_json=isinstance(route.source.decoder, JsonObjects),
    )


def _sampling_of(context: _Context) -> FrameSampling:
    """Which frames a client says that it traces."""
    found = [value for name, value in context.invocation_metadata() or () if name == RATIO_METADATA]
    return FrameSampling.of_metadata(str(found[0])) if found else NO_SAMPLING


def _is_well(task: asyncio.Task[None]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is None


async def _write_receipts(feed: Feed, context: _Context) -> None:
    while (receipt := await feed.receipt()) is not None:
        await context.write(IngestResponse(receipt=receipt))
