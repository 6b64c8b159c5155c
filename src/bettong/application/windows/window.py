"""The window that is passed to the function that makes its result."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Window:
    """Event times, Unix ns: from `start` up to but not including `end`. `final`: no further result follows.

    For a group of messages: from its oldest message to just after its newest one.
    """

    start: int
    end: int
    final: bool = True
