"""The modules that this process has loaded. Loads none: a name may come from a store."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType


def loaded_module(name: str) -> ModuleType | None:
    """The module of that name, if it is loaded."""
    return sys.modules.get(name)


@contextmanager
def hidden(package: str) -> Iterator[None]:
    """While the block lasts a package is as if it were not installed, for all threads; unless it is loaded already."""
    if package in sys.modules:
        yield
        return
    modules: dict[str, ModuleType | None] = sys.modules  # type: ignore[assignment]
    modules[package] = None  # Python's own sign for what must not be found
    try:
        yield
    finally:
        del sys.modules[package]
