"""The messages of a frame as columns: numpy arrays for fixed-width fields, Arrow arrays for the others.

    payload = Arrow IPC record batch message (no schema message, no compression, no nulls)

    fixed-width field      one data buffer, viewed by numpy in place
    variable-width field   offsets and data, kept as an Arrow array
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa

from bettong.application.fields import Field, Kind
from bettong.application.schema import Schema
from bettong.errors import FrameError, SchemaError

Array = np.ndarray[Any, np.dtype[Any]]
Column = Array | pa.Array


@dataclass(frozen=True, slots=True)
class Columns:
    """`length` messages of `schema`, one column a field, in the schema's order."""

    schema: Schema
    length: int
    columns: tuple[Column, ...]

    @classmethod
    def of_messages(cls, schema: Schema, messages: Sequence[Any]) -> Columns:
        """Columns of message objects. Raises SchemaError, naming the field, when a value does not fit."""
        columns = tuple(
            _column_of_values(field, list(map(attrgetter(field.name), messages))) for field in schema.fields
        )
        return cls(schema, len(messages), columns)

    @classmethod
    def of_payload(cls, schema: Schema, payload: bytes) -> Columns:
        """Reads the columns of a frame that Bettong wrote. Raises FrameError when they are not of `schema`."""
        try:
            batch = pa.ipc.read_record_batch(pa.py_buffer(payload), schema.arrow)
        except (pa.ArrowInvalid, OSError) as error:
            raise FrameError(f"columns of {schema.name}: {error}") from None
        return cls.of_batch(schema, batch)

    @classmethod
    def of_foreign_payload(cls, schema: Schema, payload: bytes) -> Columns:
        """Reads the columns of a frame that a client wrote, and trusts nothing in it. Raises FrameError."""
        try:
            batch = pa.ipc.read_record_batch(pa.py_buffer(payload), schema.arrow)
            batch.validate(full=True)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise FrameError(f"columns of {schema.name}: {error}") from None
        for column, field in zip(batch.columns, schema.fields, strict=True):
            if column.null_count:
                raise FrameError(f"columns of {schema.name}: field {field.name!r} has nulls")
        return cls.of_batch(schema, batch)

    @classmethod
    def of_batch(cls, schema: Schema, batch: pa.RecordBatch) -> Columns:
        """The columns of an Arrow batch of exactly `schema.arrow`, without a copy of fixed-width ones."""
        columns = tuple(
            _view(field, column) for field, column in zip(schema.fields, batch.columns, strict=True)
        )
        return cls(schema, batch.num_rows, columns)

    def batch(self) -> pa.RecordBatch:
        """These columns as an Arrow batch, without a copy."""
        arrays = [
            _arrow(field, column) for field, column in zip(self.schema.fields, self.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema.arrow)

    def payload(self) -> bytes:
        """The body of a frame."""
        return self.batch().serialize().to_pybytes()

    def messages(self) -> list[Any]:
        """One object of the message class a row."""
        values = [values_of(field, column) for field, column in zip(self.schema.fields, self.columns, strict=True)]
        return list(map(self.schema.message, *values))

    def take(self, places: Array) -> Columns:
        """The rows at `places`, in that order."""
        indices = None if self.schema.fixed else pa.array(places)
        columns = tuple(
            column.take(places) if isinstance(column, np.ndarray) else column.take(indices)
            for column in self.columns
        )
        return Columns(self.schema, len(places), columns)

    def slice(self, start: int, stop: int) -> Columns:
        """The rows from `start` up to but not including `stop`, without a copy."""
        columns = tuple(
            column[start:stop] if isinstance(column, np.ndarray) else column.slice(start, stop - start)
            for column in self.columns
        )
        return Columns(self.schema, stop - start, columns)

    def size_bytes(self) -> int:
        """Bytes of content: about what the payload takes."""
        return sum(column.nbytes for column in self.columns)


def fitting(schema: Schema, messages: Sequence[Any]) -> tuple[Columns, dict[int, str]]:
    """Columns of the messages that fit `schema`, and why each other one does not, by its place."""
    try:
        return Columns.of_messages(schema, messages), {}
    except (SchemaError, AttributeError):
        pass
    good: list[Any] = []
    refused: dict[int, str] = {}
    for place, message in enumerate(messages):
        try:
            Columns.of_messages(schema, [message])
        except SchemaError as error:
            refused[place] = str(error)
        except AttributeError:
            refused[place] = f"{type(message).__name__} is no {schema.name}"
        else:
            good.append(message)
    return Columns.of_messages(schema, good), refused


def values_of(field: Field, column: Column) -> list[Any]:
    """The Python values of one column."""
    if isinstance(column, pa.Array):
        return list(column.to_numpy(zero_copy_only=False).tolist())
    if field.kind is Kind.TEXT:
        return [value.decode("utf-8", "replace") for value in column.tolist()]
    if field.kind is Kind.BYTES:
        return list(column.view(f"V{column.itemsize}").tolist())
    if field.kind is Kind.BOOL:
        return list(column.astype(bool).tolist())
    return list(column.tolist())


def _view(field: Field, column: pa.Array) -> Column:
    if field.dtype is None:
        return column
    data = column.buffers()[1]
    if data is None:
        return np.empty(0, field.dtype)
    return np.frombuffer(data, field.dtype, len(column), column.offset * field.dtype.itemsize)


def _arrow(field: Field, column: Column) -> pa.Array:
    if isinstance(column, pa.Array):
        return column
    data = np.ascontiguousarray(column, dtype=field.dtype)
    return pa.Array.from_buffers(field.arrow, len(data), [None, pa.py_buffer(data)])


def _column_of_values(field: Field, values: list[Any]) -> Column:
    try:
        if field.dtype is None or field.kind in (Kind.INT, Kind.FLOAT):
            column = pa.array(values, field.arrow)
        elif field.kind is Kind.BOOL:
            column = pa.array(values, pa.bool_()).cast(pa.uint8())
        else:
            return _fixed_text(field, values, field.dtype)
    except (pa.ArrowException, OverflowError, TypeError, ValueError, AttributeError) as error:
        raise SchemaError(f"field {field.name!r}: {error}") from None
    if column.null_count:
        raise SchemaError(f"field {field.name!r}: None is no {field.kind.value}")
    return _view(field, column)


def _fixed_text(field: Field, values: list[Any], dtype: np.dtype[Any]) -> Array:
    encoded = list(map(str.encode, values)) if field.kind is Kind.TEXT else values
    for value in encoded:
        if not isinstance(value, bytes):
            raise SchemaError(f"field {field.name!r}: expected bytes, got {type(value).__name__}")
        if len(value) > dtype.itemsize:
            raise SchemaError(f"field {field.name!r}: {value!r} is longer than {dtype.itemsize} bytes")
    return np.array(encoded, dtype) if encoded else np.empty(0, dtype)
