"""The types of Postgres columns that take the values of a field, and the values that psycopg is passed.

| field                         | column types                                                  |
| ----------------------------- | ------------------------------------------------------------- |
| integer                       | smallint, integer, bigint that holds all its values; numeric  |
| f32; f64                      | real, double precision; double precision                      |
| bool                          | boolean                                                       |
| text                          | text, varchar; varchar(n) when the field has a width of at most n |
| bytes                         | bytea                                                         |
| a kind with a form            | `Form.sql`                                                    |
"""

from collections.abc import Sequence
from typing import Any

from bettong.schema.fields import Field, Kind

# Postgres' signed integer types, by size in bytes.
_INTEGERS = {2: "smallint", 4: "integer", 8: "bigint"}


def sql_types(field: Field) -> Sequence[str]:
    """The column types that take every value of a field, the best first."""
    if field.form is not None:
        return field.form.sql
    if field.kind is Kind.TEXT:
        width = field.dtype.itemsize if field.dtype is not None else None
        return ("text", "varchar") if width is None else ("text", "varchar", f"varchar({width}) or longer")
    if field.kind is Kind.BYTES:
        return ("bytea",)
    if field.kind is Kind.BOOL or field.dtype is None:
        return ("boolean",)
    size = field.dtype.itemsize
    if field.kind is Kind.FLOAT:
        return ("real", "double precision") if size == 4 else ("double precision",)
    needed = size + 1 if field.dtype.kind == "u" else size
    return (*(name for room, name in _INTEGERS.items() if room >= needed), "numeric")


def sql_value(field: Field, value: Any) -> Any:
    """The value that psycopg is passed for a field's value."""
    return value if field.form is None else field.form.to_sql(value)
