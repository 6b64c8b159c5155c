"""Answers questions that take time and run users' code: each in a separate process, killed when it takes too long.

The console itself folds nothing: a function that never returns, or ends its process, costs one answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
from collections.abc import AsyncIterator
from dataclasses import dataclass
from multiprocessing.connection import Connection

from bettong.local.locations import FoundLocations
from bettong_console.errors import ConsoleRequestError
from bettong_console.question import Question

# Enough to fold a log of some million records; nobody waits longer.
ANSWER_S_MAX = 60.0
# Each is a process of some 150 MB, which uses a core for as long as it folds.
AT_A_TIME_MAX = 2
_POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class Answered:
    """`status` is the HTTP status, `text` JSON."""

    status: int
    text: str


class Questions:
    """About the application in a file. For one event loop."""

    def __init__(
        self, application: str, where: FoundLocations, *, answer_s_max: float = ANSWER_S_MAX
    ) -> None:
        self._application = application
        self._where = where
        self._answer_s_max = answer_s_max
        self._running = 0
        self._spawn = multiprocessing.get_context("spawn")

    async def ask(self, question: Question) -> str:
        """The answer, as JSON. Raises ConsoleRequestError, which says why there is none."""
        async with self._room():
            receiving, sending = self._spawn.Pipe(duplex=False)
            process = self._spawn.Process(
                target=_answer, args=(question, self._application, self._where, sending), daemon=True
            )
            process.start()
            sending.close()
            try:
                found = await self._received(receiving)
            finally:  # also when the page that asked was closed
                process.kill()
                await asyncio.to_thread(process.join)
                process.close()
                receiving.close()
        if found.status != 200:
            raise ConsoleRequestError(found.status, found.text)
        return found.text

    async def _received(self, receiving: Connection) -> Answered:
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + self._answer_s_max
        while not receiving.poll():
            if loop.time() > deadline_s:
                return Answered(
                    504,
                    f"no answer within {self._answer_s_max:.0f} s: a requested change may have been made, or in part;"
                    " read a key's history from its newest snapshot, or use bettong replay, which has no time limit",
                )
            await asyncio.sleep(_POLL_S)
        with contextlib.suppress(EOFError, OSError):  # OSError: it died in the middle of its answer
            status, text = await asyncio.to_thread(receiving.recv)
            return Answered(status, text)
        return Answered(500, "the process that prepared the answer died: see the console's log")

    @contextlib.asynccontextmanager
    async def _room(self) -> AsyncIterator[None]:
        if self._running >= AT_A_TIME_MAX:
            raise ConsoleRequestError(
                503, f"{self._running} such questions are being answered; retry in a moment"
            )
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1


def _answer(question: Question, application: str, where: FoundLocations, sending: Connection) -> None:
    """Runs in the separate process: only there the libraries for folding are loaded, above all Numba."""
    from bettong_console.answering import answer

    answer(question, application, where, sending)
