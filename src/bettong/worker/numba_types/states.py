"""A state in compiled code: a record of a numpy array, changed in place, whose fields behave as in Python.

Mutable fields (objects, arrays, lists) are embedded in the record, so they cannot be replaced: in Python, a reference
read before would still refer to the old object. Immutable fields are read and set as values.
"""

from typing import Any

import numba
from numba.core import cgutils, errors, types
from numba.extending import lower_cast, lower_setattr_generic, models, register_model

from bettong.schema.fields import Kind
from bettong.schema.schema import schema_of
from bettong.worker.numba_types.lists import BoundedListType
from bettong.worker.numba_types.messages import MessageType
from bettong.worker.numba_types.storing import store_value
from bettong.worker.numba_types.texts import TextType, intrinsic
from bettong.worker.state_members import ITEMS, ArrayMember, ListMember, Member, ObjectMember, PlainMember


class StateType(types.Record):
    """The record of a state, or of a mutable object in one."""

    def __init__(self, layout: ObjectMember) -> None:
        self.layout = layout
        self._types = {each.name: _type_of(each) for each in layout.members}
        fields: Any = layout.dtype.fields
        # Numba needs the offsets of all fields, but has no type for some.
        members: list[tuple[str, Any]] = [
            (each.name, {"type": types.CharSeq(each.dtype.itemsize), "offset": fields[each.name][1]})
            for each in layout.members
        ]
        super().__init__(members, layout.dtype.itemsize, aligned=True)
        self.name = layout.held_class.__name__

    @property
    def key(self) -> Any:
        """The identity of the type, independent of its position in a state."""
        return self.layout.held_class, self.layout.class_token

    def typeof(self, key: str) -> Any:
        """The type of a field. Raises KeyError."""
        return self._types[key]


register_model(StateType)(models.RecordModel)


class StateArrayType(types.NestedArray):
    """An array in a state; unlike Numba's own also of bools."""

    def __init__(self, member: ArrayMember) -> None:
        held = numba.from_dtype(member.held)
        self._shape, self._size = member.shape, member.held.itemsize
        types.Array.__init__(self, held, len(member.shape), "C", name=f"state array({held}, {member.shape})")

    @property
    def size(self) -> int:
        """Bytes of a value."""
        return self._size


register_model(StateArrayType)(models.ArrayModel)


def _type_of(member: Member) -> Any:
    if isinstance(member, PlainMember):
        kind = member.field.kind
        return TextType(member.dtype.itemsize) if kind is Kind.TEXT else numba.from_dtype(member.dtype)
    if isinstance(member, ArrayMember):
        return StateArrayType(member)
    if isinstance(member, ListMember):
        fields: Any = member.dtype.fields
        items, at = fields[ITEMS]
        step = items.base.itemsize
        return BoundedListType(
            _type_of(member.item), member.at_most, at=at, step=step, size=member.dtype.itemsize
        )
    assert isinstance(member, ObjectMember)  # noqa: S101 - there are no others
    if not member.is_value:
        return StateType(member)
    return MessageType(schema_of(member.held_class), tuple(map(_type_of, member.members)))


@lower_setattr_generic(StateType)
def _set(context: Any, builder: Any, call: Any, arguments: Any, name: str) -> Any:
    """Numba has cast the value to the type of the field."""
    owner, kind = call.args
    member = owner.layout.member(name)
    if owner.layout.is_frozen:
        raise errors.NumbaTypeError(
            f"compiled code cannot change field {name!r} of a {owner.layout.held_class.__name__}, which is frozen"
        )
    if isinstance(member, ArrayMember):
        _check_same(context, builder, kind, arguments, owner.offset(name), member)
        return
    if not member.is_value:
        raise errors.NumbaTypeError(_refusal(member))
    data = context.get_data_type(kind)
    address = cgutils.get_record_member(builder, arguments[0], owner.offset(name), data)
    store_value(context, builder, kind, arguments[1], address)


def _check_same(
    context: Any, builder: Any, kind: Any, arguments: Any, offset: int, member: ArrayMember
) -> None:
    """`state.sums += 1` assigns the same array. Compiled code raises ValueError for another one."""
    array = context.make_array(kind)(context, builder, arguments[1])
    address = cgutils.get_record_member(builder, arguments[0], offset, context.get_data_type(kind.dtype))
    with builder.if_then(builder.icmp_unsigned("!=", array.data, address), likely=False):
        context.call_conv.return_user_exc(builder, ValueError, (_refusal(member),))


def _refusal(member: Member) -> str:
    what, instead = (
        ("an array", f"write its values, as in {member.name}[:] = 0")
        if isinstance(member, ArrayMember)
        else ("a list", "use clear() and extend()")
        if isinstance(member, ListMember)
        else ("an object that can change", "set its fields, or make its class frozen")
    )
    return f"compiled code cannot put another one into field {member.path!r}, {what}: {instead}"


@lower_cast(types.Any, BoundedListType)
@lower_cast(types.Any, StateArrayType)
@lower_cast(types.Array, StateArrayType)
@lower_cast(types.Any, StateType)
@lower_cast(types.Record, StateType)
def _refuse(_context: Any, _builder: Any, _source: Any, wanted: Any, _value: Any) -> Any:
    """Refuses these casts: they only occur on assignment to a field of a state."""
    what, instead = (
        ("a list", "use clear() and extend()")
        if isinstance(wanted, BoundedListType)
        else ("an array", "write its values, as in [:] = 0")
        if isinstance(wanted, StateArrayType)
        else (f"a {wanted.layout.held_class.__name__}", "set its fields, or make its class frozen")
    )
    raise errors.NumbaTypeError(
        f"compiled code cannot put another one where the state holds {what}: {instead}"
    )


@intrinsic
def copy_record(_context: Any, target: Any, source: Any) -> Any:
    """Copies a record over another one of its type."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        to, of = (builder.bitcast(each, cgutils.voidptr_t) for each in arguments)
        cgutils.raw_memcpy(builder, to, of, cgutils.intp_t(signature.args[0].size), 1)
        return context.get_dummy_value()

    return types.void(target, source), generate
