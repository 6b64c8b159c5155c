"""Compiles a user's stateful function, with a loop around it, over the columns of a frame.

The function is written for message and state objects. Here the message is a named tuple of the row's values,
which Numba builds without memory, and the state is a record of a numpy array, changed in place. Both hold numbers
as Python does, as 64-bit integers and floats, so that arithmetic means the same; a result is checked against
its schema when it is stored.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any, cast, get_type_hints

import numba
import numpy as np
from numba.core import cgutils
from numba.np.numpy_support import carray

from bettong.application.fields import Field, Kind
from bettong.application.schema import Schema
from bettong.errors import ApplicationError
from bettong.worker import kernel_cache
from bettong.worker.compilable import Copies
from bettong.worker.compile_errors import explain
from bettong.worker.state_array import state_dtype

Kernel = Callable[..., None]


def compile_kernel(
    function: Callable[..., Any], takes: Schema, state: Schema, gives: Schema, *, cache: Path | None
) -> Kernel:
    """`kernel(start, rows, keys, columns ..., slots, states, cursor, sources, results ...)`, compiled.

    Folds the rows from `start` on. `rows` and `keys` are the lengths of the arrays after them, which are given
    as addresses: when the function raises, Numba drops what it holds without letting go of it, and a frame's
    memory would be lost with each. `cursor[0]` is the row at work, `cursor[1]` the number of results;
    `sources[k]` is the row that result k comes from. What the function raises passes through.

    Kept in the folder `cache` between runs. Raises ApplicationError, naming function and line, when it cannot be
    compiled.
    """
    names = _names(function, takes, state, gives)
    source = _source(takes, gives, silent=get_type_hints(function)["return"] is type(None))
    kernel = None
    if cache is not None:
        layouts = [",".join(field.token for field in schema.fields) for schema in (takes, state, gives)]
        kernel = kernel_cache.load(cache, kernel_cache.fingerprint(function, source, *layouts), source, names)
    address_count = len(takes.fields) + len(gives.fields) + 4
    signature = numba.void(*[numba.int64] * 3, *[numba.uintp] * address_count)
    try:
        if kernel is not None:
            return numba.njit(signature, nogil=True, cache=True)(kernel)
        exec(source, names)  # noqa: S102 - made below, from names of fields only
        return numba.njit(signature, nogil=True)(names["kernel"])
    except Exception as error:  # not all that Numba raises for wrong code is a NumbaError
        raise ApplicationError(explain(function, source, error)) from error


def _names(function: Callable[..., Any], takes: Schema, state: Schema, gives: Schema) -> dict[str, Any]:
    """What the source below finds by name."""
    types = {f"C{place}": field.dtype for place, field in enumerate(takes.fields)}
    types |= {f"R{place}": field.dtype for place, field in enumerate(gives.fields)}
    copies = Copies()
    return {
        "function": copies.of_function(cast("FunctionType", function)),  # no other can carry the mark
        "Message": copies.of_class(takes),
        "State": state_dtype(state),
        "carray": carray,
        "pointer": _pointer,
        "int64": numba.int64,
        "float64": numba.float64,
        "float32": numba.float32,
        "int32": np.int32,
        **types,
    }


def _source(takes: Schema, gives: Schema, *, silent: bool) -> str:
    """The loop; without the part that stores results when the function never returns one."""
    columns = [f"c{place}" for place in range(len(takes.fields))]
    results = [f"r{place}" for place in range(len(gives.fields))]
    arrays = [
        *(f"{name} = carray(pointer({name}_at), rows, {name.upper()})" for name in (*columns, *results)),
        "slots = carray(pointer(slots_at), rows, int32)",
        "states = carray(pointer(states_at), keys, State)",
        "cursor = carray(pointer(cursor_at), 2, int64)",
        "sources = carray(pointer(sources_at), rows, int64)",
    ]
    values = ", ".join(
        _loaded(field, f"{name}[row]") for name, field in zip(columns, takes.fields, strict=True)
    )
    addresses = ", ".join(
        f"{name}_at" for name in (*columns, "slots", "states", "cursor", "sources", *results)
    )
    lines = [
        f"def kernel(start, rows, keys, {addresses}):",
        *(f"    {line}" for line in arrays),
        "    count = cursor[1]",
        "    for row in range(start, rows):",
        "        cursor[0] = row",
        f"        result = function(Message({values}), states[slots[row]])",
    ]
    if not silent:
        lines.append("        if result is not None:")
        for name, field in zip(results, gives.fields, strict=True):
            lines.extend(f"            {line}" for line in _stored(field, name))
        lines += [
            "            sources[count] = row",
            "            count += 1",
            "            cursor[1] = count",
        ]
    return "\n".join(lines) + "\n"


def _loaded(field: Field, value: str) -> str:
    """A value of a column as the function sees it."""
    if field.kind is Kind.INT:
        return f"int64({value})"
    if field.kind is Kind.FLOAT:
        return f"float64({value})"
    return f"{value} != 0" if field.kind is Kind.BOOL else value


def _stored(field: Field, name: str) -> Iterator[str]:
    """The lines that store a field of a result, or raise as plain Python's result would be refused."""
    value, target, dtype = f"result.{field.name}", f"{name}[count]", field.dtype
    assert dtype is not None  # noqa: S101 - compiled schemas have fixed widths
    if field.kind is Kind.INT and dtype != np.uint64:
        limits = np.iinfo(dtype)
        # Only integers can be or-ed: a float is refused when the function is compiled.
        yield f"whole = int64({value} | 0)"
        yield f"if whole != {value} or whole < {limits.min} or whole > {limits.max}:"
        yield f"    raise OverflowError({f'field {field.name!r}: not an integer of type {dtype}'!r})"
        yield f"{target} = whole"
    elif field.kind is Kind.INT:
        yield f"{target} = {value} | 0"
    elif field.kind is Kind.BOOL:
        yield f"{target} = 1 if {value} else 0"
    elif field.kind is Kind.FLOAT and dtype == np.float32:
        yield f"single = float32({value})"
        # Infinity minus itself is no number: infinite now, and finite before.
        yield f"if single - single != 0 and {value} - {value} == 0:"
        yield f"    raise OverflowError({f'field {field.name!r}: a number too large for 32 bits'!r})"
        yield f"{target} = single"
    elif field.kind is Kind.FLOAT:
        yield f"{target} = {value}"
    else:
        yield f"if len({value}) > {dtype.itemsize}:"
        yield f"    raise ValueError({f'field {field.name!r}: longer than {dtype.itemsize} bytes'!r})"
        yield f"{target} = {value}"


@numba.extending.intrinsic
def _pointer(_typing_context: Any, _address: Any) -> Any:
    """An address as a pointer."""

    def codegen(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return numba.types.voidptr(numba.types.uintp), codegen
