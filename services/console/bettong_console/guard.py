"""Checks every request: authentication and host name; and adds security headers to every answer."""

from __future__ import annotations

from urllib.parse import quote

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bettong_console.access import Access

# Nothing is loaded from or sent to other sites, no site may frame it, and no markup can run.
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
# Open without authentication: liveness, the sign-in page, and its files.
_OPEN = (ALIVE, SIGN_IN)
_OPEN_FOLDER = "/static/"


class RequestGuard:
    """An ASGI application around another one."""

    def __init__(self, inner: ASGIApp, access: Access) -> None:
        self._inner = inner
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuses a request itself, or passes it on."""
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
                {"error": "this console answers only to names of loopback: 127.0.0.1 or localhost"}, 421
            )
        if path in _OPEN or path.startswith(_OPEN_FOLDER) or self._access.allows(request):
            return None
        if path.startswith("/api/"):
            return JSONResponse(
                {"error": "send a token that may see the console, Authorization: Bearer TOKEN; or sign in"},
                401,
                headers={"www-authenticate": "Bearer"},
            )
        wanted = path + (f"?{request.url.query}" if request.url.query else "")
        return RedirectResponse(f"{SIGN_IN}?then={quote(wanted, safe='')}", 303)
