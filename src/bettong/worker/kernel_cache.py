"""Keeps compiled kernels between runs: compiling takes seconds, loading milliseconds.

Numba caches functions that come from files. So a kernel's source is written to a file named by everything that
its machine code depends on: source, layouts, the bytecode and constants of the user's functions, and versions. An
edited function gives another name; an old file is never wrong, only unused.
"""

import hashlib
import importlib.util
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numba
import numpy as np

_CONSTANTS = (int, float, complex, bool, str, bytes, tuple, np.generic)


def folder_of(cache: Path) -> Path | None:
    """The folder with `~` resolved; None, that is no cache, for a user without a home."""
    try:
        return cache.expanduser()
    except RuntimeError:
        return None


def fingerprint(function: Callable[..., Any], *parts: str) -> str:
    """Names the machine code of a user's function and of all that it calls, under these further parts."""
    digest = hashlib.blake2b(digest_size=16)
    for part in (*parts, *_facts(function, set()), numba.__version__, np.__version__, sys.version):
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()


def load(folder: Path, name: str, source: str, names: Mapping[str, Any]) -> Callable[..., Any] | None:
    """The function `kernel` of a source that lies in a file of the folder, with `names` as its globals.

    None when the folder cannot be written: then the kernel is compiled without a cache.
    """
    path = folder / f"kernel_{name}.py"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            with tempfile.NamedTemporaryFile("w", dir=folder, suffix=".draft", delete=False) as draft:
                draft.write(source)
            Path(draft.name).replace(path)
    except OSError:
        return None
    specification = importlib.util.spec_from_file_location(path.stem, path)
    if specification is None or specification.loader is None:
        return None
    module = importlib.util.module_from_spec(specification)
    # Numba finds the globals of what it loads by the module's name.
    sys.modules[path.stem] = module
    vars(module).update(names)
    specification.loader.exec_module(module)
    kernel: Callable[..., Any] = module.kernel
    return kernel


def _facts(function: Callable[..., Any], seen: set[object]) -> Iterator[str]:
    """What decides a function's machine code: its code, and the constants and functions it names."""
    seen.add(function)
    if not isinstance(function, FunctionType):
        yield repr(function)
        return
    code = function.__code__
    yield from _code(code)
    yield repr((function.__defaults__, function.__kwdefaults__))
    named = {name: function.__globals__.get(name) for name in code.co_names}
    named |= {
        name: cell.cell_contents
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True)
    }
    for name, value in named.items():
        yield name
        if isinstance(value, ModuleType):
            for attribute in code.co_names:
                yield from _value(getattr(value, attribute, None), seen)
        else:
            yield from _value(value, seen)


def _value(value: Any, seen: set[object]) -> Iterator[str]:
    """What Numba takes for a constant when it compiles: changed, it changes the machine code."""
    value = getattr(value, "py_func", value)  # of a function that the user compiled
    if isinstance(value, FunctionType) and not value.__module__.startswith("numpy"):
        if value not in seen:
            yield from _facts(value, seen)
    elif isinstance(value, type) and is_dataclass(value):
        yield repr([(field.name, field.type) for field in fields(value)])
        yield repr([(field.name, field.default) for field in fields(value) if field.default is not MISSING])
    elif isinstance(value, np.ndarray):
        yield f"{value.dtype.descr}{value.shape}{value.tobytes().hex()}"
    elif isinstance(value, _CONSTANTS):
        yield repr(value)


def _code(code: CodeType) -> Iterator[str]:
    yield code.co_code.hex()
    yield repr(code.co_varnames + code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code(constant)
        else:
            yield repr(constant)
