"""The interceptor that reads requests: bytes that are none end a call with INVALID_ARGUMENT.

Left to gRPC, they end it with UNKNOWN, which says nothing, and a traceback in the service's log.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import grpc
from google.protobuf.message import DecodeError

from bettong.logs import Logger

_Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
_Context = grpc.aio.ServicerContext[Any, Any]


class Parsing(grpc.aio.ServerInterceptor):
    """Reads the requests of calls that take one. A stream's are read by its method, which knows when to."""

    def __init__(self, log: Logger) -> None:
        self._log = log

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[_Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> _Handler | None:
        """See grpc.aio.ServerInterceptor."""
        handler = await continuation(handler_call_details)
        if handler is None or handler.request_streaming or handler.request_deserializer is None:
            return handler
        make: Any = grpc.unary_unary_rpc_method_handler
        behaviour: Any = handler.unary_unary
        if handler.response_streaming:
            make, behaviour = grpc.unary_stream_rpc_method_handler, handler.unary_stream
        parse, log = handler.request_deserializer, self._log.bind(method=str(handler_call_details.method))

        async def call(data: bytes, context: _Context) -> Any:
            try:
                request = parse(data)
            except DecodeError as error:
                text = f"{len(data)} bytes that are no request of this method: {error}; see protos/bettong/v1"
                log.info("call refused", peer=context.peer(), reason=text)
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, text)
            return await behaviour(request, context)

        made: _Handler = make(call, None, handler.response_serializer)
        return made
