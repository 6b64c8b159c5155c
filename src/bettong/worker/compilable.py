"""A user's function made fit for Numba, which knows neither dataclasses nor text of a fixed width.

| the function has                   | its copy has                                            |
| ---------------------------------- | ------------------------------------------------------- |
| `Rejected(...)`, a dataclass       | a named tuple of its fields, which needs no memory      |
| `"IBM"`, a text constant           | `b"IBM"`: the text of messages and states is bytes here |
| `unix_ns(...)`, a function         | that function, made fit and compiled                    |

The copy keeps the code, so an error of Numba names the user's own lines.
"""

import dis
from collections import namedtuple
from collections.abc import Callable
from types import CellType, CodeType, FunctionType
from typing import Any

import numba

from bettong.application.schema import Schema, schema_of
from bettong.errors import SchemaError


def fit_for_numba(function: FunctionType) -> Callable[..., Any]:
    """The copy, with a Numba dispatcher around it; nothing is compiled yet."""
    return _Copies().of(function)


def tuple_of(schema: Schema) -> Any:
    """A named tuple of a schema's fields."""
    return namedtuple(schema.name, [field.name for field in schema.fields])  # type: ignore[misc]  # noqa: PYI024


class _Copies:
    """Copies of a function and of all that it calls: one of each, so that functions may call one another."""

    def __init__(self) -> None:
        self._made: dict[FunctionType, Callable[..., Any]] = {}

    def of(self, function: FunctionType) -> Callable[..., Any]:
        if function in self._made:
            return self._made[function]
        names = dict(function.__globals__)
        cells = [CellType() for _ in function.__closure__ or ()]
        code = _with_text_as_bytes(function.__code__)
        copy = FunctionType(code, names, function.__name__, function.__defaults__, tuple(cells))
        copy.__kwdefaults__ = function.__kwdefaults__
        compiled: Callable[..., Any] = numba.njit(copy)
        self._made[function] = compiled
        for name in function.__code__.co_names:
            if name in names:
                names[name] = self._value(names[name])
        for cell, original in zip(cells, function.__closure__ or (), strict=True):
            cell.cell_contents = self._value(original.cell_contents)
        return compiled

    def _value(self, value: Any) -> Any:
        if isinstance(value, FunctionType):
            return self.of(value)
        if isinstance(value, str):
            return value.encode()
        if isinstance(value, type):
            try:
                return tuple_of(schema_of(value))
            except SchemaError:
                return value
        return value


def _with_text_as_bytes(code: CodeType) -> CodeType:
    """The code with its text constants as bytes, those in tuples that `in` looks into as well."""
    steps = list(dis.get_instructions(code))
    searched = {
        step.arg for step, following in zip(steps, steps[1:], strict=False) if following.opname == "CONTAINS_OP"
    }
    constants = [
        _as_bytes(constant) if isinstance(constant, str) or place in searched else constant
        for place, constant in enumerate(code.co_consts)
    ]
    return code.replace(co_consts=tuple(constants))


def _as_bytes(constant: Any) -> Any:
    if isinstance(constant, str):
        return constant.encode()
    return tuple(map(_as_bytes, constant)) if isinstance(constant, tuple) else constant
