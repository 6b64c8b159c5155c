"""Holds the log's acknowledgements back while this sender's generation may be outdated. Used on the event loop."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from bettong.errors import LogError, LogUnavailableError
from bettong_sender.ledger import Entry

# `generation_watch` polls Kafka each second.
_ASK_AGAIN_S = 0.2
_HELD_S_MAX = 5.0


class Appender(Protocol):
    """The owner of appended records; called on the event loop with the log's answer for each."""

    def answered(self, entry: Entry, partition: int, answer: int | LogError, *, opens: bool) -> bool:
        """See Feed."""

    def wake(self) -> None:
        """The log has answered for all records of an entry."""


# Of a record: its owner, frame and partition, whether it is an OPEN record, and its offset or error.
RecordAnswer = tuple[Appender, Entry, int, bool, int | LogError]


class Confirming:
    """Passes the log's answers on in order; while `is_current` stays false, with errors in place of offsets."""

    def __init__(self, loop: asyncio.AbstractEventLoop, hand_on: Callable[[RecordAnswer], None]) -> None:
        self.is_current: Callable[[], bool] = lambda: True
        self._loop = loop
        self._hand_on = hand_on
        self._held: list[RecordAnswer] = []  # credits and the buffer bound it

    @property
    def holds_any(self) -> bool:
        """Whether answers are held."""
        return bool(self._held)

    def put(self, answer: RecordAnswer) -> None:
        """Passes an answer on, or holds it."""
        if not self._held and (self.is_current() or isinstance(answer[-1], LogError)):
            self._pass(answer)
            return
        if not self._held:
            self._loop.call_later(_ASK_AGAIN_S, self._ask_again, self._loop.time())
        self._held.append(answer)

    def _ask_again(self, since_s: float) -> None:
        """Passes held answers on once the generation is known to be current, or as errors after `_HELD_S_MAX`."""
        if not self.is_current() and self._loop.time() - since_s < _HELD_S_MAX:
            self._loop.call_later(_ASK_AGAIN_S, self._ask_again, since_s)
            return
        held, self._held = self._held, []
        for each in held:
            self._pass(each)

    def _pass(self, answer: RecordAnswer) -> None:
        appender, entry, partition, opens, result = answer
        if not isinstance(result, LogError) and not self.is_current():
            unknown = "Kafka or Redis was away, and it is not known whether the application was repartitioned meanwhile"
            answer = (appender, entry, partition, opens, LogUnavailableError(unknown))
        self._hand_on(answer)
