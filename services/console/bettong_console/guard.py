"""What every request passes, and every answer gets: who asks, by which name, and what browsers may do with it."""

from __future__ import annotations

from urllib.parse import quote

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bettong_console.access import Access

# Nothing comes from elsewhere, nothing goes elsewhere, nobody frames it, and no markup can run.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self';"
    " base-uri 'none'; form-action 'self'; frame-ancestors 'none';"
    " require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
SIGN_IN = "/sign-in"
ALIVE = "/alive"
# For those who have shown nothing yet: whether it lives, where to sign in, and how that looks.
_OPEN = (ALIVE, SIGN_IN)
_OPEN_FOLDER = "/static/"


class RequestGuard:
    """An ASGI application around another one."""

    def __init__(self, inner: ASGIApp, access: Access) -> None:
        self._inner = inner
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers itself what is refused."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
            await send(message)

        refusal = self._refusal(HTTPConnection(scope))
        await (refusal or self._inner)(scope, receive, guarded)

    def _refusal(self, request: HTTPConnection) -> Response | None:
        path = request.url.path
        if not self._access.is_ours(request):
            return JSONResponse(
                {"error": "this console answers to names of loopback alone: 127.0.0.1 or localhost"}, 421
            )
        if path in _OPEN or path.startswith(_OPEN_FOLDER) or self._access.allows(request):
            return None
        if path.startswith("/api/"):
            return JSONResponse(
                {"error": "show a token that may see the console, Authorization: Bearer TOKEN; or sign in"},
                401,
                headers={"www-authenticate": "Bearer"},
            )
        wanted = path + (f"?{request.url.query}" if request.url.query else "")
        return RedirectResponse(f"{SIGN_IN}?then={quote(wanted, safe='')}", 303)
