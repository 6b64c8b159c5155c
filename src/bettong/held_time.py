"""Measures for how long a caller is held up in total, for the metrics of back-pressure."""

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self


class HeldTime:
    """Written by one thread, read by any. Begin and end each read the clock once.

    `with held:` counts the block's time; after an exception the time runs on until `end`.
    """

    __slots__ = ("_clock_s", "_held")

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        """`clock_s`: a monotonic clock."""
        self._clock_s = clock_s
        # The total of earlier times, and the begin of the current one: a tuple, for other threads read both at once.
        self._held: tuple[float, float | None] = (0.0, None)

    @property
    def is_held(self) -> bool:
        """Whether the caller is held up now."""
        return self._held[1] is not None

    @property
    def now_s(self) -> float:
        """For how long the caller has been held up now; 0 if it is not."""
        since_s = self._held[1]
        return self._clock_s() - since_s if since_s is not None else 0.0

    @property
    def total_s(self) -> float:
        """The total time, including the current one."""
        before_s, since_s = self._held
        return before_s + (self._clock_s() - since_s if since_s is not None else 0.0)

    def begin(self) -> None:
        """Begins to count, unless it already does."""
        if self._held[1] is None:
            self._held = (self._held[0], self._clock_s())

    def end(self) -> None:
        """Ends counting, if it has begun."""
        if self._held[1] is not None:
            self._held = (self.total_s, None)

    def __enter__(self) -> Self:
        self.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.end()
