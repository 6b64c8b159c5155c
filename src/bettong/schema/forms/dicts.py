"""Dicts of text keys: `dict[str, T]`, Arrow's `map`, JSON's object, Postgres' `jsonb`. The order is kept."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, Self, get_args, get_origin

import pyarrow as pa

from bettong.errors import SchemaError
from bettong.schema.fields import Field, Kind
from bettong.schema.form import Copier, Describe, Form, StatedType, UnfitValueError, shown, without_nulls
from bettong.schema.forms.spans import Spans, json_document, offsets_of
from bettong.schema.json_values import json_value, reader_of
from bettong.schema.values import array_of, check_array, values_of_array

_KEY = Field("key", Kind.TEXT, None, pa.string())


@dataclass(frozen=True, slots=True)
class DictForm(Form):
    """A dict of any length, with distinct text keys."""

    name = "dict"
    sql = ("jsonb", "json")
    held: Field

    @classmethod
    def of_annotation(cls, stated: StatedType) -> Self | None:
        """See Form."""
        annotation, describe = stated.plain, stated.describe
        origin, parts = get_origin(annotation) or annotation, get_args(annotation)
        if origin is not dict:
            return None
        if len(parts) != 2 or parts[0] is not str:
            raise SchemaError("a dict is by text and says what it holds: dict[str, int]")
        return cls(describe("value", parts[1]))

    @classmethod
    def of_arrow(cls, field: pa.Field, describe: Describe) -> Self:
        """See Form."""
        return cls(describe("value", field.type.item_field))

    @property
    def arrow(self) -> pa.DataType:
        """See Form."""
        return pa.map_(pa.field("key", pa.string(), nullable=False), self.held.arrow_field)

    @property
    def token(self) -> str:
        """See Form."""
        return f"{self.name}({self.held.token})"

    def copier(self) -> Copier:
        """See Form."""
        held = self.held.copier()

        def copied(value: Any) -> Any:
            if not isinstance(value, dict):
                return value
            return dict(value) if held is None else {name: held(each) for name, each in value.items()}

        return copied

    def array(self, values: Sequence[Any]) -> pa.Array:
        """See Form."""
        for row, value in enumerate(values):
            if not isinstance(value, dict):
                raise UnfitValueError(f"{shown(value)} is no dict", row)
        spans, names = Spans(values), list(chain.from_iterable(values))
        try:
            keys = array_of(_KEY, names)
            held = array_of(self.held, list(chain.from_iterable(each.values() for each in values)))
        except UnfitValueError as error:
            spans.locate(error, lambda flat, _: f"[{shown(names[flat])}]")
            raise
        return pa.MapArray.from_arrays(spans.offsets, keys, held, type=self.arrow)

    def values(self, array: pa.Array) -> list[Any]:
        """See Form."""
        offsets = offsets_of(array)
        first, count = offsets[0], offsets[-1] - offsets[0]
        pairs = list(
            zip(
                array.keys.slice(first, count).to_pylist(),
                values_of_array(self.held, array.items.slice(first, count)),
                strict=True,
            )
        )
        return [dict(pairs[start - first : stop - first]) for start, stop in pairwise(offsets)]

    def check(self, array: pa.Array) -> None:
        """See Form."""
        without_nulls(array, self.name)
        offsets = offsets_of(array)
        first, count = offsets[0], offsets[-1] - offsets[0]
        keys = array.keys.slice(first, count)
        without_nulls(keys, "key")
        names = keys.to_pylist()
        for row, (start, stop) in enumerate(pairwise(offsets)):
            own = names[start - first : stop - first]
            if len(set(own)) != len(own):
                twice = Counter(own).most_common(1)[0][0]
                raise UnfitValueError(f"key {shown(twice)} is there twice", row)
        try:
            check_array(self.held, array.items.slice(first, count))
        except UnfitValueError as error:
            Spans.of_offsets(offsets).locate(error, lambda flat, _: f"[{shown(names[flat])}]")
            raise

    def to_json(self, value: Any) -> dict[str, Any]:
        """See Form."""
        return {name: json_value(self.held, each) for name, each in value.items()}

    def from_json(self, value: Any) -> dict[str, Any]:
        """See Form."""
        if not isinstance(value, dict):
            raise UnfitValueError(f"expected an object, got {shown(value)}")
        read, found = reader_of(self.held), {}
        for name, each in value.items():
            try:
                found[name] = read(each)
            except UnfitValueError as error:
                error.path = f"[{shown(name)}]{error.path}"
                raise
        return found

    def from_cell(self, text: str) -> Any:
        """See Form."""
        return self.from_json(json_document(text))

    def to_sql(self, value: Any) -> str:
        """See Form."""
        return json.dumps(self.to_json(value), ensure_ascii=False, allow_nan=False)
