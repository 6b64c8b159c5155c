"""Finds the rows that fit a schema, and the reasons why others do not.

Columns are made of all rows at once; if that fails, of halves.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bettong.errors import SchemaError
from bettong.frames.columns import Columns
from bettong.schema.schema import Schema


def fitting(schema: Schema, messages: Sequence[Any]) -> tuple[Columns, dict[int, str]]:
    """Columns of the messages that fit `schema`, and by index the reasons why the others do not."""

    def made(kept: Sequence[int] | slice) -> Columns:
        part = messages[kept] if isinstance(kept, slice) else [messages[index] for index in kept]
        try:
            return Columns.of_messages(schema, part)
        except schema.unreadable:  # raised by a message of another class
            raise SchemaError(f"{type(part[0]).__name__} is no {schema.name}") from None

    return fitting_rows(len(messages), made)


def fitting_values(schema: Schema, values: Sequence[list[Any]]) -> tuple[Columns, dict[int, str]]:
    """The same for rows whose values are given as a list a field, in the schema's order."""

    def made(kept: Sequence[int] | slice) -> Columns:
        if isinstance(kept, slice):
            return Columns.of_values(schema, [each[kept] for each in values])
        return Columns.of_values(schema, [[each[index] for index in kept] for each in values])

    return fitting_rows(len(values[0]), made)


def fitting_rows(
    rows: int, made: Callable[[Sequence[int] | slice], Columns]
) -> tuple[Columns, dict[int, str]]:
    """The columns that `made` makes of the rows that fit, and by index the reasons why the others do not.

    `made` raises SchemaError for rows that do not fit. What it raises for no rows at all is passed on.
    """
    try:
        return made(slice(0, rows)), {}
    except SchemaError:
        if not rows:
            raise
        refused = dict(_violations(0, rows, made))
    return made([row for row in range(rows) if row not in refused]), refused


def _violations(
    start: int, stop: int, made: Callable[[Sequence[int] | slice], Columns]
) -> Iterator[tuple[int, str]]:
    """The rows that do not fit, and why. Halves that fit are not divided further."""
    try:
        made(slice(start, stop))
    except SchemaError as error:
        if stop - start == 1:
            yield start, str(error)
            return
        middle = (start + stop) // 2
        yield from _violations(start, middle, made)
        yield from _violations(middle, stop, made)
