"""Lists of values of one kind: `list[T]`, and `tuple[T, ...]`, Arrow's `list`, JSON's array, Postgres' `jsonb`."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, Self, get_args, get_origin

import pyarrow as pa

from bettong.errors import SchemaError
from bettong.schema.fields import AtMost, Field
from bettong.schema.form import Copier, Describe, Form, StatedType, UnfitValueError, shown, without_nulls
from bettong.schema.forms.spans import Spans, json_document, offsets_of
from bettong.schema.json_values import json_value, reader_of
from bettong.schema.values import array_of, check_array, values_of_array


@dataclass(frozen=True, slots=True)
class ListForm(Form):
    """A list of any length, or of `at_most` so many items. `container`: the type read back; both types are accepted."""

    name = "list"
    sql = ("jsonb", "json")
    item: Field
    container: type[Any] = list
    at_most: int | None = None

    @classmethod
    def of_annotation(cls, stated: StatedType) -> Self | None:
        """See Form."""
        annotation, describe = stated.plain, stated.describe
        origin, parts = get_origin(annotation) or annotation, get_args(annotation)
        at_most = next((mark.items for mark in stated.marks if isinstance(mark, AtMost)), None)
        if origin is list:
            if len(parts) != 1:
                raise SchemaError("a list says what it holds: list[int]")
            return cls(describe("item", parts[0]), at_most=at_most)
        if origin is not tuple or not parts:
            return None
        if len(parts) != 2 or parts[1] is not Ellipsis:
            raise SchemaError(
                f"{annotation} has parts of their own types; use a dataclass, or tuple[T, ...] for many of one type"
            )
        return cls(describe("item", parts[0]), tuple, at_most)

    @classmethod
    def of_arrow(cls, field: pa.Field, describe: Describe) -> Self:
        """See Form."""
        return cls(describe("item", field.type.value_field))

    @property
    def arrow(self) -> pa.DataType:
        """See Form."""
        return pa.list_(self.item.arrow_field)

    @property
    def token(self) -> str:
        """See Form."""
        bound = f", at most {self.at_most}" if self.at_most is not None else ""
        return f"{self.name}({self.item.token}{bound})"

    def copier(self) -> Copier:
        """See Form."""
        container, item = self.container, self.item.copier()

        def copied(value: Any) -> Any:
            if not isinstance(value, list | tuple):
                return value
            return container(value if item is None else map(item, value))

        return copied

    def array(self, values: Sequence[Any]) -> pa.Array:
        """See Form."""
        for row, value in enumerate(values):
            if not isinstance(value, list | tuple):
                raise UnfitValueError(f"{shown(value)} is no list", row)
            self._check_length(len(value), row)
        spans = Spans(values)
        try:
            items = array_of(self.item, list(chain.from_iterable(values)))
        except UnfitValueError as error:
            spans.locate(error, lambda _, index: f"[{index}]")
            raise
        return pa.ListArray.from_arrays(spans.offsets, items, type=self.arrow)

    def values(self, array: pa.Array) -> list[Any]:
        """See Form."""
        offsets = offsets_of(array)
        first = offsets[0]
        items = values_of_array(self.item, array.values.slice(first, offsets[-1] - first))
        lists: list[Any] = [items[start - first : stop - first] for start, stop in pairwise(offsets)]
        return lists if self.container is list else list(map(self.container, lists))

    def check(self, array: pa.Array) -> None:
        """See Form."""
        without_nulls(array, self.name)
        offsets = offsets_of(array)
        for row, (start, stop) in enumerate(pairwise(offsets) if self.at_most is not None else ()):
            self._check_length(stop - start, row)
        try:
            check_array(self.item, array.values.slice(offsets[0], offsets[-1] - offsets[0]))
        except UnfitValueError as error:
            Spans.of_offsets(offsets).locate(error, lambda _, index: f"[{index}]")
            raise

    def to_json(self, value: Any) -> list[Any]:
        """See Form."""
        return [json_value(self.item, each) for each in value]

    def from_json(self, value: Any) -> Any:
        """See Form."""
        if not isinstance(value, list):
            raise UnfitValueError(f"expected a list, got {shown(value)}")
        self._check_length(len(value))
        read, items = reader_of(self.item), []
        try:
            for each in value:
                items.append(read(each))  # noqa: PERF401 - its length says which one raised
        except UnfitValueError as error:
            error.path = f"[{len(items)}]{error.path}"
            raise
        return self.container(items)

    def from_cell(self, text: str) -> Any:
        """See Form."""
        return self.from_json(json_document(text))

    def to_sql(self, value: Any) -> str:
        """See Form."""
        return json.dumps(self.to_json(value), ensure_ascii=False, allow_nan=False)

    def _check_length(self, items: int, row: int | None = None) -> None:
        if self.at_most is not None and items > self.at_most:
            raise UnfitValueError(f"{items} items, at most {self.at_most} can be there", row)
