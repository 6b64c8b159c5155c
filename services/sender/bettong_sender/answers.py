"""The log as the sender sees it, and a queue of its answers to the event loop: many answers, one wake-up."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from bettong.errors import LogError
from bettong.identifiers import TopicPartition

_Answer = TypeVar("_Answer")


class Log(Protocol):
    """The part of `LogWriter` that an intake uses."""

    def append(
        self,
        to: TopicPartition,
        value: bytes,
        on_done: Callable[[int | LogError], None],
        *,
        traceparent: bytes = b"",
    ) -> None:
        """Appends a record; `on_done` is called once, from another thread. Raises LogError."""


class Answers(Generic[_Answer]):
    """Calls a function on the event loop with each answer that any thread puts, in order."""

    def __init__(self, loop: asyncio.AbstractEventLoop, handle: Callable[[_Answer], None]) -> None:
        self._loop = loop
        self._handle = handle
        self._waiting: deque[_Answer] = deque()
        self._woken = False

    def put(self, answer: _Answer) -> None:
        """From any thread; does not block. The loop must still run."""
        self._waiting.append(answer)
        if not self._woken:
            self._woken = True
            self._loop.call_soon_threadsafe(self._drain)

    def _drain(self) -> None:
        # Reset first: an answer that is put from here on is either seen below or wakes the loop again.
        self._woken = False
        while self._waiting:
            self._handle(self._waiting.popleft())
