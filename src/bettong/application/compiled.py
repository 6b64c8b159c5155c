"""The mark of a compiled computation. Compiling itself is the worker's job."""

from collections.abc import Callable
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])
_MARK = "__bettong_compiled__"


def compiled(function: _Function) -> _Function:
    """Marks a stateful function to be compiled by Numba over the columns of a frame.

    The function stays what it is: called from Python, it does the same. Its messages and state must have
    fixed-width fields, and it returns `Message(...)` or None. Integers wrap at 64 bits instead of growing.
    """
    setattr(function, _MARK, True)
    return function


def is_compiled(function: Callable[..., Any]) -> bool:
    """Whether a function carries the mark."""
    return bool(getattr(function, _MARK, False))
