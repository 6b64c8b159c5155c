"""The modules that this process has loaded. Loads none: a name may come from a store."""

import sys
from types import ModuleType


def loaded_module(name: str) -> ModuleType | None:
    """The module of that name, if it is loaded."""
    return sys.modules.get(name)
