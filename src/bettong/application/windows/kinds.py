"""The kinds of windows: how the event times of a key's messages, or their number, are divided.

Made by `tumbling`, `sliding`, `sessions`, `counts` and `ephemeral`, which check their arguments when the application is
built.
"""

from dataclasses import dataclass
from datetime import timedelta
from math import gcd
from typing import TypeAlias

from bettong.application.durations import duration_ns
from bettong.application.timers import NEVER
from bettong.errors import ApplicationError


@dataclass(frozen=True, slots=True)
class Ranges:
    """Windows of a fixed size on a grid: from k * slide + offset on, for every whole k, counted from 1970.

    One fires when the watermark is `delay_ns` past its end.
    """

    size_ns: int
    slide_ns: int
    offset_ns: int
    delay_ns: int

    @property
    def pane_ns(self) -> int:
        """The longest span of time that each window either contains or does not overlap."""
        return gcd(self.size_ns, self.slide_ns)

    @property
    def panes(self) -> int:
        """How many panes a window has."""
        return self.size_ns // self.pane_ns

    @property
    def latest_ns(self) -> int:
        """Later event times have windows that end beyond 64 bits."""
        return NEVER - self.size_ns - 2 * self.slide_ns - self.delay_ns


@dataclass(frozen=True, slots=True)
class Sessions:
    """Messages at most `gap_ns` apart. A session fires when the watermark is `delay_ns` past the gap after the last."""

    gap_ns: int
    delay_ns: int

    @property
    def wait_ns(self) -> int:
        """How long after its last message a session fires."""
        return self.gap_ns + 1 + self.delay_ns

    @property
    def latest_ns(self) -> int:
        """The sessions of later event times end beyond 64 bits."""
        return NEVER - 1 - self.wait_ns


@dataclass(frozen=True, slots=True)
class Counts:
    """Groups of `count` messages; `timeout_ns` (log clock) after its first message an incomplete group fires."""

    count: int
    timeout_ns: int | None


@dataclass(frozen=True, slots=True)
class Ephemeral:
    """One window a key, for `trigger_ns` from its first message on. Then the key is remembered for `keep_ns`."""

    trigger_ns: int
    keep_ns: int

    @property
    def latest_ns(self) -> int:
        """Later event times open windows that end beyond 64 bits."""
        return NEVER - 1 - self.trigger_ns - self.keep_ns


WindowKind: TypeAlias = Ranges | Sessions | Counts | Ephemeral


def tumbling(size: timedelta, *, offset: timedelta = timedelta(0), delay: timedelta = timedelta(0)) -> Ranges:
    """Windows of `size`, one after the other: `tumbling(timedelta(minutes=1))` is each minute of the clock.

    `offset` moves the grid, which starts at 1970. `delay`: how long after its end a window waits for late messages.
    Raises ApplicationError for an invalid duration, as the others here do.
    """
    return _ranges("tumbling", size, size, offset, delay)


def sliding(
    size: timedelta, slide: timedelta, *, offset: timedelta = timedelta(0), delay: timedelta = timedelta(0)
) -> Ranges:
    """Windows of `size`, a new one each `slide`: a message is in all that cover its event time. See `tumbling`."""
    return _ranges("sliding", size, slide, offset, delay)


def sessions(gap: timedelta, *, delay: timedelta = timedelta(0)) -> Sessions:
    """Messages of a key at most `gap` apart form a session. It ends when there is none for longer than that."""
    return Sessions(duration_ns("sessions", "gap", gap), duration_ns("sessions", "delay", delay, zero=True))


def counts(count: int, *, timeout: timedelta | None = None) -> Counts:
    """Every `count` messages of a key. `timeout` (log clock): after it a group fires even if it is not full."""
    if type(count) is not int or not 1 <= count < 2**63:
        raise ApplicationError(f"counts: count={count!r}; expected a number from 1 on")
    return Counts(count, None if timeout is None else duration_ns("counts", "timeout", timeout))


def ephemeral(trigger_after: timedelta, *, keep_for: timedelta = timedelta(0)) -> Ephemeral:
    """One window a key, for keys that occur once, as orders do: it opens with the key's first message.

    It fires `trigger_after` that. Messages after that are late for `keep_for`; then the key is forgotten.
    """
    return Ephemeral(
        duration_ns("ephemeral", "trigger_after", trigger_after),
        duration_ns("ephemeral", "keep_for", keep_for, zero=True),
    )


def _ranges(owner: str, size: timedelta, slide: timedelta, offset: timedelta, delay: timedelta) -> Ranges:
    found = Ranges(
        duration_ns(owner, "size", size),
        duration_ns(owner, "slide", slide),
        duration_ns(owner, "offset", offset, zero=True),
        duration_ns(owner, "delay", delay, zero=True),
    )
    if found.slide_ns > found.size_ns:
        raise ApplicationError(
            f"{owner}: slide={slide} is longer than size={size}: messages between two windows would be in none; filter"
            " them out, or take a shorter slide"
        )
    if found.offset_ns >= found.slide_ns and found.offset_ns:
        raise ApplicationError(
            f"{owner}: offset={offset}: the grid repeats after {slide}; expected less than that"
        )
    return found
