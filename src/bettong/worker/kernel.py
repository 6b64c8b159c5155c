"""Compiles a user's stateful function, with a loop around it, over the columns of a frame.

The function is written for message and state objects. Here the message is a named tuple of the row's values,
which Numba builds without memory, and the state is a record of a numpy array, changed in place. Where the
function says `Rejected(...)`, the compiled one builds a named tuple of that schema's fields.
"""

import types
from collections import namedtuple
from collections.abc import Callable
from typing import Any, get_type_hints

import numba
import numpy as np
from numba.core.errors import NumbaError

from bettong.application.fields import Field, Kind
from bettong.application.schema import Schema, schema_of
from bettong.errors import ApplicationError, SchemaError

Kernel = Callable[..., None]


def state_dtype(schema: Schema) -> np.dtype[Any]:
    """The record of one key's state: as the schema's, with true booleans."""
    formats = [(field.name, "?" if field.kind is Kind.BOOL else field.dtype) for field in schema.fields]
    return np.dtype(formats, align=True)


def compile_kernel(function: Callable[..., Any], takes: Schema, state: Schema, gives: Schema) -> Kernel:
    """`kernel(start, columns ..., slots, states, cursor, rows, results ...)`, compiled.

    Folds the rows from `start` on. `cursor[0]` is the row at work, `cursor[1]` the number of results;
    `rows[k]` is the row that result k comes from. What the function raises passes through, with the cursor
    telling where. Raises ApplicationError, naming function and line, when it cannot be compiled.
    """
    compiled = numba.njit(_over_tuples(function, {}))
    namespace = {"function": compiled, "Message": _tuple_of(takes)}
    silent = get_type_hints(function)["return"] is type(None)
    exec(_source(takes, gives, silent=silent), namespace)  # noqa: S102 - made below, from names of fields only
    try:
        signature = _signature(takes, state_dtype(state), gives)
        return numba.njit(signature, nogil=True)(namespace["kernel"])  # type: ignore[no-any-return]
    except NumbaError as error:
        raise ApplicationError(_explain(function, error)) from None


def _source(takes: Schema, gives: Schema, *, silent: bool) -> str:
    """The loop; without the part that stores results when the function never returns one."""
    columns = [f"c{place}" for place in range(len(takes.fields))]
    results = [f"r{place}" for place in range(len(gives.fields))]
    values = ", ".join(
        f"{column}[row] != 0" if field.kind is Kind.BOOL else f"{column}[row]"
        for column, field in zip(columns, takes.fields, strict=True)
    )
    stores = "\n            ".join(
        f"{result}[count] = result.{field.name}"
        for result, field in zip(results, gives.fields, strict=True)
    )
    head = f"""
def kernel(start, {", ".join(columns)}, slots, states, cursor, rows, {", ".join(results)}):
    count = cursor[1]
    for row in range(start, len(slots)):
        cursor[0] = row
        result = function(Message({values}), states[slots[row]])
"""
    tail = f"""
        if result is not None:
            {stores}
            rows[count] = row
            count += 1
            cursor[1] = count
"""
    return head if silent else head + tail


def _signature(takes: Schema, state: np.dtype[Any], gives: Schema) -> Any:
    def column(field: Field, *, readonly: bool) -> Any:
        return numba.types.Array(numba.from_dtype(field.dtype), 1, "C", readonly=readonly)

    def vector(kind: Any, *, readonly: bool = False) -> Any:
        return numba.types.Array(kind, 1, "C", readonly=readonly)

    return numba.void(
        numba.int64,
        *(column(field, readonly=True) for field in takes.fields),
        vector(numba.int32),
        vector(numba.from_dtype(state)),
        vector(numba.int64),
        vector(numba.int64),
        *(column(field, readonly=False) for field in gives.fields),
    )


def _tuple_of(schema: Schema) -> Any:
    return namedtuple(schema.name, [field.name for field in schema.fields])  # type: ignore[misc]  # noqa: PYI024


def _over_tuples(function: Callable[..., Any], seen: dict[object, Any]) -> Any:
    """The function with message classes replaced by named tuples, and the functions it calls compiled."""
    names = function.__code__.co_names
    replaced = dict(function.__globals__)
    copy = types.FunctionType(
        function.__code__, replaced, function.__name__, function.__defaults__, function.__closure__
    )
    seen[function] = copy
    for name in names:
        value = replaced.get(name)
        if isinstance(value, types.FunctionType):
            replaced[name] = numba.njit(seen[value] if value in seen else _over_tuples(value, seen))
        elif isinstance(value, type):
            try:
                replaced[name] = _tuple_of(schema_of(value))
            except SchemaError:
                continue
    return copy


def _explain(function: Callable[..., Any], error: NumbaError) -> str:
    code = function.__code__
    text = str(error)
    line = next(
        (
            part.split(")")[0]
            for part in text.split(f'File "{code.co_filename}", line ')[1:]
        ),
        str(code.co_firstlineno),
    ).split(":")[0].strip()
    facts = [each.strip() for each in text.splitlines() if each.strip()]
    reason = next((each for each in facts if "Error" not in each and "Failed" not in each), facts[0])
    return (
        f"{function.__name__!r} ({code.co_filename}:{line}) cannot be compiled: {reason[:300]}"
        " Remove @bettong.compiled, or set BETTONG_COMPILED=off, to run it as plain Python."
    )
