"""Dataclasses in compiled code: a struct of the fields, made by calling the class as in Python.

Fields have the types of the given values, because a result is checked against its schema only when it is stored. But
numbers are widened to 64 bits, and text to the width of its field, so that all results of a class have one type.
"""

import operator
from collections.abc import Sequence
from dataclasses import MISSING, fields, is_dataclass
from inspect import Parameter, Signature
from typing import Any

import numpy as np
from numba.core import cgutils, errors, types
from numba.core.imputils import impl_ret_borrowed, lower_getattr_generic, lower_setattr_generic
from numba.core.typing.templates import AttributeTemplate, fold_arguments, signature
from numba.core.typing.typeof import typeof
from numba.extending import (
    infer_getattr,
    lower_builtin,
    lower_cast,
    models,
    overload,
    register_model,
)

from bettong.schema.fields import Field, Kind
from bettong.schema.schema import Schema, schema_of
from bettong.worker.key_parts import KEY_PARTS
from bettong.worker.numba_types.texts import TextType, intrinsic, text_of
from bettong.worker.numba_types.unsigned import U64


class MessageType(types.Type):
    """A message of a schema, with the types of its fields."""

    def __init__(self, schema: Schema, field_types: tuple[Any, ...]) -> None:
        self.schema, self.field_types = schema, field_types
        super().__init__(name=f"{schema.name}({', '.join(map(str, field_types))})")

    @property
    def key(self) -> Any:
        """The identity of the type."""
        return self.schema.message, self.field_types

    @property
    def literal_type(self) -> "MessageType":
        """The type itself. Numba's `dead_branch_prune` compares an argument that has this with None.

        So the branch of `if right is None` that is not taken need not compile.
        """
        return self

    @property
    def names(self) -> list[str]:
        """The names of the fields, in order."""
        return [each.name for each in self.schema.fields]

    def unify(self, context: Any, other: Any) -> "MessageType | None":
        """The common type of this and `other`, field by field."""
        if not isinstance(other, MessageType) or other.schema != self.schema:
            return None
        pairs = zip(self.schema.fields, self.field_types, other.field_types, strict=True)
        unified = [
            U64 if _are_of_u64(column, pair) else context.unify_pairs(*pair) for column, *pair in pairs
        ]
        return MessageType(self.schema, tuple(unified)) if None not in unified else None


def _are_of_u64(column: Field, kinds: Sequence[Any]) -> bool:
    """Whether two integer types of a u64 field need a type that holds more than an int64."""
    integers = types.Integer | types.Boolean
    return column.dtype == np.uint64 and kinds[0] != kinds[1] and all(isinstance(k, integers) for k in kinds)


class ConstructorType(types.Callable, types.Opaque):
    """The type of a class called with its fields: a dataclass, or a named tuple with defaults."""

    def __init__(self, constructed: Any) -> None:
        self.constructed = constructed
        super().__init__(name=f"class({constructed.__qualname__})")

    @property
    def key(self) -> Any:
        """The identity of the type."""
        return self.constructed

    def get_call_type(self, _context: Any, args: Any, kws: Any) -> Any:
        """The signature of a call with arguments of these types."""
        schema = schema_of(self.constructed) if is_dataclass(self.constructed) else None
        parameters = _signature(self.constructed)

        def passed(index: int, _parameter: Parameter, kind: Any) -> Any:
            return types.unliteral(kind) if schema is None else _field_type(schema.fields[index], kind)

        def default(index: int, parameter: Parameter, value: Any) -> Any:
            return passed(index, parameter, types.literal(value) if isinstance(value, str) else typeof(value))

        kinds = fold_arguments(parameters, args, kws, passed, default, None)
        result = (
            MessageType(schema, kinds) if schema is not None else types.NamedTuple(kinds, self.constructed)
        )
        return signature(result, *kinds).replace(pysig=parameters)

    def get_call_signatures(self) -> tuple[tuple[Any, ...], bool]:
        """None: signatures depend on the arguments."""
        return (), True

    def get_impl_key(self, _signature: Any) -> Any:
        """The key by which Numba finds `_construct`."""
        return type(self)


register_model(ConstructorType)(models.OpaqueModel)


def _signature(made: Any) -> Signature:
    """The signature of a class's constructor. A `default_factory` does not count as a default."""
    defaults = (
        {each.name: each.default for each in fields(made) if each.default is not MISSING}
        if is_dataclass(made)
        else made._field_defaults
    )
    names = [each.name for each in fields(made)] if is_dataclass(made) else made._fields
    kind = Parameter.POSITIONAL_OR_KEYWORD
    return Signature([Parameter(name, kind, default=defaults.get(name, Parameter.empty)) for name in names])


def _field_type(column: Field, kind: Any) -> Any:
    """The type of a field that gets a value of that type."""
    text = text_of(kind)
    if column.kind is Kind.TEXT and column.dtype is not None and text is not None:
        return TextType(max(column.dtype.itemsize, text.count))
    kind = types.unliteral(kind)
    if column.kind is Kind.INT and isinstance(kind, types.Integer | types.Boolean):
        return kind if kind in (types.uint64, U64) else types.int64
    return types.float64 if column.kind is Kind.FLOAT and isinstance(kind, types.Float) else kind


@register_model(MessageType)
class _MessageModel(models.StructModel):
    def __init__(self, manager: Any, kind: MessageType) -> None:
        super().__init__(manager, kind, [(f"f{index}", each) for index, each in enumerate(kind.field_types)])


def _packed(context: Any, builder: Any, kind: MessageType, values: Any) -> Any:
    struct = cgutils.create_struct_proxy(kind)(context, builder)
    for index, value in enumerate(values):
        struct[index] = value
    return struct._getvalue()  # noqa: SLF001 - that is its name


def _tuple(context: Any, builder: Any, kind: Any, values: Any) -> Any:
    return context.make_tuple(builder, kind, values)


def _values(context: Any, builder: Any, kind: MessageType, message: Any) -> list[Any]:
    struct = cgutils.create_struct_proxy(kind)(context, builder, value=message)
    return [struct[index] for index in range(len(kind.field_types))]


@lower_builtin(ConstructorType, types.VarArg(types.Any))
def _construct(context: Any, builder: Any, call: Any, values: Any) -> Any:
    """Numba has cast each value to the type of its field."""
    pack = _packed if isinstance(call.return_type, MessageType) else _tuple
    made = pack(context, builder, call.return_type, values)
    return impl_ret_borrowed(context, builder, call.return_type, made)


@infer_getattr
class _Fields(AttributeTemplate):
    key = MessageType

    def generic_resolve(self, message: MessageType, name: str) -> Any:
        """The type of a field, or of a key of several parts; None for any other name."""
        if name == "key" and (parts := _key_parts(message)) is not None:
            return types.Tuple(message.field_types[:parts])
        return dict(zip(message.names, message.field_types, strict=True)).get(name)


@lower_getattr_generic(MessageType)
def _get(context: Any, builder: Any, kind: MessageType, message: Any, name: str) -> Any:
    if name == "key" and (parts := _key_parts(kind)) is not None:
        key_type = types.Tuple(kind.field_types[:parts])
        key = context.make_tuple(builder, key_type, _values(context, builder, kind, message)[:parts])
        return impl_ret_borrowed(context, builder, key_type, key)
    index = kind.names.index(name)
    value = _values(context, builder, kind, message)[index]
    return impl_ret_borrowed(context, builder, kind.field_types[index], value)


def _key_parts(kind: MessageType) -> int | None:
    parts: int | None = getattr(kind.schema.message, KEY_PARTS, None)
    return parts


@lower_setattr_generic(MessageType)
def _set(_context: Any, _builder: Any, call: Any, _arguments: Any, name: str) -> Any:
    message = call.args[0].schema.name
    raise errors.NumbaTypeError(f"compiled code cannot change field {name!r} of a {message}: make a new one")


@lower_cast(MessageType, MessageType)
def _cast(context: Any, builder: Any, source: MessageType, wanted: MessageType, message: Any) -> Any:
    if source.schema != wanted.schema:
        raise errors.NumbaTypeError(f"{source.schema.name} is no {wanted.schema.name}")
    for name, given, held in zip(wanted.names, source.field_types, wanted.field_types, strict=True):
        if isinstance(given, types.Float) and isinstance(held, types.Integer | types.Boolean):
            raise errors.NumbaTypeError(
                f"field {name!r} of a {wanted.schema.name} is an {held}, not a {given}"
            )
    values = zip(
        _values(context, builder, source, message), source.field_types, wanted.field_types, strict=True
    )
    return _packed(context, builder, wanted, [context.cast(builder, *each) for each in values])


@intrinsic
def _compared(_context: Any, message: Any) -> Any:
    """A tuple of the values that a comparison uses."""
    indexes = [index for index, each in enumerate(fields(message.schema.message)) if each.compare]
    values_type = types.Tuple([message.field_types[index] for index in indexes])

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        values = _values(context, builder, message, arguments[0])
        made = context.make_tuple(builder, values_type, [values[index] for index in indexes])
        return impl_ret_borrowed(context, builder, values_type, made)

    return values_type(message), generate


def _register_comparison(operation: Any, option: str) -> None:
    """Registers a comparison that `@dataclass` makes for classes with that option."""

    @overload(operation, strict=False)
    def compared(a: Any, b: Any) -> Any:
        if not (isinstance(a, MessageType) and isinstance(b, MessageType) and a.schema == b.schema):
            return None
        if not getattr(a.schema.message.__dataclass_params__, option) or _has_own_equality(a.schema.message):
            return None
        return lambda a, b: operation(_compared(a), _compared(b))


def _has_own_equality(message: Any) -> bool:
    """Whether the class defines `__eq__` or `__ne__` itself; the code that `@dataclass` makes is of no file."""
    return message.__eq__.__code__.co_filename != "<string>" or message.__ne__ is not object.__ne__


_register_comparison(operator.eq, "eq")
_register_comparison(operator.ne, "eq")
_register_comparison(operator.lt, "order")
_register_comparison(operator.le, "order")
_register_comparison(operator.gt, "order")
_register_comparison(operator.ge, "order")
