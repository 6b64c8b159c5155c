"""Numba loads scipy's linear algebra before its first kernel, only to see that it is there: 9 MB and 0.1 s of CPU.

A kernel that multiplies matrices looks for it again when it is compiled, and loads it then.
"""

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from types import ModuleType

# Which asks, while it is loaded, whether there is a BLAS.
_ASKING = "numba.np.arraymath"


def defer_blas() -> None:
    """Call it before Numba loads what its kernels need, which it does for the first one; no effect afterwards."""
    if _ASKING not in sys.modules:
        sys.meta_path.insert(0, _Watch())


class _Watch:
    """A finder of Python's imports that finds nothing; it is gone when what it waits for is loaded."""

    def find_spec(self, name: str, _path: Sequence[str] | None, _target: ModuleType | None = None) -> None:
        if name == _ASKING:
            sys.meta_path.remove(self)
            _answer_once()


def _answer_once() -> None:
    from numba.np import linalg

    thorough = linalg.ensure_blas

    def ensure_blas() -> None:
        """The first question is that of the module which is being loaded. Raises ImportError."""
        if linalg.ensure_blas is not ensure_blas:
            thorough()  # type: ignore[no-untyped-call]
            return
        linalg.ensure_blas = thorough
        if find_spec("scipy") is None:
            raise ImportError("scipy is not installed")

    linalg.ensure_blas = ensure_blas
