"""Fingerprints of users' functions, by which machine code of an earlier run is known to fit.

A fingerprint covers the function and all that it calls: module, byte code, constants, and what the names in it stand
for. Which names are globals and which attributes, and of what, is only in byte code, of which each CPython has its own
kind. So that is not analysed: a name counts as everything that it can be, a global of its module and an attribute of
each module that the function names. A superfluous fact compiles once more than needed; none is missing.

Where a name stands for something that only Numba can read (an object of a class of Numba's own making, a C function of
another library, a function as an option of `numba.njit`), there is no fingerprint. A value that Numba has no type for
decides nothing: code that uses it cannot be compiled. What users register themselves (`numba.extending.overload`) is
taken for a part of a library that does not change.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import MISSING, fields
from enum import Enum, EnumMeta
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numba
import numpy as np
from numba.core.dispatcher import Dispatcher

from bettong.errors import SchemaError
from bettong.loaded_modules import loaded_module
from bettong.schema.schema import schema_of
from bettong.worker.libraries import of_library
from bettong.worker.numba_types.callables import numba_knows

_CONSTANTS = frozenset({int, float, complex, bool, str, bytes, range, type(None), type(...)})


class _UnknownError(Exception):
    """A value decides the machine code in a way that cannot be determined."""


def fingerprint(function: Callable[..., Any], *parts: str) -> str | None:
    """Identifies the machine code of a function and of all that it calls.

    `parts` have to cover what does not change within a process: Bettong's own extensions of Numba, packages, Python.
    None when something that decides the machine code cannot be determined.
    """
    digest = hashlib.blake2b(digest_size=16)
    try:
        for part in (*parts, *_Facts().of(function)):
            digest.update(part.encode() + b"\0")
    except _UnknownError:
        return None
    return digest.hexdigest()


def codes(code: CodeType) -> Iterator[CodeType]:
    """A code object, and those of comprehensions, lambdas and functions within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


class _Facts:
    """Facts as text. A function, class or module is listed once, and then by its number: it may refer to itself."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}

    def of(self, value: Any, names: tuple[str, ...] = ()) -> Iterator[str]:
        """What Numba reads of a value that code with these names refers to. Raises _UnknownError."""
        if isinstance(value, Dispatcher):
            yield _stable_repr(sorted(value.targetoptions.items()))
            # Only signatures that the user declared: Numba adds one for each call that it compiles.
            given = not value._can_compile  # type: ignore[attr-defined]  # noqa: SLF001
            yield repr((value.locals, value.signatures if given else None))
            value = value.py_func
        kind = type(value)
        yield kind.__qualname__
        if _is_of_library(value):
            yield f"{value.__module__}.{value.__name__}"
        elif isinstance(value, FunctionType):
            yield from self._once(value, self._function(value))
        elif isinstance(value, type):
            yield from self._once(value, self._class(value))
        elif isinstance(value, ModuleType):
            yield from self._once((value, names), self._module(value, names))
        elif isinstance(value, Enum):
            yield value.name
            yield from self.of(kind)
        elif isinstance(value, tuple):
            yield str(len(value))
            for each in (kind, *value):
                yield from self.of(each, names)
        elif isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
            yield f"{value.dtype!r}{value.shape}{value.strides}{value.tobytes().hex()}"
        elif kind in _CONSTANTS or isinstance(value, np.dtype | numba.types.Type):
            yield repr(value)
        else:
            _check_unusable(value)

    def _once(self, key: object, facts: Iterator[str]) -> Iterator[str]:
        if key in self._numbers:
            yield str(self._numbers[key])
            return
        self._numbers[key] = len(self._numbers)
        yield from facts

    def _function(self, function: FunctionType) -> Iterator[str]:
        every = list(codes(function.__code__))
        names = tuple(sorted({name for code in every for name in code.co_names}))
        found = {name: function.__globals__[name] for name in names if name in function.__globals__}
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            with suppress(ValueError):  # the variable has no value yet
                found[f"{name} around"] = cell.cell_contents
        # Cached machine code imports the module of each function in it.
        yield str(function.__globals__.get("__name__"))
        for code in every:
            yield from _code(code)
        for value in (function.__defaults__ or (), *(function.__kwdefaults__ or {}).items()):
            yield from self.of(value)
        for name, value in found.items():
            yield name
            yield from self.of(value, names)

    def _module(self, module: ModuleType, names: tuple[str, ...]) -> Iterator[str]:
        yield module.__name__
        for name in names if not of_library(module.__name__) else ():
            if hasattr(module, name):
                yield name
                yield from self.of(getattr(module, name), names)

    def _class(self, value: type[Any]) -> Iterator[str]:
        yield f"{value.__module__}.{value.__qualname__}"
        if isinstance(value, EnumMeta):
            for name, member in value.__members__.items():  # aliases included
                yield name
                yield from self.of(member.value)
        elif issubclass(value, tuple) and hasattr(value, "_fields"):
            yield repr(value._fields)
            for each in getattr(value, "_field_defaults", {}).items():
                yield from self.of(each)
        elif (message := _message(value)) is not None:
            yield message
            for field in fields(value):
                yield from self.of(None if field.default is MISSING else (field.default,))
        elif not of_library(value.__module__) and not (
            # Machine code refers to an exception by its name alone, where it has one.
            issubclass(value, BaseException) and _is_found_by_name(value)
        ):
            _check_unusable(value)


def _check_unusable(value: Any) -> None:
    """Raises _UnknownError for a value that compiled code can use."""
    if numba_knows(value):
        raise _UnknownError


def _message(value: type[Any]) -> str | None:
    """The fields of a message class, and how its messages are compared."""
    try:
        columns = schema_of(value).fields
    except SchemaError:
        return None
    return f"{','.join(field.token for field in columns)} {value.__dataclass_params__!r}"


def _is_of_library(value: Any) -> bool:
    """Whether a library has this very value under its name: `functools.wraps` gives such names to users' functions."""
    return of_library(getattr(value, "__module__", None)) and _is_found_by_name(value)


def _is_found_by_name(value: Any) -> bool:
    name = getattr(value, "__name__", "")
    return getattr(loaded_module(value.__module__), name, None) is value


def _code(code: CodeType) -> Iterator[str]:
    yield code.co_code.hex()
    yield code.co_exceptiontable.hex()
    yield repr((code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags))
    yield repr((code.co_varnames, code.co_cellvars, code.co_freevars, code.co_names))
    for constant in code.co_consts:
        yield _stable_repr(constant) if not isinstance(constant, CodeType) else "code"


def _stable_repr(value: Any) -> str:
    """A repr that is the same in every run, unlike that of a set of text, whose order differs from run to run."""
    if isinstance(value, set | frozenset):
        return repr(sorted(map(_stable_repr, value)))
    if isinstance(value, tuple | list):
        return repr(list(map(_stable_repr, value)))
    if isinstance(value, dict):
        return _stable_repr(sorted(value.items()))
    if isinstance(value, slice):
        return _stable_repr((value.start, value.stop, value.step))
    if type(value) not in _CONSTANTS:
        raise _UnknownError
    return repr(value)
