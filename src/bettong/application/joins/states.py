"""The states of joins: what is kept of a key."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bettong.application.timers import NEVER, Timer
from bettong.application.windows.states import is_empty as is_without_windows


class KeptMessage(NamedTuple):
    """A message that is kept for its partners. `number`: its number among the key's messages."""

    at_ns: int
    number: int
    message: Any


class TimedMessage(NamedTuple):
    """A message, and its event time."""

    at_ns: int
    message: Any


@dataclass(slots=True)
class WithinState:
    """State of `join_within`: messages of both sides by event time, then by log order. `count`: of all so far.

    `due`: when some of them can have no partner any more.
    """

    due: Timer = NEVER
    count: int = 0
    left: list[KeptMessage] = field(default_factory=list)
    right: list[KeptMessage] = field(default_factory=list)


@dataclass(slots=True)
class OuterState(WithinState):
    """The same, and the messages that had no partner yet: event time and number of each, in order."""

    left_alone: list[tuple[int, int]] = field(default_factory=list)
    right_alone: list[tuple[int, int]] = field(default_factory=list)


@dataclass(slots=True)
class LatestState:
    """State of `join_latest`: the newest message of the table."""

    value: Any = None


@dataclass(slots=True)
class AsOfState:
    """State of `join_as_of`: messages that wait for the watermark, and versions of the table, both by event time.

    `due`: when the first message is paired, or versions can be dropped.
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
