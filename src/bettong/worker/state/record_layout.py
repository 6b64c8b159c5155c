"""How a state is a record of fixed width."""

from dataclasses import is_dataclass
from typing import Any

import numpy as np

from bettong.application.nodes.stateful import Stateful
from bettong.errors import ApplicationError, SchemaError
from bettong.frames.columns import Columns
from bettong.schema.fields import Kind
from bettong.schema.schema import Schema, schema_of


def first_state(node: Stateful) -> Any:
    """The record that a new key starts with. Raises ApplicationError when the state cannot be one."""
    try:
        check_fixed(node.mode.value, node.name, schema_of(node.state))
        return records_of(node, [node.state()])
    except (SchemaError, TypeError) as error:
        raise ApplicationError(f"{node.mode.value} {node.name!r}: state: {error}") from None


def records_of(node: Stateful, states: list[Any]) -> Any:
    """States of the computation as records. Raises ApplicationError for what cannot be one."""
    try:
        schema = schema_of(node.state)
        check_fixed(node.mode.value, node.name, schema)
        values = Columns.of_messages(schema, states)
    except SchemaError as error:
        raise ApplicationError(f"{node.mode.value} {node.name!r}: state: {error}") from None
    records = np.zeros(len(states), state_dtype(schema))
    for field, column in zip(schema.fields, values.columns, strict=True):
        records[field.name] = column
    return records


def state_dtype(schema: Schema) -> np.dtype[Any]:
    """The record of one key's state: numbers as wide as Python's arithmetic needs them."""
    wide = {Kind.INT: np.dtype("<i8"), Kind.FLOAT: np.dtype("<f8"), Kind.BOOL: np.dtype("?")}
    return np.dtype([(field.name, wide.get(field.kind, field.dtype)) for field in schema.fields], align=True)


def check_fixed(mode: str, name: str, schema: Schema) -> None:
    """Raises ApplicationError for fields whose width varies, and for what is no dataclass."""
    if not is_dataclass(schema.message):
        raise ApplicationError(f"{mode} {name!r}: {schema.name}: expected a dataclass")
    if odd := [f"{field.name} ({field.kind_name})" for field in schema.fields if field.form is not None]:
        raise ApplicationError(
            f"{mode} {name!r}: {schema.name}: {', '.join(odd)}: numbers, bools, and text and bytes of a fixed width are"
            " all that can be there; keep it as one of these, such as an int of microseconds, or leave the mark out"
        )
    if loose := [field.name for field in schema.fields if field.dtype is None]:
        raise ApplicationError(
            f"{mode} {name!r}: {schema.name}: {', '.join(loose)} has no fixed width;"
            " use Annotated[str, Width(n)] or Annotated[bytes, Width(n)]"
        )
