"""The messages of a key, and the key that a text stands for."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bettong.application.plan import StageInput
from bettong.frames.columns import Columns
from bettong.frames.key_values import read_key, read_parts
from bettong.schema.fields import Kind
from bettong.schema.key_types import KEY_TYPES, KeyPart, KeyValue
from bettong.worker.batch import FrameKeys
from bettong.worker.state.records import key_column

# The type that the values of a key field are read as.
_OF_FIELDS = {Kind.BYTES: bytes, Kind.BOOL: bool, Kind.INT: int}


def indexes_of(entry: StageInput, columns: Columns, key: KeyValue) -> list[int]:
    """The indexes of the messages of a key in a frame."""
    if entry.key is None or not isinstance(entry.key, str):
        values = FrameKeys(entry, columns).values() if entry.key is not None else []
        return [index for index, value in enumerate(values) if type(value) is type(key) and value == key]
    column = columns.columns[columns.schema.position(entry.key)]
    if isinstance(column, pa.Array):
        kind = str if pa.types.is_string(column.type) else bytes
        if not isinstance(key, kind):
            return []
        same = pc.equal(column, pa.scalar(key, column.type)).to_numpy(zero_copy_only=False)
        return np.flatnonzero(same).tolist()
    wanted = key_column(key, column.dtype)
    return [] if wanted is None else np.flatnonzero(column == wanted[0]).tolist()


def key_of(entry: StageInput, text: str) -> KeyValue:
    """The key that a text stands for, of the type that messages have: see `frames.key_values.key_text`.

    A key function's type is its return annotation, else text. Raises ValueError, which says what is expected.
    """
    if isinstance(entry.key, str):
        return _part_of(entry, entry.key, text)
    if isinstance(entry.key, tuple):
        parts = read_parts(text)
        if len(parts) != len(entry.key):
            raise ValueError(f"{text!r} has {len(parts)} parts, expected {', '.join(entry.key) or 'none'}")
        return tuple(_part_of(entry, name, part) for name, part in zip(entry.key, parts, strict=True))
    returns = getattr(entry.key, "__annotations__", {}).get("return", str)
    types = {kind.__name__: kind for kind in KEY_TYPES}
    # An annotation may be a text: "tuple[str, int]".
    kind = types.get(str(getattr(returns, "__name__", returns)).partition("[")[0], str)
    if kind is tuple:
        return tuple(json.loads(text)) if read_parts(text) else ()
    return read_key(text, kind)


def _part_of(entry: StageInput, name: str, text: str) -> KeyPart:
    """The value of a field that a text stands for. Raises ValueError."""
    field = entry.schema.fields[entry.schema.position(name)]
    width = field.dtype.itemsize if field.dtype is not None and field.kind in (Kind.TEXT, Kind.BYTES) else 0
    key = read_key(text, _OF_FIELDS.get(field.kind, str), width=width)
    if field.dtype is not None and key_column(key, field.dtype) is None:
        raise ValueError(f"it does not fit {name!r}, {field.dtype}")
    return key
