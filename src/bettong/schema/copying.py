"""Copies of messages, and of values that a user's code could still change: nobody else sees what it does to them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from bettong.schema.fields import Field
from bettong.schema.record_classes import RecordClass

Copier: TypeAlias = Callable[[Any], Any]


def copiers_of(fields: Sequence[Field]) -> Mapping[int, Copier]:
    """By position, how the values of those fields are copied that can change after they were given."""
    return {index: field.form.copied for index, field in enumerate(fields) if field.changes and field.form}


def reader_of(record: RecordClass, fields: Sequence[Field]) -> Callable[[Any], Any]:
    """Reads an object's fields: their values in order, of one field its value alone. What can change is copied.

    The reader raises `record.unreadable` for an object of another class.
    """
    read, copiers = record.getter(*(field.name for field in fields)), copiers_of(fields)
    if not copiers:
        return read
    if len(fields) == 1:
        copied = copiers[0]
        return lambda message: copied(read(message))
    of = tuple(copiers.items())

    def read_copies(message: Any) -> list[Any]:
        values = list(read(message))
        for index, copied in of:
            values[index] = copied(values[index])
        return values

    return read_copies


def copier_of(record: RecordClass, fields: Sequence[Field]) -> Copier | None:
    """Makes another object with the same values. None: nobody can change one, so it can be shared.

    The copier raises `record.unreadable` for an object of another class.
    """
    if record.is_frozen and not copiers_of(fields):
        return None
    read, make = reader_of(record, fields), record.make
    if len(fields) == 1:
        return lambda message: make(read(message))
    return lambda message: make(*read(message))
