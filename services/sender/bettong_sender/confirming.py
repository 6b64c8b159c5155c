"""Whether what the log has taken counts: its answers wait while that is not known. Used on the event loop."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from bettong.errors import LogError, LogUnavailableError
from bettong_sender.ledger import Entry

# While it is not known: see `generation_watch`, which asks each second.
_ASK_AGAIN_S = 0.2
_HELD_S_MAX = 5.0


class Appender(Protocol):
    """Whose records are appended; called with what the log said of each, on the event loop."""

    def answered(self, entry: Entry, partition: int, answer: int | LogError, *, opens: bool) -> bool:
        """See Feed."""

    def wake(self) -> None:
        """The log has answered for all records of an entry."""


# Of a record: whose it is, its frame, its partition, whether it opens that, and its offset, or why it has none.
RecordAnswer = tuple[Appender, Entry, int, bool, int | LogError]


class Confirming:
    """Hands on the log's answers in their order: errors in place of offsets, while `is_current` stays false."""

    def __init__(self, loop: asyncio.AbstractEventLoop, hand_on: Callable[[RecordAnswer], None]) -> None:
        self.is_current: Callable[[], bool] = lambda: True
        self._loop = loop
        self._hand_on = hand_on
        self._held: list[RecordAnswer] = []  # credits and the buffer bound it

    def put(self, answer: RecordAnswer) -> None:
        """An answer of the log."""
        if not self._held and (self.is_current() or isinstance(answer[-1], LogError)):
            self._pass(answer)
            return
        if not self._held:
            self._loop.call_later(_ASK_AGAIN_S, self._ask_again, self._loop.time())
        self._held.append(answer)

    def _ask_again(self, since_s: float) -> None:
        """What the log has taken counts once it is known again that nothing has changed, and not after a while."""
        if not self.is_current() and self._loop.time() - since_s < _HELD_S_MAX:
            self._loop.call_later(_ASK_AGAIN_S, self._ask_again, since_s)
            return
        held, self._held = self._held, []
        for each in held:
            self._pass(each)

    def _pass(self, answer: RecordAnswer) -> None:
        appender, entry, partition, opens, result = answer
        if not isinstance(result, LogError) and not self.is_current():
            unknown = (
                "Kafka was away, and it is not known whether the application was repartitioned meanwhile"
            )
            answer = (appender, entry, partition, opens, LogUnavailableError(unknown))
        self._hand_on(answer)
