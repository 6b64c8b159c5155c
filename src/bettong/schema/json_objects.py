"""JSON objects as messages: lines of JSON files, and messages of clients to a source with `format="json"`.

A field that an object lacks gets its default, or None if it is optional. Other members are ignored. Values are as
Bettong writes them (`bettong.schema.json_values`).
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa

from bettong.errors import SchemaError
from bettong.schema.annotations import field_of_arrow
from bettong.schema.decoded import Decoded
from bettong.schema.defaults import has_default, json_default
from bettong.schema.fields import kind_name_of, may_be_left_out
from bettong.schema.json_columns import ROWS_MIN, ColumnReader, column_reader
from bettong.schema.json_values import Reader, reader_of
from bettong.schema.schema import Schema
from bettong.schema.values import Column, column_of_values, joined

# The most rows passed to Arrow in vain, as a multiple of all rows: a single odd row takes less than two.
_IN_VAIN_MAX = 3


@dataclass(frozen=True, slots=True)
class FieldReader:
    """Reads one field of objects. `lacks`: the JSON value for an object without it, if objects `may_lack` it."""

    name: str
    read: Reader
    may_lack: bool
    lacks: Any

    def values(self, records: Iterable[dict[str, Any]]) -> list[Any]:
        """The field's value in each object. Raises SchemaError, naming the field."""
        name, values = self.name, []
        for record in records:
            if not self.may_lack and name not in record:
                raise SchemaError(f"no field {name!r}; it has {', '.join(record)}")
            try:
                values.append(self.read(record.get(name, self.lacks)))
            except SchemaError as error:
                raise SchemaError(f"field {name!r}: {error}") from None
        return values


def reader_by_arrow(field: pa.Field) -> FieldReader:
    """The reader of a field as the sender describes it, without its class.

    An older sender does not name the kind (`bettong.kind`); then the type decides, and true is 1.
    """
    return _field_reader(field, reader_of(field_of_arrow(field.name, field), bools=not kind_name_of(field)))


def _field_reader(field: pa.Field, read: Reader) -> FieldReader:
    may_lack = has_default(field) or may_be_left_out(field)
    return FieldReader(field.name, read, may_lack, json_default(field))


def record_of(line: bytes) -> dict[str, Any]:
    """The object in a line of JSON. Raises SchemaError."""
    try:
        record = json.loads(line)
    except ValueError as error:
        raise SchemaError(str(error)) from None
    except RecursionError:
        raise SchemaError("nested too deeply; expected an object of fields") from None
    if not isinstance(record, dict):
        raise SchemaError(f"{type(record).__name__}, expected an object")
    return record


@dataclass(frozen=True, slots=True)
class JsonObjects:
    """The decoder of `format="json"`: an object a message, fields by their names."""

    def check(self, source: str, schema: Schema) -> None:
        """See Decoder. Every kind of field can be read from JSON."""

    def decode(self, schema: Schema, rows: Sequence[bytes]) -> Decoded:
        """See Decoder. Many rows are read at once where possible, else one by one."""
        reader = column_reader(schema) if len(rows) >= ROWS_MIN else None
        if reader is not None:
            with suppress(SchemaError):
                return _decode_columns(reader, schema, rows)
        return _decode_rows(schema, rows)


def _decode_columns(reader: ColumnReader, schema: Schema, rows: Sequence[bytes]) -> Decoded:
    """All rows as columns.

    Raises SchemaError for a value that does not fit its field, such as a text that is too long.
    """
    columns: list[Sequence[Column]] = []
    refused: dict[int, str] = {}
    for part, found in parts_read(rows, reader.columns):
        if found is not None:
            columns.append(found)
            continue
        decoded = _decode_rows(schema, rows[part.start : part.stop])
        values = schema.field_values(decoded.messages or [])
        columns.append([*map(column_of_values, schema.fields, values)])
        refused |= {part.start + index: reason for index, reason in decoded.refused.items()}
    return Decoded(columns=[joined(column) for column in zip(*columns, strict=True)], refused=refused)


def parts_read(
    rows: Sequence[bytes], read: Callable[[Sequence[bytes]], list[Column] | None]
) -> Iterator[tuple[range, list[Column] | None]]:
    """All rows in parts, in order, each with its columns; None for one that must be read row by row.

    A part that cannot be read is halved, as long as that pays: so few rows are read one by one with the odd ones.
    """
    in_vain = 0
    left = [range(len(rows))]
    while left:
        part = left.pop()
        if len(part) < ROWS_MIN or in_vain >= _IN_VAIN_MAX * len(rows):
            yield part, None
        elif (columns := read(rows[part.start : part.stop])) is not None:
            yield part, columns
        else:
            in_vain += len(part)
            middle = len(part) // 2
            left += [part[middle:], part[:middle]]


def _decode_rows(schema: Schema, rows: Sequence[bytes]) -> Decoded:
    """All rows as messages, one by one."""
    messages: list[Any] = []
    refused: dict[int, str] = {}
    readers = _readers(schema)
    for index, row in enumerate(rows):
        try:
            records = [record_of(row)]
            values = [reader.values(records)[0] for reader in readers]
        except SchemaError as error:
            refused[index] = str(error)
        else:
            messages.append(schema.make(*values))
    return Decoded(messages=messages, refused=refused)


@lru_cache(maxsize=64)
def _readers(schema: Schema) -> tuple[FieldReader, ...]:
    return tuple(_field_reader(field.arrow_field, reader_of(field)) for field in schema.fields)
