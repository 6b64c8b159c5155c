"""Lets compiled code call the user's plain functions and dataclasses, which Numba does not know.

Numba looks up the type of a value in a registry of the process. We add types for values that Numba has none for, and
only while a kernel is compiled: for other users of Numba in the process it is unchanged.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FunctionType
from typing import Any

import numba
from numba.core.errors import NumbaError
from numba.core.registry import CPUDispatcher, cpu_target
from numba.core.typing.typeof import typeof_impl

from bettong.errors import SchemaError
from bettong.schema.schema import schema_of
from bettong.worker.numba_types.kept_fractions import checked_as, compiled_later
from bettong.worker.numba_types.messages import ConstructorType

# The functions that the kernel calls, each compiled once. None while no kernel is compiled.
_functions: ContextVar[dict[Any, Any] | None] = ContextVar("functions", default=None)
# Packages whose functions set no field of a state.
_OTHERS = ("numba", "bettong")


@contextmanager
def kernel_compilation() -> Iterator[None]:
    """Within it, compiled code may call plain functions and make dataclasses.

    Each compilation compiles the functions again: the globals that they use may have changed in between.
    """
    token = _functions.set({})
    try:
        yield
    finally:
        _functions.reset(token)


def is_compiling_kernel() -> bool:
    """Whether a kernel is being compiled in this context."""
    return _functions.get() is not None


def numba_knows(value: Any) -> bool:
    """Whether Numba has a type for a value without our help."""
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
    if functions is None or numba_knows(function):
        return _type_of_object(function, context)
    if function not in functions:
        functions[function] = compiled_later(function)
    return numba.typeof(functions[function])


@typeof_impl.register(CPUDispatcher)
def _type_of_own(own: Any, _context: Any) -> Any:
    """The type of a user's own `numba.njit`. Functions of libraries are left as they are."""
    functions = _functions.get()
    if functions is None or own.py_func.__module__.partition(".")[0] in _OTHERS:
        return own._numba_type_
    if own not in functions:
        functions[own] = checked_as(own) or own
    return functions[own]._numba_type_


@typeof_impl.register(type)
def _type_of_constructor(value: type[Any], context: Any) -> Any:
    if not is_compiling_kernel():
        return _type_of_class(value, context)
    if getattr(value, "_field_defaults", None):  # of a named tuple, whose defaults Numba does not know
        return ConstructorType(value)
    if numba_knows(value):
        return _type_of_class(value, context)
    try:
        schema_of(value)
    except SchemaError:
        return None
    return ConstructorType(value)
