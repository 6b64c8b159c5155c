"""Numbers of `bettong.u64` fields of messages in compiled code, where integers are signed and have 64 bits.

Such a number keeps its value where it is passed to a `u64` of a result, converted to a float, or tested for 0. All
other operations of Numba are on signed integers, so it is converted to one, and raises from 2**63 on. It has 128 bits,
because a result may have it on one branch and a negative number, which is refused later, on another.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typeconv.castgraph import Conversion
from numba.extending import lower_cast, models, overload, register_model

from bettong.worker.numba_types.texts import intrinsic

_BEYOND = "a u64 of 2**63 or more: integers of compiled code end at 2**63 - 1; use plain Python"
_WIDE, _NARROW = ir.IntType(128), ir.IntType(64)


class U64Type(types.Integer):
    """A value of a `u64` field: an integer of 64 bits, signed or unsigned."""

    def __init__(self) -> None:
        super().__init__("u64 of a message", bitwidth=64, signed=True)

    def __str__(self) -> str:
        """The name by which Numba asks numpy for the common type of two numbers, so that the other meets an int64."""
        return "int64"

    def cast_python_value(self, value: Any) -> Any:
        """A constant that is unified with it."""
        return np.int64(value)

    def can_convert_to(self, _context: Any, other: Any) -> Any:
        """An int64 is preferred to all others; compiled code checks that it fits."""
        if other == types.int64:
            return Conversion.safe
        return Conversion.unsafe if isinstance(other, types.Integer | types.Float | types.Boolean) else None


@register_model(U64Type)
class _U64Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: U64Type) -> None:
        super().__init__(manager, kind, _WIDE)


U64 = U64Type()


@lower_cast(U64Type, types.Integer)
def _as_integer(context: Any, builder: Any, _source: Any, wanted: Any, value: Any) -> Any:
    bits = builder.trunc(value, _NARROW)
    if wanted == types.uint64:
        return bits
    is_beyond = builder.icmp_signed("!=", builder.sext(bits, _WIDE), value)
    with builder.if_then(is_beyond, likely=False):
        context.call_conv.return_user_exc(builder, OverflowError, (_BEYOND,))
    return context.cast(builder, bits, types.int64, wanted)


@lower_cast(U64Type, types.Float)
def _as_float(context: Any, builder: Any, _source: Any, wanted: Any, value: Any) -> Any:
    bits = builder.trunc(value, _NARROW)
    signed, unsigned = (context.cast(builder, bits, each, wanted) for each in (types.int64, types.uint64))
    return builder.select(builder.icmp_signed("<", value, _WIDE(0)), signed, unsigned)


@lower_cast(U64Type, types.Boolean)
def _is_any(_context: Any, builder: Any, _source: Any, _wanted: Any, value: Any) -> Any:
    return cgutils.is_not_null(builder, value)


@lower_cast(types.Integer, U64Type)
@lower_cast(types.IntegerLiteral, U64Type)
@lower_cast(types.Boolean, U64Type)
def _widened(context: Any, builder: Any, source: Any, _wanted: Any, value: Any) -> Any:
    if source == types.uint64:
        return builder.zext(value, _WIDE)
    return builder.sext(context.cast(builder, value, source, types.int64), _WIDE)


@intrinsic
def u64_of(_context: Any, value: Any) -> Any:
    """A number of a column, or an integer that is passed to a field, as a U64."""
    if not isinstance(value, types.Integer | types.Boolean):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.cast(builder, arguments[0], signature.args[0], U64)

    return U64(types.unliteral(value)), generate


def as_given(value: Any) -> Any:
    """An integer that is passed to a field, as a U64. In compiled code only."""
    raise NotImplementedError


@overload(as_given, strict=False)
def _as_given(value: Any) -> Any:
    # A float is refused when the function is compiled.
    return _unchanged if isinstance(value, types.Integer | types.Boolean) else None


def _unchanged(value: Any) -> Any:
    return u64_of(value)


@intrinsic(prefer_literal=True)
def fits(_context: Any, value: Any, bits: Any, has_sign: Any) -> Any:
    """Whether a U64 fits so many bits, signed or unsigned; both arguments are literals."""
    width, sign = bits.literal_value, has_sign.literal_value
    least, most = -sign << (width - 1), (1 << (width - sign)) - 1

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        low = builder.icmp_signed(">=", arguments[0], _WIDE(least))
        return builder.and_(low, builder.icmp_signed("<=", arguments[0], _WIDE(most)))

    return types.boolean(value, bits, has_sign), generate


@intrinsic
def bits_of(_context: Any, value: Any) -> Any:
    """The lower 64 bits of a U64, as a signed integer."""
    return types.int64(value), lambda _context, builder, _signature, arguments: builder.trunc(
        arguments[0], _NARROW
    )
