"""Which column types of a table can store the fields of a message, by `bettong.schema.sql_types`. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bettong.schema.fields import Field, Kind
from bettong.schema.forms.nullable import NullableForm
from bettong.schema.schema import Schema
from bettong.schema.sql_types import sql_types

# The usual names of types in Postgres's catalogue.
_NAMES = {
    "int2": "smallint",
    "int4": "integer",
    "int8": "bigint",
    "float4": "real",
    "float8": "double precision",
    "bool": "boolean",
    "varchar": "varchar",
}
_NUMERIC = re.compile(r"numeric\((\d+),(\d+)\)")
# Postgres stores the limit of a varchar plus four bytes for the header; -1 means no limit.
_LIMIT_EXTRA = 4


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column from Postgres's catalogue. `optional`: an insert may omit it."""

    name: str
    type: str
    modifier: int
    optional: bool


def faults(schema: Schema, columns: Sequence[TableColumn]) -> list[str]:
    """One line for each field without a suitable column, and for each mandatory column without a field."""
    by_name: Mapping[str, TableColumn] = {column.name: column for column in columns}
    found = []
    for field in schema.fields:
        column = by_name.get(field.name)
        if column is None:
            found.append(f"no column {field.name!r}, expected one of type {types_of(field)[0]}")
        elif not _can_store(column, field):
            found.append(
                f"column {field.name!r} is {_type_name(column)}, expected {' or '.join(types_of(field))}"
            )
    names = {field.name for field in schema.fields}
    found += [
        f"column {column.name!r} is NOT NULL without a default, and {schema.name} has no such field"
        for column in columns
        if column.name not in names and not column.optional
    ]
    return found


def types_of(field: Field) -> Sequence[str]:
    """The column types that can store every value of a field, best first."""
    return sql_types(field)


def _can_store(column: TableColumn, field: Field) -> bool:
    if isinstance(field.form, NullableForm):
        return _can_store(column, field.form.held)
    name = _NAMES.get(column.type, column.type)
    if name == "varchar" and column.modifier >= 0:
        width = field.dtype.itemsize if field.dtype is not None else None
        return field.kind is Kind.TEXT and width is not None and width <= column.modifier - _LIMIT_EXTRA
    if name == "numeric" and column.modifier >= 0:
        return _can_store_decimal(column, types_of(field))
    return column.modifier < 0 and name in types_of(field)


def _can_store_decimal(column: TableColumn, types: Sequence[str]) -> bool:
    """Whether a numeric column has enough digits, before and after the point, for one of these types."""
    limits = column.modifier - _LIMIT_EXTRA
    digits, scale = limits >> 16, limits & 0xFFFF
    wanted = [(int(found[1]), int(found[2])) for each in types if (found := _NUMERIC.fullmatch(each))]
    return any(scale >= least and digits - scale >= most - least for most, least in wanted)


def _type_name(column: TableColumn) -> str:
    name = _NAMES.get(column.type, column.type)
    if column.modifier < 0:
        return name
    return f"{name}({column.modifier - _LIMIT_EXTRA})" if name == "varchar" else f"{name} with limits"
