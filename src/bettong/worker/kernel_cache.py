"""Keeps compiled kernels between runs: compiling takes seconds, loading milliseconds.

Numba caches functions that come from files. So a kernel's source is written to a file named by everything that
its machine code depends on: source, layouts, versions, and of the user's functions and all that they call the
bytecode, constants, and what the names in it stand for. An edited function gives another name; an old file is never
wrong, only unused, and removed in time. Where a name stands for something that only Numba can read (an object of a
class of Numba's own making, a C function of another library, a function as an option of `numba.njit`), there is no
name, and the kernel is compiled each time.
What Numba has been taught besides (`numba.extending.overload`) is taken for a part of a library that does not change.
"""

import hashlib
import importlib.util
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from enum import Enum, EnumMeta
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numba
import numpy as np
from numba.core.dispatcher import Dispatcher

from bettong.worker.compilable import codes, of_library, of_module, outside, reads

_CONSTANTS = frozenset({int, float, complex, bool, str, bytes, range, type(None), type(...)})

# A kernel that no run has loaded for this long is removed when another one is added.
_UNUSED_S_MAX = 30 * 24 * 3600


class _UnknownError(Exception):
    """A value decides the machine code, in a way that cannot be read off it."""


def folder_of(cache: Path) -> Path | None:
    """The folder with `~` resolved; None, that is no cache, for a user without a home."""
    try:
        return cache.expanduser()
    except RuntimeError:
        return None


def fingerprint(function: Callable[..., Any], *parts: str) -> str | None:
    """Names the machine code of a function made fit for Numba, and of all that it calls, under these further parts.

    None when something that decides the machine code cannot be known.
    """
    digest = hashlib.blake2b(digest_size=16)
    try:
        for part in (*parts, *_facts(function, {}), numba.__version__, np.__version__, sys.version):
            digest.update(part.encode() + b"\0")
    except _UnknownError:
        return None
    return digest.hexdigest()


def load(folder: Path, name: str, source: str, names: Mapping[str, Any]) -> Callable[..., Any] | None:
    """The function `kernel` of a source that lies in a file of the folder, with `names` as its globals.

    None when the folder cannot be written, or another process removes that file at this moment: then the kernel is
    compiled without a cache.
    """
    path = folder / f"kernel_{name}.py"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        is_new = not path.exists()
        if is_new:
            with tempfile.NamedTemporaryFile("w", dir=folder, suffix=".draft", delete=False) as draft:
                draft.write(source)
            Path(draft.name).replace(path)
    except OSError:
        return None
    with suppress(OSError):  # a folder of another user's, or another process removes the same
        # Noted beside it: Numba takes a file of another time of change for another file.
        used = path.with_suffix(".used")
        used.touch()
        if is_new:
            _remove_unused(folder, before_s=used.stat().st_mtime - _UNUSED_S_MAX)
    specification = importlib.util.spec_from_file_location(path.stem, path)
    if specification is None or specification.loader is None:
        return None
    module = importlib.util.module_from_spec(specification)
    # Numba finds the globals of what it loads by the module's name.
    sys.modules[path.stem] = module
    vars(module).update(names)
    try:
        specification.loader.exec_module(module)
    except OSError:
        return None
    kernel: Callable[..., Any] = module.kernel
    return kernel


def _remove_unused(folder: Path, *, before_s: float) -> None:
    """Removes kernels last loaded before that time, with their machine code if Numba keeps it beside them."""
    for path in folder.glob("kernel_*.py"):
        files = list(folder.glob(f"{path.stem}.*"))
        # There are none where another process has just removed them.
        if max((each.stat().st_mtime for each in files), default=before_s) < before_s:
            for each in (*folder.glob(f"__pycache__/{path.stem}.*"), *files):
                each.unlink(missing_ok=True)


def _facts(value: Any, seen: dict[object, int]) -> Iterator[str]:
    """What Numba takes of a value when it compiles: changed, it changes the machine code.

    `seen`: functions that have been told, by number, for they may call one another.
    """
    if isinstance(value, Dispatcher):
        yield _told(sorted(value.targetoptions.items()))
        # Signatures that the user gave: else Numba adds one with every call that it compiles.
        given = not value._can_compile  # type: ignore[attr-defined]  # noqa: SLF001
        yield repr((value.locals, value.signatures if given else None))
        value = value.py_func
    kind = type(value)
    yield kind.__qualname__
    if isinstance(value, FunctionType) and not of_library(value.__module__):
        yield from _function(value, seen)
    elif isinstance(value, type):
        yield from _class(value, seen)
    elif isinstance(value, Enum):
        yield value.name
        yield from _class(kind, seen)
    elif isinstance(value, tuple):
        yield from _class(kind, seen)
        yield str(len(value))
        for each in value:
            yield from _facts(each, seen)
    elif isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
        yield f"{value.dtype!r}{value.shape}{value.strides}{value.tobytes().hex()}"
    elif kind in _CONSTANTS or isinstance(value, np.dtype | numba.types.Type):
        yield repr(value)
    elif isinstance(value, ModuleType) and of_library(value.__name__):
        yield value.__name__
    elif of_library(getattr(value, "__module__", None)) and _is_found_by_name(value):
        yield f"{value.__module__}.{value.__name__}"
    else:
        raise _UnknownError


def _function(function: FunctionType, seen: dict[object, int]) -> Iterator[str]:
    if function in seen:
        yield str(seen[function])
        return
    seen[function] = len(seen)
    for code in codes(function.__code__):
        yield from _code(code)
    for value in (function.__defaults__ or (), *(function.__kwdefaults__ or {}).items()):
        yield from _facts(value, seen)
    values = outside(function)
    for name, *attributes in sorted(set(reads(function.__code__))):
        yield name
        if name in values:
            yield from _facts(of_module(values[name], attributes), seen)


def _class(value: type[Any], seen: dict[object, int]) -> Iterator[str]:
    yield f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, EnumMeta):
        for name, member in value.__members__.items():  # a second name of a member is among them
            yield name
            yield from _facts(member.value, seen)
    elif issubclass(value, tuple) and hasattr(value, "_fields"):
        yield repr(value._fields)
        for each in getattr(value, "_field_defaults", {}).items():
            yield from _facts(each, seen)
    elif not of_library(value.__module__) and not (
        # Machine code holds an exception by its name alone, where it has one.
        issubclass(value, BaseException) and _is_found_by_name(value)
    ):
        raise _UnknownError


def _is_found_by_name(value: Any) -> bool:
    name = getattr(value, "__name__", "")
    return getattr(sys.modules.get(value.__module__), name, None) is value


def _code(code: CodeType) -> Iterator[str]:
    yield code.co_code.hex()
    yield code.co_exceptiontable.hex()
    yield repr((code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags))
    yield repr((code.co_varnames, code.co_cellvars, code.co_freevars, code.co_names))
    for constant in code.co_consts:
        yield _told(constant) if not isinstance(constant, CodeType) else "code"


def _told(value: Any) -> str:
    """A constant or an option as it is told in every run: sets of text have another order in each."""
    if isinstance(value, set | frozenset):
        return repr(sorted(map(_told, value)))
    if isinstance(value, tuple | list):
        return repr(list(map(_told, value)))
    if isinstance(value, dict):
        return _told(sorted(value.items()))
    if type(value) not in _CONSTANTS:
        raise _UnknownError
    return repr(value)
