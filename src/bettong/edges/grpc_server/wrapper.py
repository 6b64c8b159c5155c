"""What interceptors here share: each puts a behaviour of its own around that of a method."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import grpc

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Context = grpc.aio.ServicerContext[Any, Any]
Behaviour = Callable[[Any, Context], Awaitable[Any]]


class Wrapper(grpc.aio.ServerInterceptor, ABC):
    """An interceptor that serves `wrapped` in place of each method that there is."""

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
        """What serves the method of that full name; the handler itself when there is nothing to add."""


def behaviour_of(handler: Handler) -> Behaviour:
    """What the method does, of whichever kind it is."""
    found: Behaviour = _KINDS[handler.request_streaming, handler.response_streaming][1](handler)
    return found


def handler_like(
    handler: Handler,
    behaviour: Behaviour,
    parse: Callable[[bytes], Any] | None,
    *,
    request_streaming: bool | None = None,
) -> Handler:
    """A handler of the same kind with that behaviour, which gets what `parse` makes of a request; None: its bytes.

    `request_streaming`: of another kind in this.
    """
    streaming = handler.request_streaming if request_streaming is None else request_streaming
    make = _KINDS[streaming, handler.response_streaming][0]
    made: Handler = make(behaviour, parse, handler.response_serializer)
    return made


# By whether requests and responses stream: what makes a handler, and what it holds.
_KINDS: dict[tuple[bool, bool], tuple[Callable[..., Any], Callable[[Any], Any]]] = {
    (False, False): (grpc.unary_unary_rpc_method_handler, lambda handler: handler.unary_unary),
    (False, True): (grpc.unary_stream_rpc_method_handler, lambda handler: handler.unary_stream),
    (True, False): (grpc.stream_unary_rpc_method_handler, lambda handler: handler.stream_unary),
    (True, True): (grpc.stream_stream_rpc_method_handler, lambda handler: handler.stream_stream),
}
