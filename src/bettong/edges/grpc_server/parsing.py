"""The interceptor that reads requests: bytes that are none end a call with INVALID_ARGUMENT.

Left to gRPC, they end it with UNKNOWN, which says nothing, and a traceback in the service's log.
"""

from __future__ import annotations

from typing import Any

import grpc
from google.protobuf.message import DecodeError

from bettong.edges.grpc_server.wrapper import Context, Handler, Wrapper, behaviour_of, handler_like
from bettong.logs import Logger


class Parsing(Wrapper):
    """Reads the requests of calls that take one. A stream's are read by its method, which knows when to."""

    def __init__(self, log: Logger) -> None:
        self._log = log

    def wrapped(self, handler: Handler, method: str) -> Handler:
        """See Wrapper."""
        parse, behaviour = handler.request_deserializer, behaviour_of(handler)
        if handler.request_streaming or parse is None:
            return handler
        log = self._log.bind(method=method)

        async def call(data: bytes, context: Context) -> Any:
            try:
                request = parse(data)
            except DecodeError as error:
                text = f"{len(data)} bytes that are no request of this method: {error}; see protos/bettong/v1"
                log.info("call refused", peer=context.peer(), reason=text)
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, text)
            return await behaviour(request, context)

        return handler_like(handler, call, parse=None)
