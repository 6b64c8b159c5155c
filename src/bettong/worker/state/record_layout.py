"""Lays out a state as a record of fixed width."""

from dataclasses import is_dataclass
from types import SimpleNamespace
from typing import Annotated, Any, get_args, get_origin

import numpy as np

from bettong.application.execution_mode import ExecutionMode
from bettong.application.nodes.stateful import Stateful
from bettong.errors import ApplicationError, SchemaError
from bettong.frames.columns import Array
from bettong.schema.annotations import DEPTH_MAX, check_marks, field_of
from bettong.schema.fields import AtMost
from bettong.schema.record_classes import record_class_of
from bettong.schema.schema import Schema, schema_of
from bettong.worker.state_members import (
    ITEMS,
    LENGTH,
    ArrayMember,
    ListMember,
    Member,
    ObjectMember,
    PlainMember,
)

# Bytes of one state. A table makes room for keys in advance.
STATE_BYTES_MAX = 1 << 20
# Characters that describe a record in increments: less than the bound of `stored_arrays`.
_DESCRIPTION_CHARACTERS_MAX = 9000
# Types of arrays whose arithmetic is the same compiled as in numpy.
_ARRAYS = tuple(map(np.dtype, ("<f8", "<i8", "?")))

_WIDTHS = "use Annotated[str, Width(n)] or Annotated[bytes, Width(n)]"
_PLAIN = (
    "numbers, bools, and text and bytes of a fixed width are all that can be there; keep it as one of these, such as an"
    " int of microseconds, or leave the mark out"
)
_NESTED = (
    "numbers, bools, text and bytes of a fixed width, dataclasses of these, arrays, and lists with a bound are all that"
    " can be there; keep it as one of these, such as an int of microseconds, or leave the mark out"
)


def first_state(node: Stateful) -> Any:
    """The record that a new key starts with. Raises ApplicationError when the state cannot be one."""
    layout_of(node)
    try:
        new = node.state()
    except TypeError as error:
        raise ApplicationError(f"{node.mode.value} {node.name!r}: state: {error}") from None
    return records_of(node, [new])


def records_of(node: Stateful, states: list[Any]) -> Any:
    """States of the computation as records. Raises ApplicationError for what cannot be one."""
    layout = layout_of(node)
    records = np.zeros(len(states), layout.dtype)
    try:
        layout.store(records, states)
    except SchemaError as error:
        raise ApplicationError(f"{node.mode.value} {node.name!r}: state: {error}") from None
    return records


def layout_of(node: Stateful) -> ObjectMember:
    """What the computation's states hold. Raises ApplicationError for what no record can."""
    owner = f"{node.mode.value} {node.name!r}"
    failed = ""
    if not is_dataclass(node.state):
        name = getattr(node.state, "__name__", node.state)
        raise ApplicationError(f"{owner}: state={name}: expected a dataclass; keep it in a field of one")
    try:
        _check_made("", node.state)
        if node.mode is ExecutionMode.VECTORIZED:
            check_fixed(node.mode.value, node.name, schema_of(node.state))
        new, failed = _new(node)
        layout = layout_of_class(node.state, new)
        if node.mode is ExecutionMode.COMPILED:
            _check_signed(layout)
    except _UnfitStateError as error:
        name = getattr(node.state, "__name__", node.state)
        raise ApplicationError(f"{owner}: {name}: {error}{failed}") from None
    except SchemaError as error:
        raise ApplicationError(f"{owner}: state: {error}") from None
    if layout.dtype.itemsize > STATE_BYTES_MAX:
        raise ApplicationError(
            f"{owner}: {layout.held_class.__name__}: a state takes {layout.dtype.itemsize} bytes, at most"
            f" {STATE_BYTES_MAX}; give its lists lower bounds, or its arrays fewer values"
        )
    check_described(f"{owner}: {layout.held_class.__name__}", layout.dtype, ", or arrays")
    return layout


def check_described(owner: str, record: np.dtype[Any], remedy: str = "") -> None:
    """Raises ApplicationError for a record with more fields than increments can describe."""
    if len(repr(record.descr)) > _DESCRIPTION_CHARACTERS_MAX:
        raise ApplicationError(f"{owner}: more fields than a saved state can describe; use fewer{remedy}")


def layout_of_class(held_class: Any, new: Any) -> ObjectMember:
    """What states of a class hold. `new`: one of them; None where no array is in it. Raises SchemaError."""
    return _object("", "", held_class, new, 0)


def old_states(records: Array) -> list[Any]:
    """Records of another version of the application, fields as attributes: text is bytes, and arrays are copies."""
    names = records.dtype.names
    if names == (LENGTH, ITEMS):
        pairs = zip(records[LENGTH].tolist(), records[ITEMS], strict=True)
        return [old_states(items[: max(0, length)]) for length, items in pairs]
    if names is None:
        return records.tolist() if records.ndim == 1 else [each.copy() for each in records]
    held = [old_states(records[name]) for name in names]
    return [SimpleNamespace(**dict(zip(names, values, strict=True))) for values in zip(*held, strict=True)]


def check_fixed(mode: str, name: str, schema: Schema) -> None:
    """Raises ApplicationError for fields whose width varies, and for what is no dataclass."""
    if not is_dataclass(schema.message):
        raise ApplicationError(f"{mode} {name!r}: {schema.name}: expected a dataclass")
    if odd := [f"{field.name} ({field.kind_name})" for field in schema.fields if field.form is not None]:
        raise ApplicationError(f"{mode} {name!r}: {schema.name}: {', '.join(odd)}: {_PLAIN}")
    if loose := [field.name for field in schema.fields if field.dtype is None]:
        raise ApplicationError(
            f"{mode} {name!r}: {schema.name}: {', '.join(loose)} has no fixed width; {_WIDTHS}"
        )


def is_array(annotation: Any) -> bool:
    """Whether an annotation is of arrays: `ndarray`, or an alias of it, as numpy's `NDArray` is from 2.5 on."""
    origin = get_origin(annotation) or annotation
    for _ in range(DEPTH_MAX):
        alias = getattr(origin, "__value__", None)
        origin = origin if alias is None else get_origin(alias) or alias
    return origin is np.ndarray


class _UnfitStateError(SchemaError):
    """What no record can hold, with the path that leads to it."""


def _new(node: Stateful) -> tuple[Any, str]:
    """A new state, or None and why there is none, as the end of a sentence; `first_state` refuses it then."""
    try:
        return node.state(), ""
    except TypeError as error:
        return None, f"; to make a new state raised TypeError: {error}"


def _check_made(path: str, held_class: Any) -> None:
    """Raises _UnfitStateError for a class whose objects are made by more than their fields."""
    if hasattr(held_class, "__post_init__"):
        where = f"{path} ({held_class.__name__}) " if path else ""
        raise _UnfitStateError(
            f"{where}has a __post_init__, which would run again whenever a saved state is read; let"
            " field(default_factory=...) make such values, or the function where it first sees the state"
        )


def _object(name: str, path: str, held_class: Any, new: Any, depth: int) -> ObjectMember:
    """The member of a dataclass. `new`: an object of it, of a new state; None where there is none yet."""
    if depth > DEPTH_MAX:
        raise _UnfitStateError(f"{path}: within more than {DEPTH_MAX} others; does a class hold itself?")
    _check_made(path, held_class)
    record = record_class_of(held_class)
    members = tuple(
        _member(own, f"{path}.{own}" if path else own, hint, getattr(new, own, None), depth)
        for own, hint in record.hints.items()
    )
    return ObjectMember(name, path, held_class, members, record.is_frozen)


def _member(name: str, path: str, annotation: Any, new: Any, depth: int) -> Member:
    plain, *marks = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
    if is_array(plain) or (get_origin(plain) or plain) is list or is_dataclass(plain):
        _check_marks(path, plain, marks)
    if is_array(plain):
        return _array(name, path, new)
    if is_dataclass(plain):
        return _object(name, path, plain, new, depth + 1)
    if get_origin(plain) is list and get_args(plain):
        bound = next((mark.items for mark in marks if isinstance(mark, AtMost)), None)
        if bound is None:
            raise _UnfitStateError(f"{path} (list): it has no bound; use Annotated[list[...], AtMost(n)]")
        return _list(name, path, get_args(plain)[0], bound, depth)
    field = field_of(path, annotation)
    if field.form is not None:
        raise _UnfitStateError(f"{path} ({field.kind_name}): {_NESTED}")
    if field.dtype is None:
        raise _UnfitStateError(f"{path} has no fixed width; {_WIDTHS}")
    return PlainMember(name, path, field)


def _check_marks(path: str, plain: Any, marks: list[Any]) -> None:
    try:
        check_marks(plain, marks)
    except SchemaError as error:
        raise _UnfitStateError(f"{path}: {error}") from None


def _list(name: str, path: str, annotation: Any, bound: int, depth: int) -> ListMember:
    item = _member("", f"{path}[]", annotation, None, depth + 1)
    if isinstance(item, ObjectMember) and not item.is_value:
        raise _UnfitStateError(
            f"{item.path} ({item.held_class.__name__}): a list holds numbers, bools, text and bytes of a fixed width,"
            " and dataclasses of these that are frozen: use @dataclass(frozen=True)"
        )
    if not item.is_value:
        raise _UnfitStateError(
            f"{item.path}: a list holds no lists and no arrays; use an array of two dimensions"
        )
    return ListMember(name, path, item, bound)


def _check_signed(member: Member) -> None:
    """Raises _UnfitStateError for a u64: in compiled code it would be negative from 2**63 on, and saved so."""
    if isinstance(member, PlainMember) and member.field.dtype == np.uint64:
        raise _UnfitStateError(
            f"{member.path} (u64): compiled code would make negative numbers of those from 2**63 on; use int, or text"
            " for numbers that nobody computes with"
        )
    for each in member.members if isinstance(member, ObjectMember) else ():
        _check_signed(each)
    if isinstance(member, ListMember):
        _check_signed(member.item)


def _array(name: str, path: str, new: Any) -> ArrayMember:
    """The member of an array: with the type and shape of that of a new state."""
    if not isinstance(new, np.ndarray):
        raise _UnfitStateError(
            f"{path} (array): a new state has {'none' if new is None else type(new).__name__} there; use"
            " field(default_factory=lambda: np.zeros(n)), which says dtype and shape"
        )
    if new.dtype not in _ARRAYS:
        raise _UnfitStateError(
            f"{path}: an array of {new.dtype}; use one of {', '.join(map(str, _ARRAYS))}, whose numbers"
            " compute compiled as in numpy"
        )
    if not new.ndim or not new.size:
        raise _UnfitStateError(f"{path}: an array of shape {new.shape} holds no values by an index")
    if not new.flags.c_contiguous:
        raise _UnfitStateError(f"{path}: an array that lies by columns; make it without order='F'")
    return ArrayMember(name, path, new.dtype, new.shape)
