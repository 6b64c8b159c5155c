"""The node of a join with a reference table."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, TypeAlias

from bettong.application.callables import is_lambda, name_of
from bettong.application.joins.kinds import check_how
from bettong.application.keys import key_types
from bettong.application.nodes.computation import Computation
from bettong.application.nodes.node import StreamNode
from bettong.application.on_error import OnError, check_on_error
from bettong.application.reference_source import Load, ReferenceSource, reference_source
from bettong.application.returns import Returns
from bettong.application.signatures import (
    annotated,
    annotation_text,
    check_function,
    check_lambda_result,
    join_output,
    message_of,
    returned_by,
    without_none,
)
from bettong.errors import ApplicationError, SchemaError
from bettong.schema.fields import Kind
from bettong.schema.key_types import KEY_TYPES, KeyPart
from bettong.schema.schema import Schema, schema_of

# A field of the message, or a function of it, that selects its row.
On: TypeAlias = str | Callable[[Any], KeyPart]
ReferenceHow: TypeAlias = Literal["inner", "left"]

_TYPES: dict[Kind, type[Any]] = {Kind.INT: int, Kind.TEXT: str, Kind.BYTES: bytes}


@dataclass(frozen=True, eq=False)
class Referenced(Computation):
    """See `Stream.join_reference`. `on`: None for the key of the stream."""

    source: ReferenceSource
    combine: Callable[[Any, Any], Any]
    on: On | None
    how: ReferenceHow
    on_error: OnError
    method = "join_reference"
    returns = Returns.ONE

    @property
    def reference(self) -> ReferenceSource:
        """See Computation."""
        return self.source


def referenced(
    parent: StreamNode,
    load: Load,
    combine: Callable[[Any, Any], Any],
    *,
    key: str,
    on: On | None,
    reload_every: timedelta | None,
    how: ReferenceHow,
    name: str | None,
    on_error: OnError,
) -> Referenced:
    """The node of `join_reference`. Raises ApplicationError."""
    row = "Row | None" if how == "left" else "Row"
    check_lambda_result("join_reference", name, combine, (message_of(parent.schema), row), "Result | None")
    name = name or name_of(combine)
    owner = f"join_reference {name!r}"
    check_on_error(owner, on_error)
    check_how(owner, how, of_left=True)
    schema = parent.one_schema(name)
    rows = _row_schema(owner, combine, schema, row)
    output = join_output(owner, combine, (schema, rows), (False, how == "left"))
    source = reference_source(owner, load, key, rows, reload_every)
    found = _checked_on(owner, on, parent, schema, source)
    return Referenced(name, output.schema, parent.keyed, parent, source, combine, found, how, on_error)


def _row_schema(owner: str, combine: Callable[..., Any], schema: Schema, row: str) -> Schema:
    """The schema of the rows: the annotated class of `combine`'s second parameter. `row`: its text in errors."""
    returned_by(f"{owner}: combine", combine, (schema.message, Any), "two arguments, a message and a row")
    parameter = list(inspect.signature(combine, eval_str=True).parameters.values())[1]
    try:
        return schema_of(without_none(parameter.annotation))
    except SchemaError as error:
        if is_lambda(combine):
            written = annotated("combine", combine, (schema.message, row), "Result | None")
            raise ApplicationError(
                f"{owner}: combine: annotate what it takes, Row being the class of the table's rows: {written}"
            ) from None
        raise ApplicationError(
            f"{owner}: combine: annotate parameter {parameter.name!r} with the class of the table's rows, whose fields"
            f" are columns of it, not {annotation_text(parameter.annotation)}: {error}"
        ) from None


def _checked_on(
    owner: str, on: On | None, parent: StreamNode, schema: Schema, source: ReferenceSource
) -> On | None:
    kind = _TYPES[source.key_field.kind]
    if on is None:
        if any(each.name == source.key for each in schema.fields):
            on = source.key
        elif parent.keyed:
            _check_key(owner, parent, source)
            return None
        else:
            raise ApplicationError(
                f"{owner}: {schema.name} has no field {source.key!r}, and {parent.name!r} no key: give on=, the field"
                " of a message, or a function of it, that says which row belongs to it"
            )
    if not isinstance(on, str):
        check_function(f"{owner}: on", on, takes=schema.message, returns=(kind,))
        return on
    try:
        field = schema.fields[schema.position(on)]
    except SchemaError as error:
        raise ApplicationError(f"{owner}: on={on!r}: {error}") from None
    if field.kind is not source.key_field.kind:
        raise ApplicationError(
            f"{owner}: {schema.name}.{on} is {field.kind_name}, and the key {source.schema.name}.{source.key} is"
            f" {source.key_field.kind_name}: they never meet; give on= a function that makes {kind.__name__} of it"
        )
    return on


def _check_key(owner: str, parent: StreamNode, source: ReferenceSource) -> None:
    wanted = KEY_TYPES[_TYPES[source.key_field.kind]]
    for stream, found in key_types(parent).items():
        if found != wanted:
            raise ApplicationError(
                f"{owner}: {stream!r} is keyed by {found}, and {source.schema.name}.{source.key} is of {wanted}: they"
                " never meet; give on=, the field of a message, or a function of it, that says which row belongs to it"
            )
