"""A user's function made fit for Numba, which knows neither dataclasses nor text of a fixed width.

| the function has                   | its copy has                                            |
| ---------------------------------- | ------------------------------------------------------- |
| `Rejected(...)`, a dataclass       | a named tuple of its fields, with the same defaults     |
| `"IBM"`, a text constant           | `b"IBM"`: the text of messages and states is bytes here |
| `unix_ns(...)`, a function         | that function, made fit and compiled                    |

The copy keeps the code, so an error of Numba names the user's own lines.
"""

import dis
from collections import namedtuple
from collections.abc import Callable
from dataclasses import MISSING, fields
from itertools import pairwise
from types import CellType, CodeType, FunctionType
from typing import Any

import numba

from bettong.application.schema import Schema, schema_of
from bettong.errors import ApplicationError, SchemaError


class Copies:
    """Copies of functions, of all that they call, and of message classes: one of each, so that they fit together."""

    def __init__(self) -> None:
        self._functions: dict[FunctionType, Callable[..., Any]] = {}
        self._classes: dict[Schema, Any] = {}

    def of_function(self, function: FunctionType) -> Callable[..., Any]:
        """The copy, with a Numba dispatcher around it; nothing is compiled yet."""
        if function in self._functions:
            return self._functions[function]
        names = dict(function.__globals__)
        cells = [CellType() for _ in function.__closure__ or ()]
        code = _with_text_as_bytes(function.__code__)
        copy = FunctionType(code, names, function.__name__, function.__defaults__, tuple(cells))
        compiled: Callable[..., Any] = numba.njit(copy)
        self._functions[function] = compiled
        for name in function.__code__.co_names:
            if name in names:
                names[name] = self._value(names[name])
        for cell, original in zip(cells, function.__closure__ or (), strict=True):
            cell.cell_contents = self._value(original.cell_contents)
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

    def _value(self, value: Any) -> Any:
        if isinstance(value, FunctionType):
            return self.of_function(value)
        if isinstance(value, str):
            return value.encode()
        if isinstance(value, type):
            try:
                return self._maker(schema_of(value))
            except SchemaError:
                return value
        return value

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


def _with_text_as_bytes(code: CodeType) -> CodeType:
    """The code with its text constants as bytes, those in tuples that `in` looks into as well."""
    steps = list(dis.get_instructions(code))
    searched = {step.arg for step, following in pairwise(steps) if following.opname == "CONTAINS_OP"}
    constants = [
        _as_bytes(constant) if isinstance(constant, str) or place in searched else constant
        for place, constant in enumerate(code.co_consts)
    ]
    return code.replace(co_consts=tuple(constants))


def _as_bytes(constant: Any) -> Any:
    if isinstance(constant, str):
        return constant.encode()
    return tuple(map(_as_bytes, constant)) if isinstance(constant, tuple) else constant
