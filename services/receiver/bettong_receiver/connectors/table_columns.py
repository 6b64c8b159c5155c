"""Which columns of a table take the fields of a message. Pure.

| field                         | column types                                      |
| ----------------------------- | ------------------------------------------------- |
| integer                       | smallint, integer, bigint that holds all its values; numeric |
| f32; f64                      | real, double precision; double precision          |
| bool                          | boolean                                           |
| text                          | text, varchar; varchar(n) when the field has a width of at most n |
| bytes                         | bytea                                             |
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bettong.schema.fields import Field, Kind
from bettong.schema.schema import Schema

# Postgres' own names, by the most bytes of an integer that a signed one of theirs holds.
_INTEGERS = {2: "smallint", 4: "integer", 8: "bigint"}
_NAMES = {
    "int2": "smallint",
    "int4": "integer",
    "int8": "bigint",
    "float4": "real",
    "float8": "double precision",
    "bool": "boolean",
    "varchar": "varchar",
}
# Postgres keeps the limit of a varchar with four bytes of header added, and -1 for none.
_LIMIT_EXTRA = 4


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column as Postgres' catalogue has it. `optional`: an insert may leave it out."""

    name: str
    type: str
    modifier: int
    optional: bool


def faults(schema: Schema, columns: Sequence[TableColumn]) -> list[str]:
    """A line for each field without a column that takes it, and each column that would be left empty and must not."""
    by_name: Mapping[str, TableColumn] = {column.name: column for column in columns}
    found = []
    for field in schema.fields:
        column = by_name.get(field.name)
        if column is None:
            found.append(f"no column {field.name!r}, expected one of type {types_of(field)[0]}")
        elif not _takes(column, field):
            found.append(
                f"column {field.name!r} is {_named(column)}, expected {' or '.join(types_of(field))}"
            )
    names = {field.name for field in schema.fields}
    found += [
        f"column {column.name!r} is NOT NULL without a default, and {schema.name} has no such field"
        for column in columns
        if column.name not in names and not column.optional
    ]
    return found


def types_of(field: Field) -> tuple[str, ...]:
    """The column types that take every value of a field, the best first."""
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


def _takes(column: TableColumn, field: Field) -> bool:
    name = _NAMES.get(column.type, column.type)
    if name == "varchar" and column.modifier >= 0:
        width = field.dtype.itemsize if field.dtype is not None else None
        return field.kind is Kind.TEXT and width is not None and width <= column.modifier - _LIMIT_EXTRA
    if name == "numeric" and column.modifier >= 0:
        return False
    return name in types_of(field)


def _named(column: TableColumn) -> str:
    name = _NAMES.get(column.type, column.type)
    if column.modifier < 0:
        return name
    return f"{name}({column.modifier - _LIMIT_EXTRA})" if name == "varchar" else f"{name} with limits"
