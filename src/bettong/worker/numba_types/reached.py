"""What compiled code may name besides what Numba knows: functions of the user's, and dataclasses.

Numba asks one registry of the process what a value's type is. It is answered here for what nobody else in the process
knows, and only while a kernel is compiled: whoever uses Numba beside Bettong finds it as it is.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FunctionType
from typing import Any

import numba
from numba.core.errors import NumbaError
from numba.core.registry import cpu_target
from numba.core.typing.typeof import typeof_impl

from bettong.application.schema import schema_of
from bettong.errors import SchemaError
from bettong.worker.numba_types.messages import MadeByFields

# Of the kernel that is compiled: the functions that it reaches, each compiled once. None between kernels.
_functions: ContextVar[dict[FunctionType, Any] | None] = ContextVar("functions", default=None)


@contextmanager
def reaching() -> Iterator[None]:
    """While it lasts, code that is compiled may call plain functions and make dataclasses.

    Functions are compiled anew in each: what their names stand for may have changed in between.
    """
    token = _functions.set({})
    try:
        yield
    finally:
        _functions.reset(token)


def is_reaching() -> bool:
    """Whether a kernel is compiled just now."""
    return _functions.get() is not None


def is_known(value: Any) -> bool:
    """Whether Numba has a type for a value of itself."""
    token = _functions.set(None)
    try:
        cpu_target.typing_context.resolve_value_type(value)
    except (ValueError, TypeError, NumbaError):
        return False
    finally:
        _functions.reset(token)
    return True


_type_of_object, _type_of_class = typeof_impl.dispatch(FunctionType), typeof_impl.dispatch(type)


@typeof_impl.register(FunctionType)
def _type_of_function(function: FunctionType, context: Any) -> Any:
    functions = _functions.get()
    if functions is None or is_known(function):
        return _type_of_object(function, context)
    if function not in functions:
        functions[function] = numba.njit(function)
    return numba.typeof(functions[function])


@typeof_impl.register(type)
def _type_of_maker(value: type[Any], context: Any) -> Any:
    if is_reaching() and getattr(
        value, "_field_defaults", None
    ):  # a named tuple: Numba knows those without defaults
        return MadeByFields(value)
    if not is_reaching() or is_known(value):
        return _type_of_class(value, context)
    try:
        schema_of(value)
    except SchemaError:
        return None
    return MadeByFields(value)
