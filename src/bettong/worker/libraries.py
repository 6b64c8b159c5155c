"""Modules that Numba knows itself: what they hold is no code of the user's, and changes with a version alone."""

_LIBRARIES = frozenset({"builtins", "cmath", "heapq", "math", "numba", "numpy", "operator", "random"})


def of_library(module: str | None) -> bool:
    """Whether a module of this name is one of them, or within one."""
    return (module or "").partition(".")[0] in _LIBRARIES
