"""Objects of a user's class in a field: Arrow's `struct`, JSON's object, Postgres' `jsonb`."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import pyarrow as pa

from bettong.errors import SchemaError
from bettong.schema.copying import copier_of
from bettong.schema.defaults import stated_default, with_default
from bettong.schema.fields import Field
from bettong.schema.form import Copier, Describe, Form, StatedType, UnfitValueError, shown, without_nulls
from bettong.schema.forms.spans import json_document
from bettong.schema.json_values import json_value, reader_of
from bettong.schema.record_classes import RecordClass, dict_class, is_record_class, record_class_of
from bettong.schema.values import array_of, check_array, values_of_array


@dataclass(frozen=True, slots=True)
class ObjectForm(Form):
    """Objects of a class, with its fields. A form `of_arrow` has no class: its objects are dicts."""

    name = "object"
    sql = ("jsonb", "json")
    held_class: type[Any] | None
    fields: tuple[Field, ...]

    @classmethod
    def of_annotation(cls, stated: StatedType) -> Self | None:
        """See Form."""
        annotation = stated.plain
        if not is_record_class(annotation):
            return None
        record = record_class_of(annotation)
        try:
            fields = (stated.describe(name, hint) for name, hint in record.hints.items())
            return cls(annotation, tuple(with_default(field, record.defaults) for field in fields))
        except SchemaError as error:
            raise SchemaError(f"{annotation.__name__}: {error}") from None

    @classmethod
    def of_arrow(cls, field: pa.Field, describe: Describe) -> Self:
        """See Form."""
        return cls(None, tuple(describe(each.name, each) for each in field.type))

    @property
    def record(self) -> RecordClass:
        """How its objects are made and read."""
        if self.held_class is None:
            return dict_class(tuple(field.name for field in self.fields))
        return record_class_of(self.held_class)

    @property
    def arrow(self) -> pa.DataType:
        """See Form."""
        return pa.struct([field.arrow_field for field in self.fields])

    @property
    def token(self) -> str:
        """See Form."""
        return f"{self.name}({','.join(field.token for field in self.fields)})"

    def copier(self) -> Copier | None:
        """See Form."""
        record = self.record
        of_class = copier_of(record, self.fields)
        if of_class is None:
            return None

        def copied(value: Any) -> Any:
            if not isinstance(value, record.made_class):
                return value
            try:
                return of_class(value)
            except record.unreadable:
                return value

        return copied

    def array(self, values: Sequence[Any]) -> pa.Array:
        """See Form."""
        record = self.record
        for row, value in enumerate(values):
            if not isinstance(value, record.made_class):
                raise UnfitValueError(f"{shown(value)} is no {record.name}", row)
        return pa.StructArray.from_arrays(
            [self._held(field, record, values) for field in self.fields], fields=list(self.arrow)
        )

    def values(self, array: pa.Array) -> list[Any]:
        """See Form."""
        held = [values_of_array(field, array.field(index)) for index, field in enumerate(self.fields)]
        return list(map(self.record.make, *held))

    def check(self, array: pa.Array) -> None:
        """See Form."""
        without_nulls(array, self.name)
        for index, field in enumerate(self.fields):
            try:
                check_array(field, array.field(index))
            except UnfitValueError as error:
                error.path = f".{field.name}{error.path}"
                raise

    def to_json(self, value: Any) -> dict[str, Any]:
        """See Form."""
        getter = self.record.getter
        return {field.name: json_value(field, getter(field.name)(value)) for field in self.fields}

    def from_json(self, value: Any) -> Any:
        """See Form. Fields with a default, and optional ones, may be missing; other members are ignored."""
        if not isinstance(value, dict):
            raise UnfitValueError(f"expected an object, got {shown(value)}")
        found = []
        for field in self.fields:
            if field.name not in value and not field.nullable and field.default is None:
                raise UnfitValueError(f"no field {field.name!r}; it has {shown(', '.join(value))}")
            try:
                given = value[field.name] if field.name in value else stated_default(field.default)
                found.append(reader_of(field)(given))
            except UnfitValueError as error:
                error.path = f".{field.name}{error.path}"
                raise
        return self.record.make(*found)

    def from_cell(self, text: str) -> Any:
        """See Form."""
        return self.from_json(json_document(text))

    def to_sql(self, value: Any) -> str:
        """See Form."""
        return json.dumps(self.to_json(value), ensure_ascii=False, allow_nan=False)

    def _held(self, field: Field, record: RecordClass, values: Sequence[Any]) -> pa.Array:
        """The objects' values of a field."""
        try:
            own = list(map(record.getter(field.name), values))
        except record.unreadable:
            raise UnfitValueError(f"a {record.name} without {field.name!r}") from None
        try:
            return array_of(field, own)
        except UnfitValueError as error:
            error.path = f".{field.name}{error.path}"
            raise
