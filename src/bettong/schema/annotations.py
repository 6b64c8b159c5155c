"""Makes fields from the annotations of a class, or from the Arrow fields of a sender."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Annotated, Any, get_args, get_origin

import numpy as np
import pyarrow as pa

from bettong.errors import SchemaError
from bettong.schema.fields import (
    DEFAULT,
    AtMost,
    Field,
    Kind,
    Scalar,
    Width,
    field_with,
    kind_name_of,
    kind_of,
    may_be_left_out,
)
from bettong.schema.form import Form, StatedType
from bettong.schema.forms.decimals import DecimalForm, Precision
from bettong.schema.forms.dicts import DictForm
from bettong.schema.forms.enums import EnumForm
from bettong.schema.forms.json_documents import JsonForm
from bettong.schema.forms.lists import ListForm
from bettong.schema.forms.nullable import NullableForm
from bettong.schema.forms.objects import ObjectForm
from bettong.schema.forms.times import DateForm, DatetimeForm, TimedeltaForm
from bettong.schema.forms.uuids import UuidForm

# All kinds but the plain ones. To add a kind, write its class and add it here.
FORMS: tuple[type[Form], ...] = (
    JsonForm,
    NullableForm,
    DatetimeForm,
    DateForm,
    TimedeltaForm,
    DecimalForm,
    EnumForm,
    UuidForm,
    ListForm,
    DictForm,
    ObjectForm,
)

# The nesting of fields: deeper than messages are, and where the recursion of a class that holds itself ends.
DEPTH_MAX = 16

_BY_NAME = {form.name: form for form in FORMS}
# The types that each bounding mark applies to.
_BOUNDS: Mapping[type[Any], tuple[tuple[Any, ...], str]] = {
    Width: ((str, bytes), "str and bytes"),
    AtMost: ((list, tuple), "list[T] and tuple[T, ...]"),
    Precision: ((Decimal,), "Decimal"),
}
_EXPECTED = (
    "expected int, float, bool, str, bytes, one of bettong.u8 ... bettong.f64, Annotated[str, Width(n)], datetime,"
    " date, timedelta, Annotated[Decimal, Precision(18, 4)], an Enum, UUID, bettong.Json, list[...], dict[str, ...],"
    " a dataclass, TypedDict or pydantic model, or one of them `| None`"
)


def field_of(name: str, annotation: Any, depth: int = 0) -> Field:
    """The field that `annotation` describes, nested in `depth` others.

    Raises SchemaError for a type that no field can have.
    """
    if depth > DEPTH_MAX:
        raise SchemaError(f"field {name!r}: within more than {DEPTH_MAX} others; does a class hold itself?")
    plain, marks = annotation, tuple[object, ...]()
    if get_origin(annotation) is Annotated:
        plain, *more = get_args(annotation)
        marks = tuple(more)
    try:
        for form_class in FORMS:
            form = form_class.of_annotation(StatedType(plain, marks, partial(field_of, depth=depth + 1)))
            if form is not None:
                # An optional field has passed its marks on to the type that it holds.
                check_marks(plain, () if form_class is NullableForm else marks)
                return field_with(name, form)
        if plain in (bool, int, float, str, bytes):
            check_marks(plain, marks)
            return _plain_field(name, plain, marks)
    except SchemaError as error:
        raise SchemaError(f"field {name!r}: {error}" if name else str(error)) from None
    where = f"field {name!r}: " if name else ""
    raise SchemaError(f"{where}{annotation!r} is no field type; {_EXPECTED}")


def check_marks(plain: Any, marks: Sequence[object]) -> None:
    """Raises SchemaError for a mark that does not apply to a type, although its author relies on the bound."""
    kind = get_origin(plain) or plain
    name = kind.__name__ if plain is kind and isinstance(kind, type) else str(plain)
    for mark_class, (kinds, bounded) in _BOUNDS.items():
        found = [mark for mark in marks if isinstance(mark, mark_class)]
        if found and kind not in kinds:
            raise SchemaError(f"{mark_class.__name__} bounds {bounded}, and this is {name}: leave it out")
        if len(found) > 1:
            raise SchemaError(f"{name} has {len(found)} marks {mark_class.__name__}: leave all but one out")


def field_of_arrow(name: str, field: pa.Field, depth: int = 0) -> Field:
    """The field that a sender's Arrow field describes; by its type alone if that does not name its kind.

    Raises SchemaError for a kind that this version does not know.
    """
    if depth > DEPTH_MAX:
        raise SchemaError(f"field {name!r}: within more than {DEPTH_MAX} others")
    metadata = dict(field.metadata or {})
    if (default := metadata.pop(DEFAULT, None)) is not None:
        return replace(field_of_arrow(name, field.with_metadata(metadata), depth), default=default)
    describe = partial(field_of_arrow, depth=depth + 1)
    if may_be_left_out(field):
        return field_with(name, NullableForm.of_arrow(field, describe))
    kind = kind_name_of(field)
    if kind in _BY_NAME:
        return field_with(name, _BY_NAME[kind].of_arrow(field, describe))
    if kind and kind not in set(Kind):
        raise SchemaError(
            f"field {name!r} is a {kind}, which this version of Bettong does not know: upgrade it"
        )
    is_number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
    if is_number:
        dtype = np.dtype(field.type.to_pandas_dtype())
    elif pa.types.is_fixed_size_binary(field.type):
        dtype = np.dtype(f"S{field.type.byte_width}")
    else:
        dtype = None
    return Field(name, kind_of(field), dtype, field.type)


def _plain_field(name: str, plain: Any, marks: Sequence[object]) -> Field:
    """The field of a number, a bool, text or bytes."""
    width = next((mark.size_bytes for mark in marks if isinstance(mark, Width)), None)
    scalar = next((mark.dtype for mark in marks if isinstance(mark, Scalar)), None)
    if plain is bool:
        return Field(name, Kind.BOOL, np.dtype("u1"), pa.uint8())
    if plain is int:
        return _number(name, Kind.INT, scalar or "<i8")
    if plain is float:
        return _number(name, Kind.FLOAT, scalar or "<f8")
    kind = Kind.TEXT if plain is str else Kind.BYTES
    if width is not None:
        return Field(name, kind, np.dtype(f"S{width}"), pa.binary(width))
    return Field(name, kind, None, pa.string() if plain is str else pa.binary())


def _number(name: str, kind: Kind, code: str) -> Field:
    dtype = np.dtype(code)
    return Field(name, kind, dtype, pa.from_numpy_dtype(dtype))
