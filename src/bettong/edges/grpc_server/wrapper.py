"""Base of the interceptors, each of which wraps the behaviour of methods."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import grpc

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Context = grpc.aio.ServicerContext[Any, Any]
Behaviour = Callable[[Any, Context], Awaitable[Any]]


class Wrapper(grpc.aio.ServerInterceptor, ABC):
    """An interceptor that serves `wrapped` instead of each existing method."""

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """See grpc.aio.ServerInterceptor."""
        handler = await continuation(handler_call_details)
        return None if handler is None else self.wrapped(handler, str(handler_call_details.method))

    @abstractmethod
    def wrapped(self, handler: Handler, method: str) -> Handler:
        """The handler to serve for the method of that full name; may be `handler` itself."""


def behaviour_of(handler: Handler) -> Behaviour:
    """The behaviour of a handler, whichever its kind."""
    found: Behaviour = _KINDS[handler.request_streaming, handler.response_streaming][1](handler)
    return found


def handler_like(
    handler: Handler,
    behaviour: Behaviour,
    parse: Callable[[bytes], Any] | None,
    *,
    request_streaming: bool | None = None,
) -> Handler:
    """A handler of the same kind with that behaviour. `parse` decodes requests; None: it gets their bytes.

    `request_streaming` overrides whether requests stream.
    """
    streaming = handler.request_streaming if request_streaming is None else request_streaming
    make = _KINDS[streaming, handler.response_streaming][0]
    made: Handler = make(behaviour, parse, handler.response_serializer)
    return made


# By whether requests and responses stream: the constructor of a handler, and the accessor of its behaviour.
_KINDS: dict[tuple[bool, bool], tuple[Callable[..., Any], Callable[[Any], Any]]] = {
    (False, False): (grpc.unary_unary_rpc_method_handler, lambda handler: handler.unary_unary),
    (False, True): (grpc.unary_stream_rpc_method_handler, lambda handler: handler.unary_stream),
    (True, False): (grpc.stream_unary_rpc_method_handler, lambda handler: handler.stream_unary),
    (True, True): (grpc.stream_stream_rpc_method_handler, lambda handler: handler.stream_stream),
}
