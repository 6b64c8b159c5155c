"""What is kept of a key for a join."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bettong.application.timers import NEVER, Timer
from bettong.application.windows.states import is_empty as is_without_windows


class KeptMessage(NamedTuple):
    """A message that is kept for its partners. `number`: it was that key's so many-th."""

    at_ns: int
    number: int
    message: Any


class TimedMessage(NamedTuple):
    """A message, and when it happened."""

    at_ns: int
    message: Any


@dataclass(slots=True)
class WithinState:
    """Of `join_within`: messages of both sides by event time, then in the log's order. `count`: how many came so far.

    `due`: when some of them can have no partner any more.
    """

    due: Timer = NEVER
    count: int = 0
    left: list[KeptMessage] = field(default_factory=list)
    right: list[KeptMessage] = field(default_factory=list)


@dataclass(slots=True)
class OuterState(WithinState):
    """The same, and which messages had no partner yet: event time and number of each, in order."""

    left_alone: list[tuple[int, int]] = field(default_factory=list)
    right_alone: list[tuple[int, int]] = field(default_factory=list)


@dataclass(slots=True)
class LatestState:
    """Of `join_latest`: the newest message of the table."""

    value: Any = None


@dataclass(slots=True)
class AsOfState:
    """Of `join_as_of`: messages that wait for the watermark, and versions of the table, both by event time.

    `due`: when the first message is answered, or versions are of no use any more.
    """

    due: Timer = NEVER
    waiting: list[TimedMessage] = field(default_factory=list)
    versions: list[TimedMessage] = field(default_factory=list)


def is_empty(state: Any) -> bool:
    """Whether nothing is kept: then the key is forgotten."""
    if isinstance(state, WithinState):
        return not state.left and not state.right
    if isinstance(state, LatestState):
        return state.value is None
    if isinstance(state, AsOfState):
        return not state.waiting and not state.versions
    return is_without_windows(state)
