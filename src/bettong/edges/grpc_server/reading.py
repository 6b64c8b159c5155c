"""The interceptors that read the request of calls with a single request.

gRPC reads it before a call runs: before the token is checked, and without a bound on the number, size and duration of
requests. So `OneRequest`, the innermost interceptor, turns such a method into one with streaming requests, which gRPC
runs at once, and `Reading`, the outermost, reads the request when the guard between them has checked the token.

A request's size is limited by its method, and nothing here references it while its call lasts: that memory would be
outside every bound.

Bytes that are no request end a call with INVALID_ARGUMENT. gRPC itself would end it with UNKNOWN, without a reason, and
with a traceback in the service's log.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Never, NoReturn, cast

import grpc
from google.protobuf.message import DecodeError

from bettong.edges.grpc_server.connections import close_connection
from bettong.edges.grpc_server.pending import REQUESTS_MAX, REQUESTS_PER_CONNECTION_MAX, PendingRequests
from bettong.edges.grpc_server.receiving import Receiving
from bettong.edges.grpc_server.wrapper import Context, Handler, Wrapper, behaviour_of, handler_like
from bettong.logs import Logger

# A request arrives in one piece, or takes about as long as 4 MB at 4 Mbit/s. The wait is split into short parts, so
# that a request which arrived while this process was suspended is seen in the next part.
REQUEST_S_MAX = 10
_PART_S = 1.0
# Default limit for methods: their requests hold the name of a service, or nothing.
REQUEST_BYTES_MAX = 4096


class Reading(Wrapper):
    """Reads and parses the request of a call, within bounds. Of streaming requests it keeps none in memory."""

    def __init__(self, receiving: Receiving, log: Logger, request_bytes_max: Mapping[str, int]) -> None:
        """`request_bytes_max`: limits by the full name of a method, other than REQUEST_BYTES_MAX."""
        self._receiving = receiving
        self._bytes_max = request_bytes_max
        self._pending = PendingRequests()
        self._log = log

    def wrapped(self, handler: Handler, method: str) -> Handler:
        """See Wrapper."""
        parse, behaviour = handler.request_deserializer, behaviour_of(handler)
        if not isinstance(parse, _ParseOne):
            return _without_request_iterator(handler) if handler.request_streaming else handler
        log = self._log.bind(method=method)
        bytes_max = self._bytes_max.get(method, REQUEST_BYTES_MAX)

        async def call(requests: AsyncIterator[bytes], context: Context) -> Any:
            read = self._read(requests, parse, bytes_max, context, log)
            async with contextlib.aclosing(read):
                return await behaviour(read, context)

        return handler_like(handler, call, parse=None)

    async def _read(
        self,
        requests: AsyncIterator[bytes],
        parse: Callable[[bytes], Any],
        bytes_max: int,
        context: Context,
        log: Logger,
    ) -> AsyncGenerator[Any, None]:
        """Yields the complete request. Keeps no reference, because this generator lives as long as the call."""
        peer = context.peer()
        if self._pending.is_full_for(peer):
            text = (
                f"{REQUESTS_PER_CONNECTION_MAX} requests of this connection, or {REQUESTS_MAX} of all, are"
                " incomplete; send each request at once, and call again"
            )
            await _refuse(context, grpc.StatusCode.RESOURCE_EXHAUSTED, text, log)
        parsed = _parse(await self._read_bytes(requests, peer, log), parse, bytes_max)
        if isinstance(parsed, _Refused):
            await _refuse(context, parsed.code, parsed.text, log)
        yield parsed.pop()

    async def _read_bytes(self, requests: AsyncIterator[bytes], peer: str, log: Logger) -> bytes | None:
        """The bytes of the request; None if none came. When it is not complete in time, closes the connection."""
        reading = asyncio.ensure_future(_first(requests))
        self._receiving.opened(peer)
        try:
            with self._pending.pending(peer):
                if (other := self._pending.peer_to_close()) is not None:
                    log.warning("connection closed: too many incomplete requests", peer=other)
                    await asyncio.to_thread(close_connection, other)
                for _ in range(int(REQUEST_S_MAX / _PART_S)):
                    if (await asyncio.wait((reading,), timeout=_PART_S))[0]:
                        data = reading.result()
                        self._receiving.delivered(peer, len(data or b""))
                        return data
        finally:
            self._receiving.closed(peer)
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        log.warning("connection closed: a request was not complete in time", peer=peer, seconds=REQUEST_S_MAX)
        await asyncio.to_thread(close_connection, peer)
        return None


class OneRequest(Wrapper):
    """Serves a method with one request as a method with streaming requests, of which it reads the first."""

    def wrapped(self, handler: Handler, method: str) -> Handler:
        """See Wrapper."""
        del method
        if handler.request_streaming:
            return handler
        behaviour = behaviour_of(handler)

        async def call(requests: AsyncIterator[Any], context: Context) -> Any:
            return await behaviour(await anext(requests), context)

        return handler_like(handler, call, _ParseOne(handler.request_deserializer), request_streaming=True)


@dataclass(frozen=True, slots=True)
class _ParseOne:
    """The parser that `OneRequest` leaves for `Reading`, which recognises methods with one request by it."""

    parse: Callable[[bytes], Any] | None

    def __call__(self, data: bytes) -> Any:
        return data if self.parse is None else self.parse(data)


@dataclass(frozen=True, slots=True)
class _Refused:
    code: grpc.StatusCode
    text: str


def _parse(data: bytes | None, parse: Callable[[bytes], Any], bytes_max: int) -> list[Any] | _Refused:
    """The request in a list, so that the caller can drop the reference; or why the call is refused."""
    invalid = grpc.StatusCode.INVALID_ARGUMENT
    if data is None:
        text = f"the call ended, or took longer than {REQUEST_S_MAX} s, before its request was complete"
        return _Refused(invalid, text)
    if len(data) > bytes_max:
        text = f"a request of {len(data)} bytes; this method takes at most {bytes_max}, send a shorter one"
        return _Refused(grpc.StatusCode.RESOURCE_EXHAUSTED, text)
    try:
        return [parse(data)]
    except DecodeError as error:
        text = f"{len(data)} bytes that are no request of this method: {error}; see protos/bettong/v1"
        return _Refused(invalid, text)


def _without_request_iterator(handler: Handler) -> Handler:
    """The same handler, without gRPC's own request iterator, which keeps each request until the next one arrives."""
    behaviour = behaviour_of(handler)

    async def requests(context: Context) -> AsyncGenerator[Any, None]:
        while (given := [await context.read()])[0] is not grpc.aio.EOF:
            yield given.pop()

    async def call(_: AsyncIterator[Any], context: Context) -> Any:
        async with contextlib.aclosing(requests(context)) as each:
            return await behaviour(each, context)

    return handler_like(handler, call, handler.request_deserializer)


async def _first(requests: AsyncIterator[bytes]) -> bytes | None:
    # Closes gRPC's iterator, which would keep the message until the next garbage collection.
    messages = cast("AsyncGenerator[bytes, None]", aiter(requests))
    async with contextlib.aclosing(messages):
        return await anext(messages, None)


async def _refuse(context: Context, code: grpc.StatusCode, text: str, log: Logger) -> NoReturn:
    log.info("call refused", peer=context.peer(), status=code.name, reason=text)
    never: Never = await context.abort(code, text)
    raise AssertionError(never)
