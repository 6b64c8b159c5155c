"""The interceptor that asks, before a call runs and while it lasts, whether its token lets it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Never, TypeAlias

import grpc

from bettong.access import Grants, Look, Wish
from bettong.edges.grpc_server.callers import HOLDER
from bettong.edges.grpc_server.reloaded import Reloaded
from bettong.logs import Logger

# By the full name of a method: what its first message asks for. A method that is not named is refused.
Wishes = Mapping[str, Callable[[Any], Wish]]

# Probes show no token; what they are told is whether the service serves.
_OPEN = "/grpc.health.v1.Health/"

# How long a call may go on whose token was taken away.
_LOOK_S = 1.0

_Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
_Context = grpc.aio.ServicerContext[Any, Any]
_Behaviour = Callable[[Any, _Context], Awaitable[Any]]


class Guard(grpc.aio.ServerInterceptor):
    """Refuses calls with UNAUTHENTICATED (no token, an unknown one) or PERMISSION_DENIED (not this stream or sink).

    A call that lasts is ended in the same way within 1 s after its token, or what it may, was taken away.
    """

    def __init__(self, grants: Reloaded[Grants], wishes: Wishes, log: Logger) -> None:
        self._grants = grants
        self._wishes = wishes
        self._log = log

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[_Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> _Handler | None:
        """See grpc.aio.ServerInterceptor."""
        handler = await continuation(handler_call_details)
        method = str(handler_call_details.method)
        if handler is None or method.startswith(_OPEN):
            return handler
        return _like(handler, lambda behaviour: self._guarded(behaviour, method, handler.request_streaming))

    def _guarded(self, behaviour: _Behaviour, method: str, streaming: bool) -> _Behaviour:  # noqa: FBT001 - gRPC's flag
        async def call(request: Any, context: _Context) -> Any:
            asked = _Call(self._grants, self._wishes.get(method), _bearer(context))
            log = self._log.bind(method=method, peer=context.peer())
            await _end(context, asked.refusal(), log)
            HOLDER.set(asked.holder_name)
            if streaming:
                judged = _first_judged(request, asked, context, log)
            else:
                asked.wants(request)
                await _end(context, asked.refusal(), log)
                judged = request
            work = asyncio.ensure_future(behaviour(judged, context))
            try:
                while not (await asyncio.wait((work,), timeout=_LOOK_S))[0]:
                    await _end(context, asked.refusal(), log)
                return work.result()
            finally:
                work.cancel()
                await asyncio.gather(work, return_exceptions=True)

        return call


class _Call:
    """One call: its token and that one's holder, and what it asks for once its first message has told."""

    def __init__(
        self, grants: Reloaded[Grants], wish_of: Callable[[Any], Wish] | None, token: str | None
    ) -> None:
        self._grants = grants
        self._wish_of = wish_of
        self._token = token
        self.holder_name = ""
        self._wish: Wish = Look()

    def wants(self, message: Any) -> None:
        """Takes the first message."""
        if self._wish_of is not None:
            self._wish = self._wish_of(message)

    def refusal(self) -> tuple[grpc.StatusCode, str] | None:
        """Why the call may not go on, by the grants of now."""
        holder = self._grants.current().holder(self._token)
        if holder is None:
            what = "this token is not known here" if self._token else "no token was shown"
            return grpc.StatusCode.UNAUTHENTICATED, (
                f"{what}; clients take theirs from BETTONG_CLIENT_TOKEN or BETTONG_CLIENT_TOKEN_FILE, and"
                " BETTONG_TOKENS here must hold its SHA-256"
            )
        self.holder_name = holder.name
        if self._wish_of is None:
            return grpc.StatusCode.PERMISSION_DENIED, "no token lets anybody call this method"
        if not holder.may(self._wish):
            return grpc.StatusCode.PERMISSION_DENIED, (
                f"token {holder.name!r} may not {self._wish}; add it to the token's write or read in BETTONG_TOKENS"
            )
        return None


async def _first_judged(
    requests: AsyncIterator[Any], asked: _Call, context: _Context, log: Logger
) -> AsyncIterator[Any]:
    """The requests; the first one is shown to the rule before it is passed on."""
    first = True
    async for request in requests:
        if first:
            asked.wants(request)
            await _end(context, asked.refusal(), log)
            first = False
        yield request


async def _end(context: _Context, refusal: tuple[grpc.StatusCode, str] | None, log: Logger) -> None:
    """Ends the call with a refusal, if there is one."""
    if refusal is None:
        return
    code, text = refusal
    log.info("call refused", status=code.name, reason=text)
    never: Never = await context.abort(code, text)
    raise AssertionError(never)


def _bearer(context: _Context) -> str | None:
    """The token of `authorization: Bearer TOKEN`; None without one, and when there are two."""
    metadata = context.invocation_metadata()
    shown = [value for key, value in metadata or () if key == "authorization"]
    if len(shown) != 1:
        return None
    scheme, _, token = str(shown[0]).partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def _like(handler: _Handler, guarded: Callable[[_Behaviour], _Behaviour]) -> _Handler:
    """A handler of the same kind around its guarded behaviour."""
    kinds: dict[tuple[bool, bool], tuple[Callable[..., Any], Any]] = {
        (False, False): (grpc.unary_unary_rpc_method_handler, handler.unary_unary),
        (False, True): (grpc.unary_stream_rpc_method_handler, handler.unary_stream),
        (True, False): (grpc.stream_unary_rpc_method_handler, handler.stream_unary),
        (True, True): (grpc.stream_stream_rpc_method_handler, handler.stream_stream),
    }
    make, behaviour = kinds[handler.request_streaming, handler.response_streaming]
    made: _Handler = make(guarded(behaviour), handler.request_deserializer, handler.response_serializer)
    return made
