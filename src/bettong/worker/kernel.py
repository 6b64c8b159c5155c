"""Compiles a user's function, with a loop around it, over the columns of a frame.

The function is written for message and state objects. Here the message is a struct of the row's values, which takes
no memory, and the state is a record of a numpy array, changed in place (see `numba_types`). Both hold numbers as
Python does, as 64-bit integers and floats, so that arithmetic means the same; a result is checked against its schema
when it is stored.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import numba
import numpy as np
from numba.np.numpy_support import carray

from bettong.application.returns import Returns
from bettong.schema.fields import Field, Kind
from bettong.schema.schema import Schema
from bettong.worker.code_facts import fingerprint
from bettong.worker.compile_errors import explain
from bettong.worker.numba_types.callables import kernel_compilation
from bettong.worker.numba_types.fixed_bytes import BytesType
from bettong.worker.numba_types.states import StateType, copy_record
from bettong.worker.numba_types.texts import TextType, is_longer
from bettong.worker.numba_types.unsigned import as_given, bits_of, fits, u64_of
from bettong.worker.prefetching import AHEAD, CACHED_BYTES, prefetch
from bettong.worker.state_members import ObjectMember

# Which messages of a pair are there: both, the right one alone, or the left one alone.
BOTH, LEFT_LACKS, RIGHT_LACKS = range(3)


@dataclass(frozen=True, slots=True)
class KernelForm:
    """What a function takes and returns. `state`: None without one. `output`: None where it makes no messages.

    `deletes`: another function says after each call whether to delete the state. `right`: the second message that the
    function of a join takes; it returns one result or None. `lacks`: whether the message, or `right`, may be None.
    """

    takes: Schema
    state: ObjectMember | None
    returns: Returns
    output: Schema | None
    deletes: bool = False
    right: Schema | None = None
    lacks: tuple[bool, bool] = (False, False)

    @property
    def input_fields(self) -> tuple[Field, ...]:
        """The columns that the function's messages are in."""
        return self.takes.fields + (self.right.fields if self.right is not None else ())

    @property
    def result_fields(self) -> tuple[Field, ...]:
        """The columns that results are stored in."""
        return self.output.fields if self.output is not None else ()


@dataclass(frozen=True, slots=True)
class Kernel:
    """`call(start, rows, room, keys, columns ..., [lacks,] [slots, states, spare, [first, deleted,]] cursor, sources,
    [violations,] results ...)`.

    Runs the rows from `start` on. `rows`, `room` and `keys` are the lengths of the arrays after them, which are passed
    as addresses: when the function raises, Numba drops the arrays that it holds without releasing them, and each time a
    frame's memory would be lost. `cursor[0]` is the current row, `cursor[1]` the number of results, `cursor[2]` 1 when
    it has returned because that row has more results than there is room for: then the row's state is as before. A state
    that is deleted becomes `first[0]`, and `deleted[row]` 1. `sources[k]` is the row that result k comes from.
    `lacks[row]` says which messages of a pair are there: see BOTH. What the function raises passes through.

    Where a function returns an iterable, a result that does not fit sets `violations[k]`, and
    `reasons[violations[k] - 1]` says why. Other functions raise.
    """

    form: KernelForm
    call: Callable[..., None]
    reasons: tuple[str, ...]


class KernelCache(Protocol):
    """Keeps kernels between runs, in files: Numba caches only functions that come from one."""

    @property
    def version(self) -> str:
        """Of everything that decides machine code besides users' functions."""

    def load(self, name: str, source: str, names: Mapping[str, Any]) -> Callable[..., Any] | None:
        """The function `kernel` of a source, cached under a name, with `names` as its globals.

        None when it cannot be cached: it is then compiled without a cache.
        """


def compile_kernel(
    function: Callable[..., Any],
    form: KernelForm,
    *,
    delete_when: Callable[..., Any] | None = None,
    cache: KernelCache | None,
) -> Kernel:
    """The kernel of a function, kept in `cache` between runs if it has a fingerprint (see `code_facts`).

    `delete_when`: for a form that deletes.

    Raises ApplicationError, naming function and line, when it cannot be compiled.
    """
    names = _names(function, delete_when, form)
    reasons: list[str] = []
    source = _source(form, reasons)
    kernel = None
    if cache is not None:
        schemas = [each for each in (form.takes, form.right, form.output) if each is not None]
        layouts = [",".join(field.token for field in schema.fields) for schema in schemas]
        state = f"{form.state.token} {form.state.dtype!r}" if form.state is not None else ""
        name = fingerprint(function, cache.version, source, state, *layouts)
        if name is not None and delete_when is not None:
            name = fingerprint(delete_when, name)
        kernel = cache.load(name, source, names) if name is not None else None
    signature = numba.void(*[numba.int64] * 4, *[numba.uintp] * len(_addresses(form)))
    try:
        with kernel_compilation():
            if kernel is not None:
                # Another process may just have removed the file: then it is compiled without a cache.
                with suppress(OSError, RuntimeError):
                    return Kernel(form, numba.njit(signature, nogil=True, cache=True)(kernel), tuple(reasons))
            exec(source, names)  # noqa: S102 - made below, from names of fields only
            call = numba.njit(signature, nogil=True)(names["kernel"])
    except Exception as error:  # not all that Numba raises for wrong code is a NumbaError
        raise explain(function, source, error) from error
    return Kernel(form, call, tuple(reasons))


def _names(
    function: Callable[..., Any], delete_when: Callable[..., Any] | None, form: KernelForm
) -> dict[str, Any]:
    """The globals of the generated source."""
    columns = {f"C{index}": _element(field) for index, field in enumerate(form.input_fields)}
    columns |= {f"R{index}": _element(field) for index, field in enumerate(form.result_fields)}
    return {
        "function": function,
        "delete_when": delete_when,
        "Message": form.takes.message,
        "Right": form.right.message if form.right is not None else None,
        "State": StateType(form.state) if form.state is not None else None,
        "copy_record": copy_record,
        "carray": carray,
        "pointer": _pointer,
        "prefetch": prefetch,
        "is_longer": is_longer,
        "u64_of": u64_of,
        "bits_of": bits_of,
        "as_given": as_given,
        "fits": fits,
        "int64": numba.int64,
        "float64": numba.float64,
        "float32": numba.float32,
        "int32": numba.int32,
        "uint8": numba.uint8,
        **columns,
    }


def _element(field: Field) -> Any:
    """Numba's type of a column's values."""
    assert field.dtype is not None  # noqa: S101 - compiled schemas have fixed widths
    own = {Kind.TEXT: TextType, Kind.BYTES: BytesType}.get(field.kind)
    return own(field.dtype.itemsize) if own is not None else numba.from_dtype(field.dtype)


def _addresses(form: KernelForm) -> dict[str, tuple[str, str]]:
    """The arrays of a kernel, in the order of their addresses: how many values, of which type."""
    columns = {f"c{index}": ("rows", f"C{index}") for index in range(len(form.input_fields))}
    lacks = {"lacks": ("rows", "uint8")} if any(form.lacks) else {}
    states = {"slots": ("rows", "int32"), "states": ("keys", "State"), "spare": ("1", "State")}
    deletions = {"first": ("1", "State"), "deleted": ("rows", "uint8")}
    if form.deletes:
        states |= deletions
    marks = {"cursor": ("3", "int64"), "sources": ("room", "int64")}
    if form.returns is Returns.MANY:
        marks["violations"] = ("room", "uint8")
    results = {f"r{index}": ("room", f"R{index}") for index in range(len(form.result_fields))}
    return columns | lacks | (states if form.state is not None else {}) | marks | results


def _source(form: KernelForm, reasons: list[str]) -> str:
    """The source of the loop. Adds to `reasons` why a result of an iterable may not fit."""
    addresses = _addresses(form)
    state = ", states[slots[row]]" if form.state is not None else ""
    lines = [
        f"def kernel(start, rows, room, keys, {', '.join(f'{name}_at' for name in addresses)}):",
        *(
            f"    {name} = carray(pointer({name}_at, {kind}), {size})"
            for name, (size, kind) in addresses.items()
        ),
        "    count = cursor[1]",
        "    for row in range(start, rows):",
        "        cursor[0] = row",
        *(_prefetch_lines() if state else []),
        *(
            ["        copy_record(spare[0], states[slots[row]])"]
            if state and form.returns is Returns.MANY
            else []
        ),
        *(f"        {line}" for line in _call_lines(form, state)),
        *(f"        {line}" for line in (_deletion_lines() if form.deletes else ())),
        *(f"        {line}" for line in _result_lines(form, reasons)),
    ]
    return "\n".join(lines) + "\n"


def _call_lines(form: KernelForm, state: str) -> Iterator[str]:
    """The lines that call the function. Where one of a pair may be None, Numba compiles it once more for that."""
    values = [_loaded_value(field, f"c{index}[row]") for index, field in enumerate(form.input_fields)]
    own = len(form.takes.fields)
    message = f"Message({', '.join(values[:own])})"
    if form.right is None:
        yield f"result = function({message}{state})"
        return
    right = f"Right({', '.join(values[own:])})"
    left_lacks, right_lacks = form.lacks
    if left_lacks:
        yield f"if lacks[row] == {LEFT_LACKS}:"
        yield f"    result = function(None, {right})"
    if right_lacks:
        yield f"{'elif' if left_lacks else 'if'} lacks[row] == {RIGHT_LACKS}:"
        yield f"    result = function({message}, None)"
    call = f"result = function({message}, {right})"
    yield f"else: {call}" if any(form.lacks) else call


def _prefetch_lines() -> Iterator[str]:
    """The lines that prefetch the state of a later row, where states exceed the caches."""
    yield f"        if states.nbytes > {CACHED_BYTES} and row + {AHEAD} < rows:"
    yield f"            prefetch(states, slots[row + {AHEAD}])"


def _deletion_lines() -> Iterator[str]:
    """The lines that delete a row's state when `delete_when` says so."""
    yield "if delete_when(states[slots[row]]):"
    yield "    copy_record(states[slots[row]], first[0])"
    yield "    deleted[row] = 1"


def _result_lines(form: KernelForm, reasons: list[str]) -> Iterator[str]:
    """The lines that store what the function returned for a row."""
    if form.returns is Returns.MANY:
        yield from _iterable_lines(form, reasons) if form.right is None else _pair_lines(form, reasons)
        return
    if form.returns is Returns.NOTHING:
        return
    yield "if result:" if form.returns is Returns.WHETHER else "if result is not None:"
    yield from _one_result_lines(form, "result", "count", _raise_line)
    yield "    cursor[1] = count"


def _pair_lines(form: KernelForm, reasons: list[str]) -> Iterator[str]:
    """The lines for one of a message's pairs: a result that does not fit does not affect the others."""
    yield "if result is not None:"
    yield "    violations[count] = 0"
    yield from _one_result_lines(form, "result", "count", _violation_line("count", reasons))
    yield "    cursor[1] = count"


def _iterable_lines(form: KernelForm, reasons: list[str]) -> Iterator[str]:
    yield "made = count"
    yield "for each in result:"
    yield "    if each is not None:"
    yield "        if made == room:"
    if form.state is not None:
        yield "            copy_record(states[slots[row]], spare[0])"
    yield "            cursor[2] = 1"
    yield "            return"
    yield "        violations[made] = 0"
    yield from (
        f"    {line}" for line in _one_result_lines(form, "each", "made", _violation_line("made", reasons))
    )
    yield "count = made"
    yield "cursor[1] = count"


def _one_result_lines(
    form: KernelForm, value: str, number: str, violation: Callable[[str, str], str]
) -> Iterator[str]:
    """The lines that store one result, below an `if` or a `for`."""
    for index, field in enumerate(form.result_fields):
        for line in _field_lines(field, f"{value}.{field.name}", f"r{index}[{number}]", violation):
            yield f"    {line}"
    yield f"    sources[{number}] = row"
    yield f"    {number} += 1"


def _raise_line(error: str, text: str) -> str:
    return f"raise {error}({text!r})"


def _violation_line(number: str, reasons: list[str]) -> Callable[[str, str], str]:
    """Makes the line that marks the result of that number as a violation: see Kernel."""

    def noted(_error: str, text: str) -> str:
        reasons.append(text)
        return f"violations[{number}] = {len(reasons)}"

    return noted


def _loaded_value(field: Field, value: str) -> str:
    """A value of a column as the function sees it."""
    if field.kind is Kind.INT:
        return f"u64_of({value})" if field.dtype == np.uint64 else f"int64({value})"
    if field.kind is Kind.FLOAT:
        return f"float64({value})"
    return f"{value} != 0" if field.kind is Kind.BOOL else value


def _field_lines(
    field: Field, value: str, target: str, violation: Callable[[str, str], str]
) -> Iterator[str]:
    """The lines that store a field of a result; `violation(error, text)`: the line for a value that does not fit.

    Refuses what would be refused as a result of plain Python.
    """
    dtype = field.dtype
    assert dtype is not None  # noqa: S101 - compiled schemas have fixed widths
    if field.kind is Kind.INT:
        yield f"whole = as_given({value})"
        yield f"if not fits(whole, {8 * dtype.itemsize}, {int(dtype.kind == 'i')}):"
        yield f"    {violation('OverflowError', f'field {field.name!r}: not an integer of type {dtype}')}"
        yield f"{target} = bits_of(whole)"
    elif field.kind is Kind.BOOL:
        yield f"{target} = 1 if {value} else 0"
    elif field.kind is Kind.FLOAT and dtype == np.float32:
        yield f"single = float32({value})"
        # Infinity minus itself is NaN: infinite now, and finite before.
        yield f"if single - single != 0 and {value} - {value} == 0:"
        yield f"    {violation('OverflowError', f'field {field.name!r}: a number too large for 32 bits')}"
        yield f"{target} = single"
    elif field.kind is Kind.FLOAT:
        yield f"{target} = {value}"
    else:
        longer = (
            f"is_longer({value}, {dtype.itemsize})"
            if field.kind is Kind.TEXT
            else f"len({value}) > {dtype.itemsize}"
        )
        yield f"if {longer}:"
        yield f"    {violation('ValueError', f'field {field.name!r}: longer than {dtype.itemsize} bytes')}"
        yield f"{target} = {value}"


@numba.extending.intrinsic
def _pointer(_typing_context: Any, _address: Any, kind: Any) -> Any:
    """An address as a pointer to values of a type."""
    pointer = numba.types.CPointer(kind.instance_type)  # type: ignore[no-untyped-call]

    def codegen(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(pointer))

    return pointer(numba.types.uintp, kind), codegen
