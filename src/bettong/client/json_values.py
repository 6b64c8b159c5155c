"""Values of a source's fields as columns.

The metadata of a field name its kind (`bettong.kind`), which its Arrow type alone does not: a bool is sent as a byte,
and text of a fixed width as bytes.
"""

from typing import Any

import pyarrow as pa

from bettong.schema.annotations import field_of_arrow
from bettong.schema.fields import Kind
from bettong.schema.form import Form
from bettong.schema.values import column_of_values


def form_of(field: pa.Field) -> Form | None:
    """The form of a field; None for one of a plain kind."""
    return field_of_arrow(field.name, field).form


def column_of(field: pa.Field, values: list[Any]) -> Any:
    """Makes a column for `tables.batch_of` of the values that a FieldReader read."""
    found = field_of_arrow(field.name, field)
    if found.form is not None:
        return column_of_values(found, values)
    if found.kind in (Kind.INT, Kind.BOOL):
        return pa.array(map(int, values), field.type)
    return pa.array(values, pa.float64()) if found.kind is Kind.FLOAT else values
