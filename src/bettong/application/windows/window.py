"""One window of a key, as the function that makes its result sees it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Window:
    """Event times, Unix ns: from `start` up to but not including `end`. `final`: its result does not come again.

    Of a group of so many messages: from its oldest message to just behind its newest one.
    """

    start: int
    end: int
    final: bool = True
