"""Which column types can store which fields."""

from dataclasses import dataclass
from typing import Annotated

import pytest

import bettong
from bettong.schema.schema import schema_of
from bettong_receiver.connectors.table_columns import TableColumn, faults, types_of


@dataclass
class Wide:
    tiny: bettong.u8
    small: bettong.u16
    middle: bettong.u32
    whole: int
    huge: bettong.u64
    ratio: bettong.f32
    exact: float
    yes: bool
    name: str
    code: Annotated[str, bettong.Width(8)]
    data: bytes


SCHEMA = schema_of(Wide)
FITTING = {
    "tiny": "int2",
    "small": "int4",
    "middle": "int8",
    "whole": "int8",
    "huge": "numeric",
    "ratio": "float4",
    "exact": "float8",
    "yes": "bool",
    "name": "text",
    "code": "varchar",
    "data": "bytea",
}


def column(name: str, kind: str, modifier: int = -1, *, optional: bool = True) -> TableColumn:
    return TableColumn(name, kind, modifier, optional)


def table(**changes: TableColumn | None) -> list[TableColumn]:
    columns: dict[str, TableColumn | None] = {name: column(name, kind) for name, kind in FITTING.items()}
    return [each for each in (columns | changes).values() if each is not None]


def test_a_table_of_the_named_types_fits() -> None:
    assert faults(SCHEMA, table()) == []
    first = {field.name: types_of(field)[0] for field in SCHEMA.fields}
    assert (first["tiny"], first["huge"], first["exact"]) == ("smallint", "numeric", "double precision")


def test_columns_beyond_the_fields_must_be_optional() -> None:
    assert faults(SCHEMA, table(id=column("id", "int8"))) == []
    (fault,) = faults(SCHEMA, table(id=column("id", "int8", optional=False)))
    assert fault == "column 'id' is NOT NULL without a default, and Wide has no such field"


@pytest.mark.parametrize(
    ("name", "kind", "modifier", "reported"),
    [
        ("small", "int2", -1, "column 'small' is smallint, expected integer or bigint or numeric"),
        ("whole", "int4", -1, "column 'whole' is integer, expected bigint or numeric"),
        ("huge", "int8", -1, "column 'huge' is bigint, expected numeric"),
        ("huge", "numeric", 655364, "column 'huge' is numeric with limits, expected numeric"),
        ("exact", "float4", -1, "column 'exact' is real, expected double precision"),
        ("yes", "int2", -1, "column 'yes' is smallint, expected boolean"),
        ("name", "varchar", 104, "column 'name' is varchar(100), expected text or varchar"),
        ("name", "jsonb", -1, "column 'name' is jsonb, expected text or varchar"),
        (
            "code",
            "varchar",
            11,
            "column 'code' is varchar(7), expected text or varchar or varchar(8) or longer",
        ),
        ("data", "text", -1, "column 'data' is text, expected bytea"),
    ],
)
def test_a_column_that_cannot_take_every_value_is_reported(
    name: str, kind: str, modifier: int, reported: str
) -> None:
    assert faults(SCHEMA, table(**{name: column(name, kind, modifier)})) == [reported]


def test_a_text_with_a_width_fits_a_varchar_as_wide() -> None:
    assert faults(SCHEMA, table(code=column("code", "varchar", 8 + 4))) == []


def test_all_faults_are_reported_at_once() -> None:
    found = faults(
        SCHEMA, table(tiny=None, yes=column("yes", "text"), other=column("other", "text", optional=False))
    )
    assert len(found) == 3
    assert found[0] == "no column 'tiny', expected one of type smallint"
