"""The addresses of the console, and their answers.

Apart from a browser's own session only three make changes, `/api/retry`, `/api/scale` and `/api/reset`, and only with
a token that permits it.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from urllib.parse import parse_qs, urlencode

from sse_starlette import EventSourceResponse
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from bettong.inspection.changes import Change
from bettong.logs import Logger
from bettong_console.access import COOKIE, Access
from bettong_console.board import Board
from bettong_console.changing import changed, not_changed, reset_of, retry_of, scale_of
from bettong_console.elsewhere import Elsewhere
from bettong_console.errors import ConsoleRequestError
from bettong_console.guard import ALIVE, SIGN_IN, RequestGuard
from bettong_console.history import SPANS
from bettong_console.history_texts import HistoryTexts
from bettong_console.listeners import Listeners, as_json
from bettong_console.pages import PageFile
from bettong_console.question import CaseQuestion, ChangeQuestion, DeadLettersQuestion, KeyQuestion, Question
from bettong_console.views import View

# The places of the page; the page itself decides what they show.
PAGES = ("/", "/application", "/partitions", "/accounts", "/key", "/events")
# The page draws 7 at a time.
_SERIES_MAX = 32
_FORM_BYTES_MAX = 8_192
# Enough for the ids of as many dead letters as a request may have.
_CHANGE_BYTES_MAX = 65_536
_FORM_FIELDS_MAX = 8
_FORM_S_MAX = 10.0
# A page that has not read for so long is closed, or asleep; it reconnects by itself.
_SEND_S_MAX = 10.0
_PING_S = 15
_SHELL = "index.html"
_SIGN_IN_PAGE = "sign-in.html"

Handler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The data behind the addresses. `ask` raises ConsoleRequestError where there is no answer.

    `release`: that of the chart whose workers are scaled. `elsewhere`: changes that only commands make.
    """

    board: Board
    histories: HistoryTexts
    listeners: Listeners
    ask: Callable[[Question], Awaitable[str]]
    description: View
    files: Mapping[str, PageFile]
    access: Access
    secure: bool
    release: str | None
    elsewhere: Mapping[str, Elsewhere]
    log: Logger

    def application(self) -> ASGIApp:
        """The whole site, guarded."""
        routes = [
            *(Route(path, self._page, methods=["GET"]) for path in PAGES),
            Route("/static/{path:path}", self._file, methods=["GET"]),
            Route("/api/description", _answered(self._description), methods=["GET"]),
            Route("/api/now", _answered(self._now), methods=["GET"]),
            Route("/api/live", _answered(self._live), methods=["GET"]),
            Route("/api/history", _answered(self._history), methods=["GET"]),
            Route("/api/key", _answered(self._key), methods=["GET"]),
            Route("/api/case", _answered(self._case), methods=["GET"]),
            Route("/api/dead-letters", _answered(self._dead_letters), methods=["GET"]),
            *(
                Route(path, _answered(partial(self._change, read)), methods=["POST"])
                for path, read in (
                    ("/api/retry", retry_of),
                    ("/api/scale", partial(scale_of, release=self.release)),
                    ("/api/reset", partial(reset_of, application=self.board.application)),
                )
            ),
            Route(ALIVE, self._alive, methods=["GET"]),
            Route(SIGN_IN, self._sign_in_page, methods=["GET"]),
            Route(SIGN_IN, _answered(self._sign_in), methods=["POST"]),
            Route("/sign-out", self._sign_out, methods=["POST"]),
        ]
        return RequestGuard(
            Starlette(routes=routes, exception_handlers={404: self._nothing_here}), self.access
        )

    async def _page(self, request: Request) -> Response:
        return self.files[_SHELL].answer(request)

    async def _file(self, request: Request) -> Response:
        found = self.files.get(str(request.path_params["path"]))
        return found.answer(request) if found is not None else await self._nothing_here(request, None)

    async def _nothing_here(self, request: Request, _: object) -> Response:
        if request.url.path.startswith(("/api/", "/static/")):
            return JSONResponse({"error": "there is nothing at this address"}, 404)
        return self.files[_SHELL].answer(request, 404)

    async def _alive(self, request: Request) -> Response:
        del request
        return PlainTextResponse("alive\n")

    async def _description(self, request: Request) -> Response:
        changes = self.access.who_changes(request) is not None
        who = {
            "signed_in": self.access.asks_for_tokens,
            "changes": changes,
            "elsewhere": {name: asdict(each) for name, each in self.elsewhere.items()} if changes else {},
        }
        return _json(as_json(self.description | who))

    async def _now(self, request: Request) -> Response:
        return _json(self.listeners.view(_parameter(request, "view", "summary")))

    async def _live(self, request: Request) -> Response:
        stream = self.listeners.admit(_parameter(request, "view", "summary"))

        async def events() -> AsyncIterator[dict[str, str]]:
            async for text in stream:
                if not self.access.allows(request):  # its token was removed meanwhile
                    return
                yield {"data": text}

        return EventSourceResponse(events(), ping=_PING_S, send_timeout=_SEND_S_MAX)

    async def _history(self, request: Request) -> Response:
        name = _parameter(request, "span", "5m")
        if name not in SPANS:
            raise ConsoleRequestError(400, f"span is one of {', '.join(SPANS)}, not {name[:20]!r}")
        series = _parameter(request, "series", "")
        names = series.split(",", _SERIES_MAX) if series else None
        if names is not None and len(names) > _SERIES_MAX:
            raise ConsoleRequestError(400, f"series names at most {_SERIES_MAX}, or is left out for all")
        return _json(self.histories.text(SPANS[name], names, version=self.board.version, now_s=time.time()))

    async def _key(self, request: Request) -> Response:
        question = KeyQuestion(
            stage=_parameter(request, "stage", ""),
            key=_parameter(request, "key", None),
            whole=_parameter(request, "from", "snapshot") == "beginning",
        )
        return await self._asked(request, question)

    async def _case(self, request: Request) -> Response:
        question = CaseQuestion(_parameter(request, "stage", ""), _parameter(request, "key", None))
        return await self._asked(request, question)

    async def _dead_letters(self, request: Request) -> Response:
        return await self._asked(request, DeadLettersQuestion(_parameter(request, "computation", "")))

    async def _change(self, read: Callable[[bytes], ChangeQuestion], request: Request) -> Response:
        """Makes a change, or reports what it would do. A change continues even if its page is closed."""
        who = self.access.who_changes(request)
        if who is None:
            raise ConsoleRequestError(
                403,
                "changes are not allowed: they need a console with --allow-changes, and a token with change = true",
            )
        _refuse_other_pages(request)
        question = read(await _body(request, _CHANGE_BYTES_MAX))
        if question.dry_run:
            return await self._asked(request, question)
        if not self.board.version:
            raise ConsoleRequestError(503, "the console has no data yet; retry in a second")
        try:
            text = await self.ask(question)
        except ConsoleRequestError as error:
            self._note(not_changed(who, question, error, time.time()))
            raise
        self._note(changed(who, question, json.loads(text), time.time()))
        return _json(text)

    def _note(self, change: Change) -> None:
        self.log.info("a person changed something", what=change.what, text=change.text)
        self.board.note(change)
        self.listeners.wake()

    async def _asked(self, request: Request, question: Question) -> Response:
        """The answer; the question is cancelled when its page is closed, because others wait for its slot."""
        asking = asyncio.ensure_future(self.ask(question))
        gone = asyncio.ensure_future(_gone(request))
        try:
            await asyncio.wait({asking, gone}, return_when=asyncio.FIRST_COMPLETED)
            return (
                _json(asking.result()) if asking.done() else Response(status_code=503)
            )  # which nobody reads
        finally:
            asking.cancel()
            gone.cancel()
            await asyncio.gather(asking, gone, return_exceptions=True)

    async def _sign_in_page(self, request: Request) -> Response:
        return self.files[_SIGN_IN_PAGE].answer(request)

    async def _sign_in(self, request: Request) -> Response:
        form = await _form(request)
        then = _own_path(form.get("then", ["/"])[0])
        number = self.access.sign_in(form.get("token", [""])[0].strip())
        if number is None:
            return RedirectResponse(f"{SIGN_IN}?{urlencode({'then': then, 'refused': '1'})}", 303)
        answer = RedirectResponse(then, 303)
        # Lax: links from a chat or a mail carry it. GET changes nothing, and POST from other sites comes without it.
        answer.set_cookie(COOKIE, number, httponly=True, samesite="lax", secure=self.secure, path="/")
        return answer

    async def _sign_out(self, request: Request) -> Response:
        self.access.sign_out(request)
        answer = RedirectResponse(SIGN_IN, 303)
        answer.delete_cookie(COOKIE, path="/")
        return answer


def _answered(handler: Handler) -> Handler:
    """The handler, with its refusals as JSON."""

    async def answered(request: Request) -> Response:
        try:
            return await handler(request)
        except ConsoleRequestError as error:
            return JSONResponse({"error": str(error)}, error.status)

    return answered


async def _gone(request: Request) -> None:
    """Returns once the connection of a request has ended, or its answer was sent."""
    while (await request.receive())["type"] != "http.disconnect":
        pass  # its body, which is not used


async def _form(request: Request) -> dict[str, list[str]]:
    """The fields of a form. Raises ConsoleRequestError for one that is too large or too slow."""
    body = await _body(request, _FORM_BYTES_MAX)
    try:
        return parse_qs(body.decode("ascii", "replace"), max_num_fields=_FORM_FIELDS_MAX)
    except ValueError:
        raise ConsoleRequestError(400, f"a form has at most {_FORM_FIELDS_MAX} fields") from None


async def _body(request: Request, bytes_max: int) -> bytes:
    """The body of a request. Raises ConsoleRequestError for one that is too large or too slow."""
    body = b""
    try:
        async with asyncio.timeout(_FORM_S_MAX):
            async for chunk in request.stream():
                body += chunk
                if len(body) > bytes_max:
                    raise ConsoleRequestError(413, f"a form has at most {bytes_max} bytes")
    except TimeoutError:
        raise ConsoleRequestError(408, f"a form must arrive within {_FORM_S_MAX:.0f} s") from None
    return body


def _refuse_other_pages(request: Request) -> None:
    """Raises ConsoleRequestError for requests that a page elsewhere can make a browser send, with its cookies (CSRF).

    A page at another port of the same host counts as the same site for cookies. Browsers send the page's origin, and
    send JSON to other hosts and ports only when these allow it, which this site does not.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise ConsoleRequestError(415, "send application/json")
    if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
        raise ConsoleRequestError(403, "only a page of this console may ask for that")


def _parameter(request: Request, name: str, default: str | None) -> str:
    """A parameter of the address. Raises ConsoleRequestError if it is missing, repeated, or too long."""
    found = request.query_params.getlist(name)
    if not found and default is not None:
        return default
    if len(found) != 1:
        raise ConsoleRequestError(400, f"give {name} once")
    if len(found[0]) > 2_000:
        raise ConsoleRequestError(400, f"{name} has {len(found[0])} characters, at most 2,000")
    return str(found[0])


def _own_path(path: str) -> str:
    """A path of this site; `/` for one that may lead elsewhere."""
    return path if path.startswith("/") and path[1:2] not in {"/", "\\"} and path.isprintable() else "/"


def _json(text: str) -> Response:
    return Response(text, media_type="application/json")
