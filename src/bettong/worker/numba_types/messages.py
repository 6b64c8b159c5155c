"""Dataclasses in compiled code: a struct of the fields, made by calling the class as in Python.

Values have the types that they are given, for a result is checked against its schema only when it is stored. But
numbers are as wide as Python's arithmetic needs them, and text as its field: so results of one class are of one type.
"""

import operator
from dataclasses import MISSING, fields, is_dataclass
from inspect import Parameter, Signature
from typing import Any

from numba.core import cgutils, types
from numba.core.imputils import impl_ret_borrowed, lower_getattr_generic
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

from bettong.application.fields import Field, Kind
from bettong.application.schema import Schema, schema_of
from bettong.worker.numba_types.texts import TextType, intrinsic, text_of


class MessageType(types.Type):
    """A message of a schema, with the types of its values."""

    def __init__(self, schema: Schema, held: tuple[Any, ...]) -> None:
        self.schema, self.held = schema, held
        super().__init__(name=f"{schema.name}({', '.join(map(str, held))})")

    @property
    def key(self) -> Any:
        """What makes two types equal."""
        return self.schema.message, self.held

    @property
    def names(self) -> list[str]:
        """Of the fields, in order."""
        return [each.name for each in self.schema.fields]

    def unify(self, context: Any, other: Any) -> "MessageType | None":
        """The type of what is this or `other`, field by field."""
        if not isinstance(other, MessageType) or other.schema != self.schema:
            return None
        unified = [context.unify_pairs(*pair) for pair in zip(self.held, other.held, strict=True)]
        return MessageType(self.schema, tuple(unified)) if None not in unified else None


class MadeByFields(types.Callable, types.Opaque):
    """A class that is called with its fields, of which some have defaults: a dataclass, or a named tuple."""

    def __init__(self, made: Any) -> None:
        self.made = made
        super().__init__(name=f"class({made.__qualname__})")

    @property
    def key(self) -> Any:
        """What makes two types equal."""
        return self.made

    def get_call_type(self, _context: Any, args: Any, kws: Any) -> Any:
        """What a call makes of arguments of these types."""
        schema = schema_of(self.made) if is_dataclass(self.made) else None
        named = _signature(self.made)

        def held(place: int, _parameter: Parameter, given: Any) -> Any:
            return types.unliteral(given) if schema is None else _held(schema.fields[place], given)

        def default(place: int, parameter: Parameter, value: Any) -> Any:
            return held(place, parameter, types.literal(value) if isinstance(value, str) else typeof(value))

        kinds = fold_arguments(named, args, kws, held, default, None)
        made = MessageType(schema, kinds) if schema is not None else types.NamedTuple(kinds, self.made)
        return signature(made, *kinds).replace(pysig=named)

    def get_call_signatures(self) -> tuple[tuple[Any, ...], bool]:
        """None that could be told: they hang on the arguments."""
        return (), True

    def get_impl_key(self, _signature: Any) -> Any:
        """By what Numba finds `_make`."""
        return type(self)


register_model(MadeByFields)(models.OpaqueModel)


def _signature(made: Any) -> Signature:
    """How a class is called. A default that is made anew for each object is none."""
    defaults = (
        {each.name: each.default for each in fields(made) if each.default is not MISSING}
        if is_dataclass(made)
        else made._field_defaults
    )
    names = [each.name for each in fields(made)] if is_dataclass(made) else made._fields
    kind = Parameter.POSITIONAL_OR_KEYWORD
    return Signature([Parameter(name, kind, default=defaults.get(name, Parameter.empty)) for name in names])


def _held(column: Field, kind: Any) -> Any:
    """The type in which a field holds a value of a type."""
    text = text_of(kind)
    if column.kind is Kind.TEXT and column.dtype is not None and text is not None:
        return TextType(max(column.dtype.itemsize, text.count))
    kind = types.unliteral(kind)
    if column.kind is Kind.INT and isinstance(kind, types.Integer | types.Boolean) and kind != types.uint64:
        return types.int64
    return types.float64 if column.kind is Kind.FLOAT and isinstance(kind, types.Float) else kind


@register_model(MessageType)
class _MessageModel(models.StructModel):
    def __init__(self, manager: Any, kind: MessageType) -> None:
        super().__init__(manager, kind, [(f"f{place}", held) for place, held in enumerate(kind.held)])


def _packed(context: Any, builder: Any, kind: MessageType, values: Any) -> Any:
    struct = cgutils.create_struct_proxy(kind)(context, builder)
    for place, value in enumerate(values):
        struct[place] = value
    return struct._getvalue()  # noqa: SLF001 - that is its name


def _tuple(context: Any, builder: Any, kind: Any, values: Any) -> Any:
    return context.make_tuple(builder, kind, values)


def _values(context: Any, builder: Any, kind: MessageType, message: Any) -> list[Any]:
    struct = cgutils.create_struct_proxy(kind)(context, builder, value=message)
    return [struct[place] for place in range(len(kind.held))]


@lower_builtin(MadeByFields, types.VarArg(types.Any))
def _make(context: Any, builder: Any, call: Any, values: Any) -> Any:
    """Each value has been cast to the type in which it is held."""
    pack = _packed if isinstance(call.return_type, MessageType) else _tuple
    made = pack(context, builder, call.return_type, values)
    return impl_ret_borrowed(context, builder, call.return_type, made)


@infer_getattr
class _Fields(AttributeTemplate):
    key = MessageType

    def generic_resolve(self, message: MessageType, name: str) -> Any:
        """The type of a field; None for what is none."""
        return dict(zip(message.names, message.held, strict=True)).get(name)


@lower_getattr_generic(MessageType)
def _get(context: Any, builder: Any, kind: MessageType, message: Any, name: str) -> Any:
    place = kind.names.index(name)
    value = _values(context, builder, kind, message)[place]
    return impl_ret_borrowed(context, builder, kind.held[place], value)


@lower_cast(MessageType, MessageType)
def _cast(context: Any, builder: Any, given: MessageType, wanted: MessageType, message: Any) -> Any:
    values = zip(_values(context, builder, given, message), given.held, wanted.held, strict=True)
    return _packed(context, builder, wanted, [context.cast(builder, *each) for each in values])


@intrinsic
def _compared(_context: Any, message: Any) -> Any:
    """A tuple of the values that a comparison looks at."""
    places = [place for place, each in enumerate(fields(message.schema.message)) if each.compare]
    held = types.Tuple([message.held[place] for place in places])

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        values = _values(context, builder, message, arguments[0])
        made = context.make_tuple(builder, held, [values[place] for place in places])
        return impl_ret_borrowed(context, builder, held, made)

    return held(message), generate


def _teach(operation: Any, option: str) -> None:
    """A comparison that `@dataclass` makes for classes with that option."""

    @overload(operation, strict=False)
    def compared(a: Any, b: Any) -> Any:
        if not (isinstance(a, MessageType) and isinstance(b, MessageType) and a.schema == b.schema):
            return None
        has_it = getattr(a.schema.message.__dataclass_params__, option)
        return (lambda a, b: operation(_compared(a), _compared(b))) if has_it else None


_teach(operator.eq, "eq")
_teach(operator.ne, "eq")
_teach(operator.lt, "order")
_teach(operator.le, "order")
_teach(operator.gt, "order")
_teach(operator.ge, "order")
