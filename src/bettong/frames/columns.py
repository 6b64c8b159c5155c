"""The messages of a frame as columns: numpy arrays for fixed-width fields, Arrow arrays for the others.

payload = Arrow IPC record batch message (no schema message, no compression, no nulls)

fixed-width field      one data buffer, viewed by numpy in place
variable-width field   offsets and data, kept as an Arrow array
"""

from __future__ import annotations

from array import array as PythonArray  # noqa: N812 - beside numpy's and Arrow's
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from itertools import pairwise
from operator import attrgetter
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from bettong.errors import FrameError, SchemaError
from bettong.frames.arrow_message import Varying, batch_head, check_batch, value_layout
from bettong.schema.fields import Field, Kind, not_utf8
from bettong.schema.schema import Schema
from bettong.user_errors import ANY_ERROR, reason_of

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Column: TypeAlias = Array | pa.Array

# Writers pad the buffers of a record batch to 8 or to this many bytes.
_PADDING_BYTES = 64

# Arrow's own writer pads to this.
_ALIGNED_BYTES = 8

# So many values tell whether a text column repeats itself.
_SAMPLE = 512


@dataclass(frozen=True, slots=True)
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
        return cls.of_values(schema, [list(map(attrgetter(field.name), messages)) for field in schema.fields])

    @classmethod
    def of_values(cls, schema: Schema, values: Sequence[list[Any]]) -> Columns:
        """Columns of Python values, a list a field. Raises SchemaError, naming the field, when one does not fit."""
        columns = tuple(map(column_of_values, schema.fields, values))
        return cls(schema, len(values[0]), columns)

    @classmethod
    def concatenated(cls, schema: Schema, parts: Sequence[Columns]) -> Columns:
        """The rows of all parts, one part after the other."""
        if len(parts) < 2:
            return parts[0] if parts else cls.of_messages(schema, [])
        columns = tuple(
            np.concatenate(column) if isinstance(column[0], np.ndarray) else pa.concat_arrays(column)
            for column in zip(*(part.columns for part in parts), strict=True)
        )
        return cls(schema, sum(part.length for part in parts), columns)

    @classmethod
    def of_payload(cls, schema: Schema, payload: bytes) -> Columns:
        """Reads the columns of a frame of the log. Raises FrameError when they are not of `schema`.

        Every buffer is checked before it is viewed, for others than Bettong may write to Kafka. Of values only text of
        any length is: what is no UTF-8 in text of a fixed width is read with replacements.
        """
        try:
            if (in_place := cls._in_place(schema, payload)) is not None:
                return in_place
            return cls.of_batch(schema, _checked_batch(schema, payload))
        except (pa.ArrowException, OSError, ValueError, EOFError, FrameError) as error:
            raise FrameError(f"columns of {schema.name}: {error}") from None

    @classmethod
    def of_external_payload(cls, schema: Schema, payload: bytes) -> Columns:
        """Reads the columns of a frame that a client wrote, and trusts nothing in it. Raises FrameError."""
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
        """The columns without Arrow's reader, which takes longer; None where it has to say what is wrong.

        `spare_max`: more bytes than that after a column's values must be another schema's. Raises FrameError for text
        or bytes that are not where their offsets say.
        """
        layout = value_layout(payload, schema.widths)
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
        return self.payloads((0, self.length))[0]

    def payloads(self, bounds: Sequence[int]) -> list[bytes]:
        """One body for each pair of neighbouring bounds."""
        if self.schema.dtypes is not None:
            return [self._payload(start, stop) for start, stop in pairwise(bounds)]
        batch = self.batch()
        return [batch.slice(start, stop - start).serialize().to_pybytes() for start, stop in pairwise(bounds)]

    def _payload(self, start: int, stop: int) -> bytes:
        """As Arrow would write it, byte for byte, in a third of the time."""
        parts = [batch_head(self.schema.widths, stop - start)]
        for column in self.columns:
            values = column[start:stop].tobytes()
            parts += (values, bytes(-len(values) % _ALIGNED_BYTES))
        return b"".join(parts)

    def values(self, index: int) -> list[Any]:
        """The Python values of the field at `index`; made once."""
        if index not in self._values:
            self._values[index] = _values_of(self.schema.fields[index], self.columns[index])
        return self._values[index]

    def __iter__(self) -> Iterator[Any]:
        """One object of the message class a row, each made when it is asked for."""
        return map(self.schema.message, *(self.values(index) for index in range(len(self.columns))))

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
        """Bytes of content: about what the payload takes."""
        return sum(column.nbytes for column in self.columns)


def _values_of(field: Field, column: Column) -> list[Any]:
    if isinstance(column, pa.Array):
        return list(column.to_numpy(zero_copy_only=False).tolist())
    if field.kind is Kind.TEXT:
        return _texts(column.tolist())
    if field.kind is Kind.BYTES:
        return list(column.view(f"V{column.itemsize}").tolist())
    if field.kind is Kind.BOOL:
        return list(column.astype(bool).tolist())
    return list(column.tolist())


def _texts(encoded: list[bytes]) -> list[str]:
    """Decodes text. Where values repeat, each is decoded once, and its hash is computed once."""
    if len(set(encoded[:_SAMPLE])) > _SAMPLE // 2:
        return [value.decode("utf-8", "replace") for value in encoded]
    decoded = {value: value.decode("utf-8", "replace") for value in set(encoded)}
    return [decoded[value] for value in encoded]


def _checked_batch(schema: Schema, payload: bytes) -> pa.RecordBatch:
    """The batch in a payload, whose buffers are as long as its rows need and whose offsets stay inside of them.

    Raises FrameError, or one of Arrow's errors, for any other, for compressed ones, and for nulls.
    """
    check_batch(payload, schema.arrow.names)
    batch = pa.ipc.read_record_batch(pa.py_buffer(payload), schema.arrow)
    batch.validate(full=True)
    return batch


def _varying(field: Field, payload: bytes, rows: int, varying: Varying) -> pa.Array:
    """A column of text or bytes of any length. Raises FrameError for offsets out of the data, and for no UTF-8."""
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
    """Raises FrameError for values that are none, and for buffers of a wider field: columns of another schema."""
    data = column.buffers()[1]
    if field.dtype is not None and data is not None:
        expected = len(column) * field.dtype.itemsize
        if data.size >= expected + _PADDING_BYTES:
            raise FrameError(f"field {field.name!r} has {data.size} bytes, expected {expected}")
    _check_values(field, _view(field, column))


def _check_values(field: Field, values: Column) -> None:
    """Raises FrameError for bytes that are no value of the field."""
    if field.dtype is not None and field.kind is Kind.TEXT and (bad := not_utf8(values)):
        raise FrameError(f"field {field.name!r} of message {bad[0]} is no UTF-8")
    if field.kind is Kind.BOOL and (values > 1).any():
        raise FrameError(f"field {field.name!r} has bytes other than 0 and 1")


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


def column_of_values(field: Field, values: list[Any]) -> Column:
    """A column of Python values. Raises SchemaError, naming the field, when one does not fit."""
    try:
        if field.dtype is None:
            _check_unchanging(field, values)
            column = pa.array(values, field.arrow)
        elif field.kind is Kind.BOOL:
            column = pa.array(values, pa.bool_()).cast(pa.uint8())
        elif field.kind in (Kind.TEXT, Kind.BYTES):
            return _fixed_text(field, values, field.dtype)
        else:
            _check_unchanging(field, values)
            # Arrow and numpy would cut 1.5 to an integer; an array of Python's refuses it, and is quicker.
            numbers = np.frombuffer(PythonArray(field.dtype.char, values), field.dtype)
            if field.dtype == np.float32 and (np.isinf(numbers) & np.isfinite(values)).any():
                raise OverflowError("a number too large for 32 bits")
            return numbers
    except SchemaError:
        raise
    except ANY_ERROR as error:  # Arrow's and Python's own, and what a value's `__index__` or the like raises
        is_plain = isinstance(
            error, pa.ArrowException | OverflowError | TypeError | ValueError | AttributeError
        )
        reason = str(error) if is_plain else reason_of(error)
        raise SchemaError(f"field {field.name!r}: {reason}") from None
    if column.null_count:
        raise SchemaError(f"field {field.name!r}: None is no {field.kind.value}")
    return _view(field, column)


def _check_unchanging(field: Field, values: list[Any]) -> None:
    """Raises SchemaError for the first value that can change after it was given, as an array or a bytearray can."""
    if field.kind is Kind.BYTES:
        if values and set(map(type, values)) != {bytes}:
            _check_text(field, values, 2**31)
        return
    try:
        # Nothing else tells it of all values as quickly: text can be joined, and by Python's convention what can change
        # has no hash.
        "".join(values) if field.kind is Kind.TEXT else hash(tuple(values))
    except ANY_ERROR:
        for value in values:
            if _can_change(value):
                reason = f"{type(value).__name__} is no {field.kind.value}: it can change after it was given"
                raise SchemaError(f"field {field.name!r}: {reason}") from None


def _can_change(value: object) -> bool:
    try:
        hash(value)
    except ANY_ERROR:
        return True
    return False


def _fixed_text(field: Field, values: list[Any], dtype: np.dtype[Any]) -> Array:
    encoded = list(map(str.encode, values)) if field.kind is Kind.TEXT else values
    if not encoded:
        return np.empty(0, dtype)
    if set(map(type, encoded)) != {bytes} or max(map(len, encoded)) > dtype.itemsize:
        _check_text(field, encoded, dtype.itemsize)
    return np.array(encoded, dtype)


def _check_text(field: Field, values: list[Any], width: int) -> None:
    """Raises SchemaError for the first that is no text, or too long."""
    for value in values:
        if not isinstance(value, bytes):
            raise SchemaError(f"field {field.name!r}: expected bytes, got {type(value).__name__}")
        if len(value) > width:
            raise SchemaError(f"field {field.name!r}: {value!r} is longer than {width} bytes")
