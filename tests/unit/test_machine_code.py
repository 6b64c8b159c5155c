"""Kernels count no references to arrays, and those that make arrays say so."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from bettong.machine_code import allocating, kernel
from bettong.worker.arrays import with_rows


def _compiled(like: Callable[..., Any], function: Callable[..., Any]) -> Any:
    """A function with the options of a decorator, but for the cache: Numba's would give one that has others."""
    options = like(function).targetoptions
    return numba.njit(**{name: given for name, given in options.items() if name != "nopython"})(function)


def _last_of(arrays: tuple[Any, Any], numbers: Any) -> Any:
    found = arrays[0]
    for number in numbers:
        if number:
            found = arrays[1]
    return found[-1]


def _doubled(values: Any) -> Any:
    found = np.zeros_like(values)
    found[:] = 2 * values
    return found


def test_a_kernel_counts_no_references_where_numba_does() -> None:
    arrays, counts = (np.arange(3), np.arange(5)), {}
    for name, compiled in (("ours", _compiled(kernel, _last_of)), ("Numba's", numba.njit(_last_of))):
        assert compiled(arrays, np.arange(2)) == 4
        (code,) = compiled.inspect_llvm().values()
        counts[name] = code.count("call void @NRT_incref")
    assert counts["ours"] == 0
    assert counts["Numba's"] > 0


def test_a_kernel_that_makes_an_array_is_refused_and_one_that_says_so_is_not() -> None:
    numbers = np.arange(3)
    with pytest.raises(numba.core.errors.NumbaError):
        _compiled(kernel, _doubled)(numbers)
    assert _compiled(allocating, _doubled)(numbers).tolist() == [0, 2, 4]


def test_an_array_with_more_rows_has_its_own_and_behind_them_zeros() -> None:
    found = with_rows(np.array([[1, 2], [3, 4]], np.int32), 3)
    assert found.tolist() == [[1, 2], [3, 4], [0, 0]]
    assert found.dtype == np.int32


def test_only_users_functions_are_compiled_otherwise() -> None:
    sources = Path(__file__).parents[2] / "src" / "bettong"
    found = {path.stem for path in sources.rglob("*.py") if "numba.njit(" in path.read_text()}
    assert found == {"machine_code", "kernel", "kept_fractions"}
