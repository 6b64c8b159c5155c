"""Timers: fields of a state that hold the time at which a function is called for its key.

| annotation         | fires when                                   | unit               |
| ------------------ | -------------------------------------------- | ------------------ |
| `bettong.Timer`    | the watermark of the partition reaches it    | event time, Unix ns |
| `bettong.LogTimer` | the log clock of the partition reaches it    | Unix ns            |

A timer is `NEVER` until a function sets it, and is reset to `NEVER` before its function is called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from types import UnionType
from typing import Annotated, Any, Generic, TypeVar, Union, get_args, get_origin, get_type_hints

from bettong.application.callables import check_plain
from bettong.errors import ApplicationError
from bettong.schema.fields import Scalar

# The last nanosecond of a 64-bit clock, in the year 2262.
NEVER = 2**63 - 1

Key = TypeVar("Key")


class Clock(Enum):
    """The clock of a timer."""

    EVENT = "event time"
    LOG = "log clock"


@dataclass(frozen=True, slots=True)
class TimerMark:
    """Marks an annotated `int` as a timer."""

    clock: Clock


Timer = Annotated[int, Scalar("<i8"), TimerMark(Clock.EVENT)]
LogTimer = Annotated[int, Scalar("<i8"), TimerMark(Clock.LOG)]


@dataclass
class Fired(Generic[Key]):
    """What a timer's function gets instead of a message: the timer's key, and the time that it was set to."""

    key: Key
    at: int


@dataclass(frozen=True, slots=True)
class StateTimer:
    """A timer of a computation's states, and the function that is called when it fires."""

    field: str
    clock: Clock
    function: Callable[..., Any]


def state_timers(
    owner: str, state: Callable[[], Any], functions: Mapping[str, Callable[..., Any]] | None
) -> tuple[StateTimer, ...]:
    """The timers of states, in the order of their fields. `functions`: by field, `timers=` of `stateful`.

    Raises ApplicationError for a timer without a function, and for a function without a timer.
    """
    if functions is not None and not isinstance(functions, Mapping):
        raise ApplicationError(f"{owner}: timers={functions!r}: expected {{'field': function}}")
    check_plain(f"{owner}: state", state)
    given = dict(functions or {})
    kind = _class_of(state)
    clocks = _clocks(owner, kind, strict=bool(given))
    if missing := [field for field in clocks if field not in given]:
        raise ApplicationError(
            f"{owner}: {_name(kind)}.{missing[0]} is a timer, and nothing says what to call when it fires: give"
            f" timers={{{missing[0]!r}: function}}"
        )
    for field in given:
        if field not in clocks:
            raise ApplicationError(
                f"{owner}: timers={{{field!r}: ...}}: {_no_timer_reason(kind, field, clocks)}"
            )
    if clocks:
        _check_new_state(owner, kind, state, clocks)
    return tuple(StateTimer(field, clock, given[field]) for field, clock in clocks.items())


def _class_of(state: Callable[[], Any]) -> Any:
    """The class of the states; None where it is not known before a message arrives."""
    if isinstance(state, type):
        return state
    try:
        return type(state())
    except (Exception, SystemExit):  # noqa: BLE001 - the user's code: it may need what does not exist yet
        return None


def _clocks(owner: str, kind: Any, *, strict: bool) -> dict[str, Clock]:
    """The timers among the fields of a class. `strict`: whether they must be known."""
    hints = _hints(owner, kind, strict=strict)
    for name, hint in hints.items():
        own = get_args(hint)[0] if _mark(hint) is not None else hint
        if (path := _hidden_timer(name, own, set())) is not None:
            raise ApplicationError(
                f"{owner}: {_name(kind)}.{path} is a timer below the fields of the state, where none fires: make it a"
                f" field of {_name(kind)} itself, or an int"
            )
    marks = {name: _mark(hint) for name, hint in hints.items()}
    return {name: mark.clock for name, mark in marks.items() if mark is not None}


def _hints(owner: str, kind: Any, *, strict: bool) -> dict[str, Any]:
    """The annotation of each field of a dataclass, in order."""
    if not is_dataclass(kind) or not isinstance(kind, type):
        return {}
    try:
        hints = get_type_hints(kind, include_extras=True)
    except Exception as error:  # noqa: BLE001 - a hint may be any expression
        if strict:
            raise ApplicationError(
                f"{owner}: an annotation of {_name(kind)} cannot be resolved: {error}"
            ) from None
        return {}
    return {field.name: hints[field.name] for field in fields(kind) if field.name in hints}


def _hidden_timer(path: str, hint: Any, seen: set[Any]) -> str | None:
    """The path of a timer nested within an annotation; None where there is none. `seen`: classes visited before."""
    if _mark(hint) is not None:
        return path
    origin, parts = get_origin(hint), get_args(hint)
    if is_dataclass(origin or hint) and (origin or hint) not in seen:
        seen.add(origin or hint)
        held = [(f"{path}.{name}", each) for name, each in _hints("", origin or hint, strict=False).items()]
    elif origin is Annotated:
        held = [(path, parts[0])]
    else:
        held = [(path if origin in (Union, UnionType) else f"{path}[]", each) for each in parts]
    found = (_hidden_timer(own, each, seen) for own, each in held)
    return next((each for each in found if each is not None), None)


def _mark(hint: object) -> TimerMark | None:
    if get_origin(hint) is not Annotated:
        return None
    return next((each for each in get_args(hint) if isinstance(each, TimerMark)), None)


def _no_timer_reason(kind: Any, field: str, clocks: Mapping[str, Clock]) -> str:
    if not is_dataclass(kind) or not isinstance(kind, type):
        return "timers are fields of the state, which has to be a dataclass for it"
    if field in (each.name for each in fields(kind)):
        return f"{_name(kind)}.{field} is no timer; annotate it bettong.Timer or bettong.LogTimer"
    return f"{_name(kind)} has no field {field!r}; its timers are {', '.join(clocks) or 'none'}"


def _check_new_state(owner: str, kind: Any, state: Callable[[], Any], clocks: Mapping[str, Clock]) -> None:
    """Refuses states whose timers cannot be set, or that are made with a timer set."""
    if kind.__dataclass_params__.frozen:
        raise ApplicationError(f"{owner}: {_name(kind)} is frozen, and a function sets timers in its state")
    made = state()
    for field in clocks:
        if getattr(made, field, None) != NEVER:
            raise ApplicationError(
                f"{owner}: {_name(kind)}.{field} of a new state is {getattr(made, field, None)!r}, expected"
                f" bettong.NEVER: a function sets it (`{field}: bettong.Timer = bettong.NEVER`)"
            )


def _name(kind: Any) -> str:
    return str(getattr(kind, "__qualname__", kind))
