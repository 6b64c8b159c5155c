"""The interceptor that checks, before a call runs and while it lasts, whether its token permits it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Never

import grpc

from bettong.config.access import Grants, ListSources, Permission
from bettong.edges.grpc_server.callers import HOLDER
from bettong.edges.grpc_server.reloaded import Reloaded
from bettong.edges.grpc_server.wrapper import Behaviour, Context, Handler, Wrapper, behaviour_of, handler_like
from bettong.logs import Logger

# The permission that a method's first message needs, by the method's full name. Other methods are refused.
Permissions = Mapping[str, Callable[[Any], Permission]]

# Health probes need no token; they only learn whether the service serves.
_OPEN = "/grpc.health.v1.Health/"

# Interval of checks during a call: a call may outlive its token for this long.
_CHECK_S = 1.0


class CallGuard(Wrapper):
    """Refuses calls with UNAUTHENTICATED (no token, an unknown one) or PERMISSION_DENIED (not this stream or sink).

    A running call ends with the same status within 1 s after its token or permission was revoked.
    """

    def __init__(self, grants: Reloaded[Grants], permissions: Permissions, log: Logger) -> None:
        self._grants = grants
        self._permissions = permissions
        self._log = log

    def wrapped(self, handler: Handler, method: str) -> Handler:
        """See Wrapper."""
        if method.startswith(_OPEN):
            return handler
        guarded = self._guarded(behaviour_of(handler), method, handler.request_streaming)
        return handler_like(handler, guarded, parse=handler.request_deserializer)

    def _guarded(self, behaviour: Behaviour, method: str, streaming: bool) -> Behaviour:  # noqa: FBT001 - gRPC's flag
        async def call(request: Any, context: Context) -> Any:
            authorization = _Authorization(self._grants, self._permissions.get(method), _bearer(context))
            log = self._log.bind(method=method, peer=context.peer())
            await _abort_if_refused(context, authorization.refusal(), log)
            HOLDER.set(authorization.holder_name)
            if streaming:
                authorized = _authorize_first(request, authorization, context, log)
            else:
                authorization.read_first(request)
                await _abort_if_refused(context, authorization.refusal(), log)
                authorized = request
            work = asyncio.ensure_future(behaviour(authorized, context))
            try:
                while not (await asyncio.wait((work,), timeout=_CHECK_S))[0]:
                    await _abort_if_refused(context, authorization.refusal(), log)
                return work.result()
            finally:
                work.cancel()
                await asyncio.gather(work, return_exceptions=True)

        return call


class _Authorization:
    """The authorization of a call: its token, the holder, and the permission that its first message needs."""

    def __init__(
        self, grants: Reloaded[Grants], permission_of: Callable[[Any], Permission] | None, token: str | None
    ) -> None:
        self._grants = grants
        self._permission_of = permission_of
        self._token = token
        self.holder_name = ""
        self._permission: Permission = ListSources()

    def read_first(self, message: Any) -> None:
        """Derives the needed permission from the first message."""
        if self._permission_of is not None:
            self._permission = self._permission_of(message)

    def refusal(self) -> tuple[grpc.StatusCode, str] | None:
        """Why the call is not permitted by the current grants; None when it is."""
        holder = self._grants.current().holder(self._token)
        if holder is None:
            what = "this token is not known here" if self._token else "no token was sent"
            return grpc.StatusCode.UNAUTHENTICATED, (
                f"{what}; clients take theirs from BETTONG_CLIENT_TOKEN or BETTONG_CLIENT_TOKEN_FILE, and"
                " BETTONG_TOKENS here must hold its SHA-256"
            )
        self.holder_name = holder.name
        if self._permission_of is None:
            return grpc.StatusCode.PERMISSION_DENIED, "no token permits this method"
        if not holder.may(self._permission):
            return grpc.StatusCode.PERMISSION_DENIED, (
                f"token {holder.name!r} may not {self._permission}; add it to the token's write or read in"
                " BETTONG_TOKENS"
            )
        return None


async def _authorize_first(
    requests: AsyncIterator[Any], authorization: _Authorization, context: Context, log: Logger
) -> AsyncIterator[Any]:
    """Yields the requests; checks the permission for the first one before."""
    first = True
    async for request in requests:
        if first:
            authorization.read_first(request)
            await _abort_if_refused(context, authorization.refusal(), log)
            first = False
        # Hold no reference here: the call may last long.
        given = [request]
        del request
        yield given.pop()


async def _abort_if_refused(
    context: Context, refusal: tuple[grpc.StatusCode, str] | None, log: Logger
) -> None:
    """Aborts the call if there is a refusal."""
    if refusal is None:
        return
    code, text = refusal
    log.info("call refused", status=code.name, reason=text)
    never: Never = await context.abort(code, text)
    raise AssertionError(never)


def _bearer(context: Context) -> str | None:
    """The token of `authorization: Bearer TOKEN`; None without one, or with several."""
    metadata = context.invocation_metadata()
    shown = [value for key, value in metadata or () if key == "authorization"]
    if len(shown) != 1:
        return None
    scheme, _, token = str(shown[0]).partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None
