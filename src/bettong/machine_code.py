"""How our own machine code is compiled: by Numba, once a machine, without counting references to arrays.

Numba counts a reference to each array that a function or a loop's body is given, with an atomic instruction: in kernels
that hand on what they are given, for each row or key. Ours allocate nothing and are called by Python, which holds all
arrays until they return: so they need no counts (see docs/performance-profiles.md).
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numba

from bettong.blas_later import defer_blas

defer_blas()

_Function = TypeVar("_Function", bound=Callable[..., Any])


def kernel(function: _Function) -> _Function:
    """A function that Python or another kernel calls; it allocates no array, which Numba refuses, and returns none."""
    compiled: _Function = numba.njit(cache=True, _nrt=False)(function)  # type: ignore[call-overload] # no stub has it
    return compiled


def inlined(function: _Function) -> _Function:
    """A kernel that becomes a part of those that call it."""
    compiled: _Function = numba.njit(cache=True, inline="always", _nrt=False)(function)  # type: ignore[call-overload]
    return compiled


def allocating(function: _Function) -> _Function:
    """A kernel that makes arrays or copies parts of one into another, so references are counted."""
    compiled: _Function = numba.njit(cache=True, _nrt=True)(function)  # type: ignore[call-overload]
    return compiled
