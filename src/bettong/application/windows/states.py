"""The state of a windowed computation: what is kept of a key while it has windows open."""

from dataclasses import dataclass, field
from typing import Any

from bettong.application.timers import NEVER, LogTimer, Timer


@dataclass(slots=True)
class RangeState:
    """The state of windows on a grid: accumulators of panes, by the pane's number on the grid.

    `due`: when the next window fires. `early`: when the open ones emit early results; `changed`: the panes that have
    changed since the last ones.
    """

    due: Timer = NEVER
    early: LogTimer = NEVER
    panes: dict[int, Any] = field(default_factory=dict)
    changed: list[int] = field(default_factory=list)


@dataclass(slots=True)
class SessionState:
    """The state of sessions, oldest first. Each is: event time of its first and of its last message, accumulator, and
    whether it has changed since its last early result.

    `due`, `early`: see RangeState.
    """

    due: Timer = NEVER
    early: LogTimer = NEVER
    sessions: list[list[Any]] = field(default_factory=list)


@dataclass(slots=True)
class CountState:
    """The state of a group of messages: how many there are, and the oldest and the newest event time among them."""

    timeout: LogTimer = NEVER
    count: int = 0
    first_ns: int = 0
    last_ns: int = 0
    accumulator: Any = None


@dataclass(slots=True)
class EphemeralState:
    """The state of a key's only window: the event time of its first message, and the accumulator until it fires.

    `due`: when it fires, then when the key is forgotten. `early`: see RangeState.
    """

    due: Timer = NEVER
    early: LogTimer = NEVER
    opened_ns: int = 0
    has_fired: bool = False
    is_over: bool = False
    accumulator: Any = None


def is_empty(state: Any) -> bool:
    """Whether nothing is open: then the key is forgotten."""
    if isinstance(state, CountState):
        return not state.count
    if isinstance(state, EphemeralState):
        return state.is_over
    return not (state.panes if isinstance(state, RangeState) else state.sessions)
