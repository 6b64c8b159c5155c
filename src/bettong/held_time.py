"""For how long something holds up who waits for it, all in all: what back-pressure is counted with."""

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self


class HeldTime:
    """Begun and ended by one thread, read by any. It costs a look at the clock when it begins, and when it ends.

    `with held:` holds; what raises is not over by that, and holds until `end`.
    """

    __slots__ = ("_clock_s", "_held")

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        """`clock_s`: of a clock that never goes back."""
        self._clock_s = clock_s
        # For how long before, and since when now. Replaced at once, for other threads read both.
        self._held: tuple[float, float | None] = (0.0, None)

    @property
    def is_held(self) -> bool:
        """Whether it holds now."""
        return self._held[1] is not None

    @property
    def now_s(self) -> float:
        """For how long it has held now; 0 where it does not."""
        since_s = self._held[1]
        return self._clock_s() - since_s if since_s is not None else 0.0

    @property
    def total_s(self) -> float:
        """For how long it has held, all in all; now, too."""
        before_s, since_s = self._held
        return before_s + (self._clock_s() - since_s if since_s is not None else 0.0)

    def begin(self) -> None:
        """It holds from now on, unless it does already."""
        if self._held[1] is None:
            self._held = (self._held[0], self._clock_s())

    def end(self) -> None:
        """It holds no more, if it did."""
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
