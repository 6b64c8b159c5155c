"""Values of JSON as values of a source's fields: what `bettong.frames.text` writes reads back as it was.

The sender says with each field which kind it is (`fields.KIND`), for Arrow's types alone do not: a bool travels as a
byte, and text as bytes where its width is fixed. An older one does not say; then the type decides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from bettong.errors import SchemaError
from bettong.frames.text import bytes_of, float_of
from bettong.schema.fields import KIND, Kind, kind_of

Reader = Callable[[Any], Any]


def reader_of(field: pa.Field) -> Reader:
    """Reads one value for a field. It raises SchemaError for what is none."""
    kind = kind_of(field)
    if kind is Kind.BOOL:
        return _bool
    if kind is Kind.FLOAT:
        return float_of
    if kind is Kind.INT:
        return _whole(field.type, bools=KIND not in (field.metadata or {}))
    return _bytes if kind is Kind.BYTES else _text


def column_of(field: pa.Field, values: list[Any]) -> Any:
    """What `reader_of` read, as a column for `tables.batch_of`."""
    kind = kind_of(field)
    if kind in (Kind.INT, Kind.BOOL):
        return pa.array(values, field.type)
    return pa.array(values, pa.float64()) if kind is Kind.FLOAT else values


def _whole(kind: pa.DataType, *, bools: bool) -> Reader:
    limits = np.iinfo(kind.to_pandas_dtype())
    least, most = int(limits.min), int(limits.max)

    def read(value: object) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if (isinstance(value, bool) and not bools) or not isinstance(value, int):
            raise SchemaError(f"expected a whole number, got {_shown(value)}")
        if not least <= value <= most:
            raise SchemaError(f"{_shown(value)} does not fit {kind}, which holds {least} to {most}")
        return int(value)

    return read


def _bool(value: object) -> int:
    if isinstance(value, bool) or (isinstance(value, int) and value in (0, 1)):
        return int(value)
    raise SchemaError(f"expected true, false, 1 or 0, got {_shown(value)}")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise SchemaError(f"expected text, got {_shown(value)}")
    return value


def _bytes(value: object) -> bytes:
    try:
        return bytes_of(_text(value))
    except ValueError as error:
        raise SchemaError(f"no base64: {error}") from None


def _shown(value: object) -> str:
    """For an error's text: never a whole document, never a thousand digits."""
    if isinstance(value, int) and value.bit_length() > 128:
        return f"a number of {value.bit_length()} bits"
    return f"{value!r}" if isinstance(value, int | float | None) else type(value).__name__
