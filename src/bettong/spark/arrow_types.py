"""Converts Arrow columns to types that Spark has: no unsigned integers, no fixed widths and no long decimals.

| in frames                      | in Spark                               |
| ------------------------------ | -------------------------------------- |
| `uint8`, `uint16`, `uint32`    | the next larger signed integer         |
| `uint64`                       | `decimal(20, 0)`                       |
| `uint8` of bools               | `boolean`                              |
| text and bytes of fixed width  | `string` without its padding, `binary` |
| UUIDs                          | `string`                               |
| decimals of more than 38 digits | `string`                              |

The items of lists, maps and structs are converted likewise; all other types stay. Pure.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from bettong.schema.annotations import field_of_arrow
from bettong.schema.fields import Kind, kind_name_of

_UNSIGNED = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
}


def spark_field(field: pa.Field) -> pa.Field:
    """Spark's field for a field of a frame, with the same name and always nullable."""
    return pa.field(field.name, _type_of(field), nullable=True)


def spark_array(field: pa.Field, array: pa.Array) -> pa.Array:
    """Converts the values of a frame's field to the type of its `spark_field`."""
    kind, wanted = field.type, _type_of(field)
    if kind == wanted:
        return array
    if pa.types.is_list(kind):
        array = _without_offset(array)
        items = spark_array(kind.value_field, array.values)
        return pa.ListArray.from_arrays(array.offsets, items, type=wanted, mask=array.is_null())
    if pa.types.is_map(kind):
        array = _without_offset(array)
        items = spark_array(kind.item_field, array.items)
        return pa.MapArray.from_arrays(array.offsets, array.keys, items, type=wanted, mask=array.is_null())
    if pa.types.is_struct(kind):
        parts = [spark_array(part, column) for part, column in zip(kind, array.flatten(), strict=True)]
        return pa.StructArray.from_arrays(parts, fields=list(wanted), mask=array.is_null())
    form = field_of_arrow(field.name, field.with_nullable(False)).form  # noqa: FBT003 - Arrow's
    if form is not None and wanted == pa.string():
        known = array.drop_null()
        texts = iter([str(form.to_json(each)) for each in form.values(known)])
        return pa.array([next(texts) if valid else None for valid in array.is_valid().to_pylist()], wanted)
    if pa.types.is_fixed_size_binary(kind):
        values = array.cast(pa.binary())
        if wanted == pa.binary():
            return values
        return pa.array([None if each is None else _text(each) for each in values.to_pylist()], wanted)
    return pc.cast(array, wanted)


def _type_of(field: pa.Field) -> pa.DataType:
    kind, name = field.type, kind_name_of(field)
    if pa.types.is_list(kind):
        return pa.list_(spark_field(kind.value_field))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, spark_field(kind.item_field))
    if pa.types.is_struct(kind):
        return pa.struct([spark_field(part) for part in kind])
    if kind == pa.uint8() and name == Kind.BOOL:
        return pa.bool_()
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary() if name == Kind.BYTES else pa.string()
    if pa.types.is_decimal256(kind):
        return pa.string()
    return _UNSIGNED.get(kind, kind)


def _without_offset(array: pa.Array) -> pa.Array:
    """Copies an array that is a slice: lists and maps cannot be rebuilt from the offsets of a slice."""
    return array.take(pa.array(range(len(array)), pa.int64())) if array.offset else array


def _text(value: bytes) -> str:
    return value.rstrip(b"\0").decode("utf-8", "replace")
