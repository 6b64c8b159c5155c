"""The mark of a compiled computation. Compiling itself is the worker's job."""

from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

from bettong.errors import ApplicationError

_Function = TypeVar("_Function", bound=Callable[..., Any])
_MARK = "__bettong_compiled__"


def compiled(function: _Function) -> _Function:
    """Marks a stateful function to be compiled by Numba over the columns of a frame.

    The function stays what it is: called from Python, it does the same. Its messages and state must have
    fixed-width fields, and it returns `Message(...)` or None. Where compiled code is not Python:

    - integers wrap at 64 bits instead of growing; those of a `u64` field are negative from 2**63 on
    - text is a sequence of UTF-8 bytes: compare it, copy it, store it; `text[0]` is a number, not a letter
    - text and bytes end before the NULs that pad them
    """
    if not isinstance(function, FunctionType):
        raise ApplicationError(
            f"@bettong.compiled: {function!r} is no plain function, which is all that can be"
        )
    setattr(function, _MARK, True)
    return function


def is_compiled(function: Callable[..., Any]) -> bool:
    """Whether a function carries the mark."""
    return bool(getattr(function, _MARK, False))
