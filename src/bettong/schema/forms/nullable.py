"""A value or None: `T | None`, Arrow's null, JSON's null, SQL's NULL."""

import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Self, Union, get_args, get_origin

import pyarrow as pa

from bettong.errors import SchemaError
from bettong.schema.fields import Field
from bettong.schema.form import Copier, Describe, Form, StatedType, UnfitValueError
from bettong.schema.forms.json_documents import JsonForm
from bettong.schema.json_values import JSON_TEXTS, json_value, reader_of
from bettong.schema.sql_types import sql_types, sql_value
from bettong.schema.values import array_of, check_array, values_of_array


@dataclass(frozen=True, slots=True)
class NullableForm(Form):
    """A field of another kind that may be None."""

    name = "optional"
    nullable = True
    held: Field

    @classmethod
    def of_annotation(cls, stated: StatedType) -> Self | None:
        """See Form. Marks of the union apply to its type."""
        annotation, marks, describe = stated
        if get_origin(annotation) not in (Union, types.UnionType):
            return None
        members = [each for each in get_args(annotation) if each is not type(None)]
        if len(members) != 1 or len(get_args(annotation)) != 2:
            raise SchemaError(
                f"{annotation} is a union of several types; a field has one, or one and None: give each a field"
            )
        held = describe("", Annotated[members[0], *marks] if marks else members[0])
        if isinstance(held.form, JsonForm):
            raise SchemaError("bettong.Json holds None by itself; leave `| None` out")
        return cls(held)

    @classmethod
    def of_arrow(cls, field: pa.Field, describe: Describe) -> Self:
        """See Form."""
        return cls(describe("", field.with_nullable(False)))  # noqa: FBT003 - Arrow's

    @property
    def arrow(self) -> pa.DataType:
        """See Form."""
        return self.held.arrow

    @property
    def token(self) -> str:
        """See Form."""
        return f"{self.name}({self.held.token})"

    @property
    def sql(self) -> Sequence[str]:  # type: ignore[override]
        """See Form."""
        return sql_types(self.held)

    @property
    def metadata(self) -> Mapping[bytes, bytes]:
        """See Form."""
        return self.held.arrow_field.metadata or {}

    def arrow_field(self, name: str) -> pa.Field:
        """See Form. Its kind is that of the held field."""
        return pa.field(name, self.arrow, nullable=True, metadata=self.metadata)

    def copier(self) -> Copier | None:
        """See Form."""
        held = self.held.copier()
        return None if held is None else lambda value: None if value is None else held(value)

    def array(self, values: Sequence[Any]) -> pa.Array:
        """See Form."""
        rows = [row for row, value in enumerate(values) if value is not None]
        try:
            dense = array_of(self.held, [values[row] for row in rows])
        except UnfitValueError as error:
            if error.row is not None:
                error.row = rows[error.row]
            raise
        if len(rows) == len(values):
            return dense
        indexes: list[int | None] = [None] * len(values)
        for index, row in enumerate(rows):
            indexes[row] = index
        return dense.take(pa.array(indexes, pa.int64()))

    def values(self, array: pa.Array) -> list[Any]:
        """See Form."""
        if not array.null_count:
            return values_of_array(self.held, array)
        held = iter(values_of_array(self.held, array.drop_null()))
        return [next(held) if is_there else None for is_there in array.is_valid().to_pylist()]

    def check(self, array: pa.Array) -> None:
        """See Form."""
        if not array.null_count:
            check_array(self.held, array)
            return
        try:
            check_array(self.held, array.drop_null())
        except UnfitValueError as error:
            if error.row is not None:
                error.row = [row for row, there in enumerate(array.is_valid().to_pylist()) if there][
                    error.row
                ]
            raise

    def to_json(self, value: Any) -> Any:
        """See Form."""
        return None if value is None else json_value(self.held, value)

    def from_json(self, value: Any) -> Any:
        """See Form."""
        return None if value is None else reader_of(self.held)(value)

    def from_cell(self, text: str) -> Any:
        """See Form. An empty cell is None."""
        if not text:
            return None
        if self.held.form is not None:
            return self.held.form.from_cell(text)
        return self.from_json(text if self.held.kind in JSON_TEXTS else _number(text))

    def to_sql(self, value: Any) -> Any:
        """See Form."""
        return None if value is None else sql_value(self.held, value)


def _number(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text.lower(), text)
