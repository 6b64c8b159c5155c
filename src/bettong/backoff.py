"""Pauses between attempts that fail, longer each time."""

import threading


class Backoff:
    """The first pause takes `first_s`, each later one twice as long as the one before, at most `max_s`."""

    def __init__(self, first_s: float, max_s: float) -> None:
        self._first_s = first_s
        self._max_s = max_s
        self._next_s = first_s

    def next_s(self) -> float:
        """How long the pause is that begins now."""
        now_s, self._next_s = self._next_s, min(2 * self._next_s, self._max_s)
        return now_s

    def wait(self, stopping: threading.Event) -> None:
        """Blocks for the pause, or until `stopping` is set."""
        stopping.wait(self.next_s())

    def reset(self) -> None:
        """An attempt went well: the next pause is the first one again."""
        self._next_s = self._first_s
