"""The interceptors that read the request of calls that take one.

gRPC reads it before a call runs: then nobody has asked for a token, and nothing bounds how many there are, what they
hold and how long they take. So `OneRequest`, the innermost, turns such a method into one whose requests stream, which
gRPC runs at once, and `Reading`, the outermost, reads the one request when the guard between them has seen the token.

A request has as many bytes as its method needs, and nothing here holds it while its call lasts: so much would be held
outside every bound.

Bytes that are no request end a call with INVALID_ARGUMENT. Left to gRPC, they end it with UNKNOWN, which says nothing,
and a traceback in the service's log.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Never, NoReturn, cast

import grpc
from google.protobuf.message import DecodeError

from bettong.edges.grpc_server.connections import hang_up
from bettong.edges.grpc_server.pending import REQUESTS_MAX, REQUESTS_PER_CONNECTION_MAX, PendingRequests
from bettong.edges.grpc_server.receiving import Receiving
from bettong.edges.grpc_server.wrapper import Context, Handler, Wrapper, behaviour_of, handler_like
from bettong.logs import Logger

# A request comes in one piece, or takes as long as 4 MB on a line of 4 Mbit/s. It is waited for in short parts: what
# has come while this process stood still is seen in the next one.
REQUEST_S_MAX = 10
_PART_S = 1.0
# Of methods for which nothing else is said: the name of a service, or nothing at all.
REQUEST_BYTES_MAX = 4096


class Reading(Wrapper):
    """Reads and parses the one request of a call, within bounds. Of a method that takes several, it holds none."""

    def __init__(self, receiving: Receiving, log: Logger, request_bytes_max: Mapping[str, int]) -> None:
        """`request_bytes_max`: by the full name of a method, where its request may have more than REQUEST_BYTES_MAX."""
        self._receiving = receiving
        self._bytes_max = request_bytes_max
        self._pending = PendingRequests()
        self._log = log

    def wrapped(self, handler: Handler, method: str) -> Handler:
        """See Wrapper."""
        parse, behaviour = handler.request_deserializer, behaviour_of(handler)
        if not isinstance(parse, _ParseOne):
            return _keeping_none(handler) if handler.request_streaming else handler
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
        """The request, once it has come whole. This generator stays as long as the call, so it gives it away."""
        peer = context.peer()
        if self._pending.is_full_for(peer):
            text = (
                f"{REQUESTS_PER_CONNECTION_MAX} requests of this connection, or {REQUESTS_MAX} of all, have begun and"
                " not come whole; send each at once, and call again"
            )
            await _refuse(context, grpc.StatusCode.RESOURCE_EXHAUSTED, text, log)
        parsed = _parsed(await self._whole(requests, peer, log), parse, bytes_max)
        if isinstance(parsed, _Refused):
            await _refuse(context, parsed.code, parsed.text, log)
        yield parsed.pop()

    async def _whole(self, requests: AsyncIterator[bytes], peer: str, log: Logger) -> bytes | None:
        """The bytes of the request; None when none came, or not in time: then its connection is closed."""
        reading = asyncio.ensure_future(_first(requests))
        self._receiving.opened(peer)
        try:
            with self._pending.pending(peer):
                if (other := self._pending.peer_to_close()) is not None:
                    log.warning("connection closed: too many requests have not come whole", peer=other)
                    await asyncio.to_thread(hang_up, other)
                for _ in range(int(REQUEST_S_MAX / _PART_S)):
                    if (await asyncio.wait((reading,), timeout=_PART_S))[0]:
                        data = reading.result()
                        self._receiving.delivered(peer, len(data or b""))
                        return data
        finally:
            self._receiving.closed(peer)
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        log.warning(
            "connection closed: a request has not come whole in time", peer=peer, seconds=REQUEST_S_MAX
        )
        await asyncio.to_thread(hang_up, peer)
        return None


class OneRequest(Wrapper):
    """Serves a method that takes one request as one whose requests stream, of which it takes the first."""

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
    """What parses the request, as `OneRequest` leaves it for `Reading`: so that knows the methods that take one."""

    parse: Callable[[bytes], Any] | None

    def __call__(self, data: bytes) -> Any:
        return data if self.parse is None else self.parse(data)


@dataclass(frozen=True, slots=True)
class _Refused:
    code: grpc.StatusCode
    text: str


def _parsed(data: bytes | None, parse: Callable[[bytes], Any], bytes_max: int) -> list[Any] | _Refused:
    """The request alone in a list, from which it can be taken; or why the call is refused."""
    invalid = grpc.StatusCode.INVALID_ARGUMENT
    if data is None:
        text = f"the call ended, or took longer than {REQUEST_S_MAX} s, before its request had come whole"
        return _Refused(invalid, text)
    if len(data) > bytes_max:
        text = f"a request of {len(data)} bytes; this method takes at most {bytes_max}, send a shorter one"
        return _Refused(grpc.StatusCode.RESOURCE_EXHAUSTED, text)
    try:
        return [parse(data)]
    except DecodeError as error:
        text = f"{len(data)} bytes that are no request of this method: {error}; see protos/bettong/v1"
        return _Refused(invalid, text)


def _keeping_none(handler: Handler) -> Handler:
    """The same, but that what gRPC iterates with is left alone: it holds each request until the next one has come."""
    behaviour = behaviour_of(handler)

    async def requests(context: Context) -> AsyncGenerator[Any, None]:
        while (given := [await context.read()])[0] is not grpc.aio.EOF:
            yield given.pop()

    async def call(_: AsyncIterator[Any], context: Context) -> Any:
        async with contextlib.aclosing(requests(context)) as each:
            return await behaviour(each, context)

    return handler_like(handler, call, handler.request_deserializer)


async def _first(requests: AsyncIterator[bytes]) -> bytes | None:
    # What gRPC iterates with: not closed, it holds the message until the garbage collector comes.
    messages = cast("AsyncGenerator[bytes, None]", aiter(requests))
    async with contextlib.aclosing(messages):
        return await anext(messages, None)


async def _refuse(context: Context, code: grpc.StatusCode, text: str, log: Logger) -> NoReturn:
    log.info("call refused", peer=context.peer(), status=code.name, reason=text)
    never: Never = await context.abort(code, text)
    raise AssertionError(never)
