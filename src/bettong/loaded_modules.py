"""Finds modules that this process has imported. Imports none, for a name may come from a store."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType


def loaded_module(name: str) -> ModuleType | None:
    """The module of that name, if it is loaded."""
    return sys.modules.get(name)


@contextmanager
def hidden(package: str) -> Iterator[None]:
    """Within the block, imports of a package fail as if it were not installed, in all threads; unless it is loaded."""
    if package in sys.modules:
        yield
        return
    modules: dict[str, ModuleType | None] = sys.modules  # type: ignore[assignment]
    modules[package] = None  # makes its import fail
    try:
        yield
    finally:
        del sys.modules[package]
