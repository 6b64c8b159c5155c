"""Bytes of a message in compiled code: of the width of their field, including NULs at the end, as in plain Python.

States hold Numba's own bytes, which end before such NULs. So bytes that are assigned to a state must not end in a NUL:
they would become shorter.
"""

import operator
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typeconv.castgraph import Conversion
from numba.extending import box, lower_cast, models, overload, register_jitable, register_model

from bettong.worker.numba_types.texts import intrinsic


class BytesType(types.Type):
    """Bytes, `count` of them."""

    def __init__(self, count: int) -> None:
        self.count = count
        super().__init__(name=f"bytes[{count}]")

    def can_convert_from(self, _context: Any, other: Any) -> Any:
        """Shorter bytes are padded with NULs; where they can be too long, compiled code checks it."""
        return Conversion.unsafe if _is_bytes(other) else None

    def can_convert_to(self, _context: Any, other: Any) -> Any:
        """For assignment to a field of a state."""
        return Conversion.unsafe if isinstance(other, types.CharSeq) else None


register_model(BytesType)(models.CharSeq)


def _is_bytes(kind: Any) -> bool:
    return isinstance(kind, BytesType | types.CharSeq | types.Bytes)


@intrinsic
def _byte(_context: Any, value: Any, index: Any) -> Any:  # noqa: ARG001 - Numba names it
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = cgutils.alloca_once_value(builder, arguments[0])
        found = builder.load(cgutils.gep_inbounds(builder, pointer, 0, arguments[1]))
        return context.cast(builder, found, types.uint8, signature.return_type)

    return types.int64(value, types.intp), generate


@register_jitable
def _ends_in_nul(value: Any) -> Any:
    return len(value) > 0 and _byte(value, len(value) - 1) == 0


@overload(len, strict=False)
def _length(value: Any) -> Any:
    if not isinstance(value, BytesType):
        return None
    count = value.count
    return lambda value: count  # noqa: ARG005


@overload(operator.getitem, strict=False)
def _item(value: Any, index: Any) -> Any:
    if not (isinstance(value, BytesType) and isinstance(index, types.Integer)):
        return None

    def item(value: Any, index: Any) -> Any:
        at = index + len(value) if index < 0 else index
        if at < 0 or at >= len(value):
            raise IndexError("index out of range")
        return _byte(value, at)

    return item


@overload(operator.eq, strict=False)
def _equal(a: Any, b: Any) -> Any:
    if not (_is_bytes(a) and _is_bytes(b) and (isinstance(a, BytesType) or isinstance(b, BytesType))):
        return None
    own, other = (_read(each) for each in (a, b))

    def equal(a: Any, b: Any) -> Any:
        if len(a) != len(b):
            return False
        for index in range(len(a)):  # noqa: SIM110 - Numba has no generators within a function
            if own(a, index) != other(b, index):
                return False
        return True

    return equal


@overload(operator.ne, strict=False)
def _unequal(a: Any, b: Any) -> Any:
    if not (_is_bytes(a) and _is_bytes(b) and (isinstance(a, BytesType) or isinstance(b, BytesType))):
        return None
    return lambda a, b: not (a == b)  # noqa: SIM201


def _read(kind: Any) -> Any:
    """The function that reads a byte of a value of that type."""
    return _of_constant if isinstance(kind, types.Bytes) else _byte_at


@register_jitable
def _of_constant(value: Any, index: Any) -> Any:
    return value[index]


@register_jitable
def _byte_at(value: Any, index: Any) -> Any:
    return _byte(value, index)


@lower_cast(BytesType, BytesType)
@lower_cast(types.CharSeq, BytesType)
@lower_cast(BytesType, types.CharSeq)
def _cast(context: Any, builder: Any, source: Any, wanted: Any, value: Any) -> Any:
    """To a wider type NULs are added. Compiled code raises ValueError where bytes would become shorter."""
    count, message = wanted.count, f"bytes longer than {wanted.count}"

    def check(value: Any) -> None:
        if len(value) > count:
            raise ValueError(message)

    def check_end(value: Any) -> None:
        if _ends_in_nul(value):
            raise ValueError("bytes that end in NUL, which states of compiled functions cannot hold")

    if source.count > wanted.count:
        context.compile_internal(builder, check, types.none(source), (value,))
    if isinstance(wanted, types.CharSeq):
        context.compile_internal(builder, check_end, types.none(source), (value,))
    made = cgutils.alloca_once(builder, context.get_value_type(wanted))
    builder.store(ir.Constant(context.get_value_type(wanted), None), made)
    start, target = (
        builder.bitcast(pointer, cgutils.voidptr_t)
        for pointer in (cgutils.alloca_once_value(builder, value), made)
    )
    size = ir.Constant(cgutils.intp_t, min(source.count, wanted.count))
    cgutils.raw_memcpy(builder, target, start, size, 1)
    return builder.load(made)


@lower_cast(types.Bytes, BytesType)
def _cast_constant(context: Any, builder: Any, source: Any, wanted: BytesType, value: Any) -> Any:
    """The loop around the user's function has checked that it is not too long."""
    return context.cast(builder, value, source, types.CharSeq(wanted.count))


@box(BytesType)
def _boxed(kind: BytesType, value: Any, context: Any) -> Any:
    """For compiled code that passes bytes to Python, in an exception."""
    builder, python = context.builder, context.pyapi
    start = builder.bitcast(cgutils.alloca_once_value(builder, value), python.cstring)
    return python.bytes_from_string_and_size(start, ir.Constant(python.py_ssize_t, kind.count))
