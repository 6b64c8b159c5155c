"""One function in two execution modes: a mark changes the function that it is put on, so a twin gets it."""

from collections.abc import Callable
from types import FunctionType
from typing import Any

import bettong


def twin(function: Callable[..., Any]) -> Callable[..., Any]:
    """A second function of the same code and name."""
    assert isinstance(function, FunctionType)
    made = FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__)
    made.__annotations__ = function.__annotations__
    made.__module__, made.__qualname__ = function.__module__, function.__qualname__
    return made


def compiled_twin(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same, compiled."""
    return bettong.compiled(twin(function))
