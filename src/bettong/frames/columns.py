"""The messages of a frame as columns: numpy arrays for fixed-width fields, Arrow arrays for the others.

payload = Arrow IPC record batch message (no schema message, no compression, nulls only where the schema says so)

fixed-width field      one data buffer, viewed by numpy in place
variable-width field   offsets and data, kept as an Arrow array
field with a form      the buffers of its Arrow type, kept as an Arrow array
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field as dataclass_field
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from bettong.errors import FrameError
from bettong.frames.arrow_message import Node, Varying, check_batch, message_of, nodes_of, value_layout
from bettong.immutable import immutable
from bettong.schema.fields import Field
from bettong.schema.form import UnfitValueError
from bettong.schema.schema import Schema
from bettong.schema.values import arrow_of, column_of_values, joined, values_of, view_of, wrong_value

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Column: TypeAlias = Array | pa.Array

# Writers pad the buffers of a record batch to 8 or to this many bytes.
_PADDING_BYTES = 64


@immutable()
class Columns:
    """`length` messages of `schema`, one column a field, in the schema's order."""

    schema: Schema
    length: int
    columns: tuple[Column, ...]
    _values: dict[int, list[Any]] = dataclass_field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @classmethod
    def of_messages(cls, schema: Schema, messages: Sequence[Any]) -> Columns:
        """Columns of message objects. Raises SchemaError, naming the field, when a value does not fit."""
        return cls.of_values(schema, schema.field_values(messages))

    @classmethod
    def of_values(cls, schema: Schema, values: Sequence[list[Any]]) -> Columns:
        """Columns of Python values, a list a field. Raises SchemaError, naming the field, when one does not fit."""
        columns = tuple(map(column_of_values, schema.fields, values))
        return cls(schema, len(values[0]), columns)

    @classmethod
    def concatenated(cls, schema: Schema, parts: Sequence[Columns]) -> Columns:
        """The rows of all parts, in order."""
        if len(parts) < 2:
            return parts[0] if parts else cls.of_messages(schema, [])
        columns = tuple(map(joined, zip(*(part.columns for part in parts), strict=True)))
        return cls(schema, sum(part.length for part in parts), columns)

    @classmethod
    def of_payload(cls, schema: Schema, payload: bytes) -> Columns:
        """Reads the columns of a frame of the log. Raises FrameError when they are not of `schema`.

        Every buffer is checked before it is viewed, since other programs may write to Kafka. Of values only text of any
        length and those of forms are checked: invalid UTF-8 in fixed-width text is read with replacements.
        """
        try:
            if (in_place := cls._in_place(schema, payload)) is not None:
                return in_place
            batch = _checked_batch(schema, payload)
            for column, field in zip(batch.columns, schema.fields, strict=True):
                _check_form(field, column)
            return cls.of_batch(schema, batch)
        except (pa.ArrowException, OSError, ValueError, EOFError, FrameError) as error:
            raise FrameError(f"columns of {schema.name}: {error}") from None

    @classmethod
    def of_external_payload(cls, schema: Schema, payload: bytes) -> Columns:
        """Reads the columns of a frame that a client wrote, and checks everything in it. Raises FrameError."""
        try:
            if (in_place := cls._in_place(schema, payload, spare_max=_PADDING_BYTES - 1)) is not None:
                for field, values in zip(schema.fields, in_place.columns, strict=True):
                    _check_values(field, values)
                return in_place
            batch = _checked_batch(schema, payload)
            for column, field in zip(batch.columns, schema.fields, strict=True):
                _check_external(field, column)
            return cls.of_batch(schema, batch)
        except (pa.ArrowException, OSError, ValueError, EOFError, FrameError) as error:
            raise FrameError(f"columns of {schema.name}: {error}") from None

    @classmethod
    def _in_place(cls, schema: Schema, payload: bytes, spare_max: int | None = None) -> Columns | None:
        """The columns without Arrow's slower reader; None where that reader has to name the error.

        `spare_max`: more bytes than that after a column's values mean another schema. Raises FrameError for text or
        bytes with invalid offsets.
        """
        layout = value_layout(payload, schema.widths) if schema.is_plain else None
        if layout is None or (spare_max is not None and layout.spare > spare_max):
            return None
        rows, varying = layout.rows, iter(layout.varying)
        columns = tuple(
            np.frombuffer(payload, field.dtype, rows, start)
            if field.dtype is not None
            else _varying(field, payload, rows, next(varying))
            for field, start in zip(schema.fields, layout.starts, strict=True)
        )
        return cls(schema, rows, columns)

    @classmethod
    def of_batch(cls, schema: Schema, batch: pa.RecordBatch) -> Columns:
        """The columns of an Arrow batch of exactly `schema.arrow`, without a copy of fixed-width ones."""
        columns = tuple(
            view_of(field, column) for field, column in zip(schema.fields, batch.columns, strict=True)
        )
        return cls(schema, batch.num_rows, columns)

    def batch(self) -> pa.RecordBatch:
        """These columns as an Arrow batch, without a copy."""
        arrays = [
            arrow_of(field, column) for field, column in zip(self.schema.fields, self.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema.arrow)

    def payload(self) -> bytes:
        """The body of a frame."""
        return self.payloads((0, self.length))[0]

    def payloads(self, bounds: Sequence[int]) -> list[bytes]:
        """One body for each pair of neighbouring bounds."""
        if self.schema.dtypes is not None:
            return [
                message_of(
                    self.schema.widths,
                    stop - start,
                    (column[start:stop].tobytes() for column in self.columns),
                )
                for start, stop in pairwise(bounds)
            ]
        batch = self.batch()
        return [batch.slice(start, stop - start).serialize().to_pybytes() for start, stop in pairwise(bounds)]

    def values(self, index: int) -> list[Any]:
        """The Python values of the field at `index`; cached, except where values are mutable."""
        if (made := self._values.get(index)) is not None:
            return made
        made = values_of(self.schema.fields[index], self.columns[index])
        if index not in self.schema.changing:
            self._values[index] = made
        return made

    def __iter__(self) -> Iterator[Any]:
        """One object of the message class a row, made lazily."""
        return map(self.schema.make, *(self.values(index) for index in range(len(self.columns))))

    def messages(self) -> list[Any]:
        """One object of the message class a row."""
        return list(self)

    def take(self, rows: Array) -> Columns:
        """The rows at these indexes, in that order."""
        indices = None if self.schema.fixed else pa.array(rows)
        columns = tuple(
            column.take(rows) if isinstance(column, np.ndarray) else column.take(indices)
            for column in self.columns
        )
        return Columns(self.schema, len(rows), columns)

    def slice(self, start: int, stop: int) -> Columns:
        """The rows from `start` up to but not including `stop`, without a copy."""
        columns = tuple(
            column[start:stop] if isinstance(column, np.ndarray) else column.slice(start, stop - start)
            for column in self.columns
        )
        return Columns(self.schema, stop - start, columns)

    def size_bytes(self) -> int:
        """Bytes of content: about the size of the payload."""
        return sum(column.nbytes for column in self.columns)


def _checked_batch(schema: Schema, payload: bytes) -> pa.RecordBatch:
    """The batch in a payload, with its buffers checked: long enough for its rows, and with offsets inside them.

    Raises FrameError, or an error of Arrow, for others, for compressed ones, and for nulls where none are allowed.
    """
    check_batch(payload, _nodes(schema))
    batch = pa.ipc.read_record_batch(pa.py_buffer(payload), schema.arrow)
    batch.validate(full=True)
    return batch


@lru_cache(maxsize=1024)
def _nodes(schema: Schema) -> tuple[Node, ...]:
    return nodes_of(schema.arrow)


def _varying(field: Field, payload: bytes, rows: int, varying: Varying) -> pa.Array:
    """A column of text or bytes of any length. Raises FrameError for offsets outside the data, and invalid UTF-8."""
    if not rows:
        return pa.array([], field.arrow)
    buffer = pa.py_buffer(payload)
    offsets = buffer.slice(varying.offsets, varying.offsets_size)
    data = buffer.slice(varying.data, varying.data_size)
    column = pa.Array.from_buffers(field.arrow, rows, [None, offsets, data], null_count=0)
    try:
        column.validate(full=True)
    except pa.ArrowException as error:
        raise FrameError(f"field {field.name!r}: {error}") from None
    return column


def _check_external(field: Field, column: pa.Array) -> None:
    """Raises FrameError for invalid values, and for buffers of a wider field, which belong to another schema."""
    if field.form is not None:
        _check_form(field, column)
        return
    data = column.buffers()[1]
    if field.dtype is not None and data is not None:
        expected = len(column) * field.dtype.itemsize
        if data.size >= expected + _PADDING_BYTES:
            raise FrameError(f"field {field.name!r} has {data.size} bytes, expected {expected}")
    _check_values(field, view_of(field, column))


def _check_form(field: Field, column: pa.Array) -> None:
    """Raises FrameError for an array with an invalid value of the field's form, if it has one."""
    if field.form is None:
        return
    try:
        field.form.check(column)
    except UnfitValueError as error:
        message = "" if error.row is None else f" of message {error.row}"
        raise FrameError(f"field {field.name + error.path!r}{message}: {error.reason}") from None


def _check_values(field: Field, values: Column) -> None:
    """Raises FrameError for bytes that are not a value of the field."""
    if (found := wrong_value(field, values)) is not None:
        reason, row = found
        message = f" of message {row}" if reason.startswith("is") else ""
        raise FrameError(f"field {field.name!r}{message} {reason}")
