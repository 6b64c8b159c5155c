"""Modules that Numba itself supports: nothing in them is user code, and they change only with a version."""

_LIBRARIES = frozenset({"builtins", "cmath", "heapq", "math", "numba", "numpy", "operator", "random"})


def of_library(module: str | None) -> bool:
    """Whether a module of this name is one of them, or within one."""
    return (module or "").partition(".")[0] in _LIBRARIES
