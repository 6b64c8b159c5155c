"""Compiles Bettong's own kernels: with Numba, once a machine, without reference counts of arrays.

Numba counts references to each array that is passed to a function or used in a loop, with an atomic instruction: in
kernels that pass arrays on, for each row or key. Bettong's kernels allocate nothing and are called by Python, which
holds all arrays until they return, so they need no counts (see docs/performance-profiles.md).
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numba

from bettong.blas_later import defer_blas

defer_blas()

_Function = TypeVar("_Function", bound=Callable[..., Any])


def kernel(function: _Function) -> _Function:
    """Compiles a function for Python or kernels. It must not allocate arrays, which Numba rejects, nor return any."""
    compiled: _Function = numba.njit(cache=True, _nrt=False)(function)  # type: ignore[call-overload] # no stub has it
    return compiled


def inlined(function: _Function) -> _Function:
    """Compiles a kernel that is inlined into its callers."""
    compiled: _Function = numba.njit(cache=True, inline="always", _nrt=False)(function)  # type: ignore[call-overload]
    return compiled


def allocating(function: _Function) -> _Function:
    """Compiles a kernel that allocates arrays, or copies between slices of them, so references are counted."""
    compiled: _Function = numba.njit(cache=True, _nrt=True)(function)  # type: ignore[call-overload]
    return compiled
