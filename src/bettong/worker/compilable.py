"""A user's function made fit for Numba, which knows neither dataclasses nor text of a fixed width.

| the function has                   | its copy has                                            |
| ---------------------------------- | ------------------------------------------------------- |
| `Rejected(...)`, a dataclass       | a named tuple of its fields, with the same defaults     |
| `"IBM"`, a text constant           | `b"IBM"`: the text of messages and states is bytes here |
| `unix_ns(...)`, a function         | that function, made fit and compiled                    |
| `limits.LEAST`, of a module        | the same of what the module holds                       |

Comprehensions, lambdas and inner functions are code objects of their own, among the constants of the code around them:
what is said here holds for them too. The copy keeps the code, so an error of Numba names the user's own lines.
"""

import dis
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import MISSING, fields
from enum import EnumMeta
from itertools import pairwise
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numba
import numpy as np
from numba.core.dispatcher import Dispatcher

from bettong.application.schema import Schema, schema_of
from bettong.application.ways import Way, refusal
from bettong.errors import ApplicationError, SchemaError

# Modules whose names Numba knows itself, by the object: they stay what they are.
LIBRARIES = frozenset({"builtins", "cmath", "heapq", "math", "numba", "numpy", "operator", "random"})
_GLOBALS = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})
_LOADS = _GLOBALS | {"LOAD_DEREF", "LOAD_CLASSDEREF"}
_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
REMEDY = "Remove @bettong.compiled, or set BETTONG_COMPILED=off, to run it as plain Python"
# What makes text in compiled code.
_MAKERS = frozenset({"chr", "repr", "str"})


class _TextError(Exception):
    """A function names text that cannot be made bytes; where, if it is known."""

    def __init__(self, what: str, file: str | None = None, line: int | None = None) -> None:
        super().__init__(what)
        self.file, self.line = file, line


class Copies:
    """Copies of functions, of all that they call, and of message classes: one of each, so that they fit together."""

    def __init__(self) -> None:
        self._functions: dict[FunctionType, Callable[..., Any]] = {}
        self._classes: dict[Schema, Any] = {}
        self._checked: set[FunctionType] = set()

    def of_function(self, function: FunctionType) -> Callable[..., Any]:
        """The copy, with a Numba dispatcher around it; nothing is compiled yet."""
        if function in self._functions:
            return self._functions[function]
        names = dict(function.__globals__)
        cells = [CellType() for _ in function.__closure__ or ()]
        try:
            _check_made(function)
            copy = FunctionType(
                _with_text_as_bytes(function.__code__),
                names,
                function.__name__,
                self._value(function.__defaults__),
                tuple(cells),
            )
            compiled: Callable[..., Any] = numba.njit(copy)
            self._functions[function] = compiled
            self._fit_names(function, names, cells)
        except _TextError as error:
            reason = f"{error}. {REMEDY}"
            raise refusal(function, Way.COMPILED, reason, file=error.file, line=error.line) from None
        return compiled

    def of_class(self, schema: Schema) -> Any:
        """A named tuple of a schema's fields."""
        if schema not in self._classes:
            names = [field.name for field in schema.fields]
            try:
                self._classes[schema] = namedtuple(schema.name, names)  # noqa: PYI024 - its fields are not known here
            except ValueError as error:
                raise ApplicationError(f"compiled: {schema.name}: {error}") from None
        return self._classes[schema]

    def _fit_names(self, function: FunctionType, names: dict[str, Any], cells: list[CellType]) -> None:
        found = {name: self._value(value) for name, value in outside(function).items()}
        names.update((name, value) for name, value in found.items() if name in names)
        for cell, name in zip(cells, function.__code__.co_freevars, strict=True):
            if name in found:
                cell.cell_contents = found[name]
        for name, *attributes in reads(function.__code__):
            value = found.get(name)
            for attribute in attributes:
                value = getattr(value, attribute, None) if isinstance(value, _Module) else None

    def _value(self, value: Any) -> Any:
        if isinstance(value, FunctionType) and not of_library(value.__module__):
            return self.of_function(value)
        if isinstance(value, str):
            return value.encode()
        if isinstance(value, tuple):
            fit = map(self._value, value)
            return value._make(fit) if hasattr(value, "_make") else tuple(fit)
        if isinstance(value, np.ndarray) and value.dtype.kind == "U":
            return np.char.encode(value, "utf-8")
        if isinstance(value, ModuleType) and not of_library(value.__name__):
            return _Module(value, self._value)
        _check_text(value)
        if isinstance(value, Dispatcher) and not of_library(value.py_func.__module__):
            self._check_users(value.py_func)
        if isinstance(value, type):
            try:
                return self._maker(schema_of(value))
            except SchemaError:
                return value
        return value

    def _check_users(self, function: FunctionType) -> None:
        """Refuses text in a function that the user compiled: it stays text there, where that of messages is bytes."""
        if function in self._checked:  # or is being checked: functions may call one another
            return
        self._checked.add(function)
        _check_made(function)
        values = outside(function)
        named = [
            of_module(values[name], attributes)
            for name, *attributes in reads(function.__code__)
            if name in values
        ]
        for value in named:
            self._value(value)
        if any(map(_has_text, (*named, *(function.__defaults__ or ()), *_loaded(function.__code__)))):
            raise _TextError(
                f"{function.__name__!r}, compiled by numba.njit, has text; remove numba.njit there"
            )

    def _maker(self, schema: Schema) -> Any:
        """What the class's name stands for: the named tuple, or where fields have defaults a function to make it."""
        made = self.of_class(schema)
        defaults = {
            field.name: self._value(field.default)
            for field in fields(schema.message)
            if field.default is not MISSING
        }
        if not defaults:
            return made
        names = [field.name for field in schema.fields]
        parameters = ", ".join(f"{name}=defaults[{name!r}]" if name in defaults else name for name in names)
        namespace = {"made": made, "defaults": defaults}
        exec(f"def make({parameters}):\n    return made({', '.join(names)})\n", namespace)  # noqa: S102 - names of fields only
        return numba.njit(namespace["make"])


def _check_text(value: Any) -> None:
    """Refuses text that cannot be made bytes where it stands: Numba would find it different from any bytes."""
    kind = value if isinstance(value, type) else type(value)
    members: Mapping[str, Any] = kind.__members__ if isinstance(kind, EnumMeta) else {}
    if any(_has_text(each.value) for each in members.values()):
        what = f"the enum {kind.__qualname__} has text for values; give it numbers"
    elif any(map(_has_text, getattr(kind, "_field_defaults", {}).values())):
        what = f"the named tuple {kind.__qualname__} has text for a default; give it in each call"
    else:
        return
    raise _TextError(f"{what}, or use text constants")


def _check_made(function: FunctionType) -> None:
    """Refuses to make text: no bytes would equal it. As an argument or annotation the names do no harm."""
    for code in codes(function.__code__):
        for step in dis.get_instructions(code):
            is_called = step.opname == "LOAD_GLOBAL" and step.arg is not None and step.arg & 1
            if step.opname.startswith("FORMAT_"):
                what = "an f-string"
            elif is_called and step.argval in _MAKERS and step.argval not in function.__globals__:
                what = f"{step.argval}()"
            else:
                continue
            what = f"{what} makes text, which would equal no text of a message; compare the value itself"
            raise _TextError(what, code.co_filename, step.positions.lineno if step.positions else None)


def _loaded(code: CodeType) -> Iterator[Any]:
    """The constants that code uses, but for those that exceptions say: they are compared with nothing."""
    for each in codes(code):
        steps = [
            step for step in dis.get_instructions(each) if step.opname not in {"EXTENDED_ARG", "PRECALL"}
        ]
        for place, step in enumerate(steps):
            raised = [after.opname for after in steps[place + 1 : place + 3]] == ["CALL", "RAISE_VARARGS"]
            if step.opname == "LOAD_CONST" and not raised:
                yield step.argval


def _has_text(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return bool(value.dtype.kind == "U")
    return any(map(_has_text, value)) if isinstance(value, tuple | frozenset) else isinstance(value, str)


class _Module(ModuleType):
    """A module whose attributes are made fit when they are asked for."""

    def __init__(self, original: ModuleType, fit: Callable[[Any], Any]) -> None:
        super().__init__(original.__name__)
        self.__original, self.__fit = original, fit

    def __getattr__(self, name: str) -> Any:
        value = self.__dict__[name] = self.__fit(getattr(self.__original, name))
        return value


def of_library(module: str | None) -> bool:
    """Whether a module of this name is one that Numba knows."""
    return (module or "").partition(".")[0] in LIBRARIES


def codes(code: CodeType) -> Iterator[CodeType]:
    """A code object, and those of comprehensions, lambdas and functions within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


def reads(code: CodeType) -> Iterator[tuple[str, ...]]:
    """Each name that code takes from outside itself, with the attributes taken of it: `("limits", "LEAST")`.

    Names that nested code takes from the code around it are among them.
    """
    for each in codes(code):
        chain: tuple[str, ...] = ()
        for step in dis.get_instructions(each):
            if chain and step.opname in _ATTRIBUTES:
                chain += (step.argval,)
            elif step.opname != "EXTENDED_ARG":
                if chain:
                    yield chain
                chain = (step.argval,) if step.opname in _LOADS else ()


def outside(function: FunctionType) -> Mapping[str, Any]:
    """What the names that a function reads stand for, in its module or around it; not Python's own nor variables."""
    steps = (step for code in codes(function.__code__) for step in dis.get_instructions(code))
    named = {step.argval for step in steps if step.opname in _GLOBALS} & function.__globals__.keys()
    found = {name: function.__globals__[name] for name in named}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # nothing was given to it yet
            found[name] = cell.cell_contents
    return found


def of_module(value: Any, attributes: list[str]) -> Any:
    """What a chain of attributes stands for in a user's modules; of anything else, all is told at once."""
    for attribute in attributes:
        if not isinstance(value, ModuleType) or of_library(value.__name__):
            break
        value = getattr(value, attribute, None)
    return value


def _with_text_as_bytes(code: CodeType) -> CodeType:
    """The code with its text constants as bytes, in tuples and in nested code as well; names of arguments stay text."""
    steps = [step for step in dis.get_instructions(code) if step.opname != "EXTENDED_ARG"]
    values, names = set(), set()
    for step, following in pairwise(steps):
        if step.opname == "KW_NAMES" or following.opname == "BUILD_CONST_KEY_MAP":
            names.add(step.arg)
        elif step.opname == "LOAD_CONST":
            values.add(step.arg)
    for place, constant in enumerate(code.co_consts):
        if place in values & names and constant != _as_bytes(constant):
            raise _TextError(f"{constant} are both names and text; let a constant of the module be that text")
    constants = [
        _as_bytes(constant) if place in values else constant for place, constant in enumerate(code.co_consts)
    ]
    return code.replace(co_consts=tuple(constants))


def _as_bytes(constant: Any) -> Any:
    if isinstance(constant, str):
        return constant.encode()
    if isinstance(constant, CodeType):
        return _with_text_as_bytes(constant)
    return tuple(map(_as_bytes, constant)) if isinstance(constant, tuple) else constant
