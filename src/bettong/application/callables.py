"""Checks of the user's callables: plain functions, no coroutines or generators; and of what makes a state."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import partial
from typing import Any

from bettong.errors import ApplicationError

_UNCHANGING = (
    int,
    float,
    complex,
    str,
    bytes,
    type(None),
    range,
    slice,
    Decimal,
    Fraction,
    date,
    time,
    timedelta,
)
# How deep tuples within tuples of a state are checked.
_DEPTH_MAX = 20


def name_of(function: object) -> str:
    """The name that a computation takes from its function. Raises ApplicationError for a lambda."""
    if is_lambda(function):
        raise ApplicationError("a lambda has no name: give name=... so that errors and metrics can name it")
    return _name(function) if hasattr(function, "__name__") else type(function).__name__


def is_lambda(function: object) -> bool:
    """Whether it is a lambda, which has neither a name nor annotations."""
    return getattr(function, "__name__", None) == "<lambda>"


def check_plain(owner: str, function: object, *, many: bool = False) -> None:
    """Raises ApplicationError for a coroutine function; without `many`, also for a generator function."""
    called = _called(function)
    if inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called):
        raise ApplicationError(
            f"{owner}: it is an async function, and nothing would await it; write it with def. What has to wait"
            " belongs behind a sink or before a source"
        )
    if not many and inspect.isgeneratorfunction(called):
        raise ApplicationError(
            f"{owner}: it is a generator function (it has a yield), but one value is expected: return it"
        )


def check_arguments(
    owner: str, function: Callable[..., Any], arguments: tuple[object, ...], described: str
) -> None:
    """Raises ApplicationError where a function cannot be called with so many arguments, which are `described`."""
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError as error:
        raise ApplicationError(f"{owner}: must take {described}: {error}") from None
    except ValueError:  # of a built-in without a signature
        return


def check_options(owner: str, given: Mapping[str, object], known: type) -> None:
    """Raises ApplicationError for a keyword argument that is none of those of a TypedDict, all of them optional."""
    options: frozenset[str] = known.__optional_keys__  # type: ignore[attr-defined]
    if unknown := [option for option in given if option not in options]:
        raise ApplicationError(
            f"{owner}: unknown option {unknown[0]!r}; expected one of {', '.join(sorted(options))}"
        )


def check_state(owner: str, state: Callable[[], Any]) -> None:
    """Raises ApplicationError when the states that `state` makes cannot be changed in place.

    `state` is called once. What it raises is ignored here: messages for which it raises fail later.
    """
    check_plain(f"{owner}: state={_name(state)}", state)
    try:
        made = state()
    except (Exception, SystemExit):  # noqa: BLE001 - the user's code: it may need what does not exist yet
        return
    if is_unchanging(made):
        raise ApplicationError(
            f"{owner}: state={_name(state)} makes {_shown(made)}, which no function can change in place: each message"
            " would find it as the first one did. Give a class with fields, e.g. @dataclass class Count: n: int = 0,"
            " without frozen=True"
        )


def is_unchanging(value: object, depth: int = 0) -> bool:
    """Whether a value is deeply immutable."""
    if isinstance(value, Enum):
        return True
    if depth > _DEPTH_MAX:
        return False
    if (fields := _frozen_fields(value)) is not None:
        return all(is_unchanging(each, depth + 1) for each in fields)
    if _holds_attributes(value):
        return False
    if isinstance(value, _UNCHANGING):
        return True
    if isinstance(value, tuple | frozenset):
        return all(is_unchanging(each, depth + 1) for each in value)
    return False


def _frozen_fields(value: object) -> list[object] | None:
    """What a frozen dataclass holds; None for any other object."""
    parameters = getattr(type(value), "__dataclass_params__", None)
    if parameters is None or not parameters.frozen:
        return None
    return [getattr(value, field.name, None) for field in dataclasses.fields(value)]  # type: ignore[arg-type]


def _holds_attributes(value: object) -> bool:
    """Whether attributes can be set, as on an object of a subclass of int."""
    return hasattr(value, "__dict__") or (dataclasses.is_dataclass(value) and not isinstance(value, type))


def _called(function: object) -> object:
    """What runs when `function` is called."""
    while isinstance(function, partial):
        function = function.func
    if inspect.isroutine(function) or isinstance(function, type):
        return function
    return type(function).__call__ if callable(function) else function


def _name(function: object) -> str:
    return str(getattr(function, "__name__", None) or repr(function))


def _shown(value: object) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 100 else text[:100] + ' ...'}"
