"""Open pages: each gets the newest view when there is one, never an old one; their number is bounded."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

from bettong_console.board import Board
from bettong_console.errors import ConsoleRequestError
from bettong_console.views import VIEWS

# A program that polls once polls again within this time.
_ASKED_S = 10.0
# A text contains the time, by which a page knows how old its numbers are.
_TEXT_S_MAX = 1.0


class Listeners:
    """For one event loop. `wanted` is set while a page or program needs a fresh board.

    Each view is made once per version, however many pages have it open; and again for later requests.
    """

    def __init__(self, board: Board, listeners_max: int) -> None:
        self._board = board
        self._listeners_max = listeners_max
        self._count = 0
        self._news = asyncio.Event()
        self._made: dict[str, tuple[int, float, str]] = {}
        self._closed = False
        self._asked_s = -math.inf
        self.wanted = asyncio.Event()

    def are_there(self) -> bool:
        """Whether a page is open, or a request came recently; else `wanted` is cleared."""
        found = self._count > 0 or time.monotonic() - self._asked_s < _ASKED_S
        if not found:
            self.wanted.clear()
        return found

    def wake(self) -> None:
        """Wakes all streams: the board has changed."""
        self._news.set()
        self._news = asyncio.Event()

    def close(self) -> None:
        """Ends all streams: the console stops."""
        self._closed = True
        self.wake()

    def view(self, name: str) -> str:
        """A view as JSON. Raises ConsoleRequestError for an unknown name, and before the first inspection."""
        _check_name(name)
        self._note_asked()
        now_s = time.time()
        version, made_s, text = self._made.get(name, (-1, 0.0, ""))
        if version != self._board.version or abs(now_s - made_s) > _TEXT_S_MAX:
            if self._board.known is None:
                raise ConsoleRequestError(503, self._why_unknown())
            text = as_json(VIEWS[name](self._board, self._board.known, now_s))
            self._made[name] = (self._board.version, now_s, text)
        return text

    def admit(self, name: str) -> AsyncIterator[str]:
        """The view now, and each newer one, until the page goes. Raises ConsoleRequestError where there is no room."""
        _check_name(name)
        if self._board.version and self._board.known is None:
            self._note_asked()
            raise ConsoleRequestError(503, self._why_unknown())
        if self._count >= self._listeners_max:
            raise ConsoleRequestError(
                503,
                f"{self._count} pages are open, the most that BETTONG_CONSOLE_LISTENERS_MAX allows; close one",
            )
        return self._stream(name)

    def _note_asked(self) -> None:
        """Keeps the board fresh for a while."""
        self._asked_s = time.monotonic()
        self.wanted.set()

    def _why_unknown(self) -> str:
        """The reason for a page that has nothing to show yet."""
        silent = "; ".join(self._board.silent)
        return f"no data yet: {silent}" if silent else "no service has answered yet; retry in a second"

    async def _stream(self, name: str) -> AsyncIterator[str]:
        if self._count >= self._listeners_max:  # others came meanwhile
            return
        self._count += 1
        self.wanted.set()
        try:
            sent = -1
            while not self._closed:
                news = self._news
                if self._board.version != sent and self._board.known is not None:
                    sent = self._board.version
                    yield self.view(name)
                await news.wait()
        finally:
            self._count -= 1


def _check_name(name: str) -> None:
    if name not in VIEWS:
        raise ConsoleRequestError(404, f"there is no view {name[:40]!r}, only {', '.join(VIEWS)}")


def as_json(values: Mapping[str, Any]) -> str:
    """JSON in one line. Raises ValueError for numbers that JSON does not have."""
    return json.dumps(values, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
