"""Copies of messages, and of mutable values, so that the user's later changes of them have no effect elsewhere."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bettong.schema.fields import Field
from bettong.schema.form import Copier
from bettong.schema.record_classes import RecordClass


def copiers_of(fields: Sequence[Field]) -> Mapping[int, Copier]:
    """By position, the copiers of fields whose values are mutable."""
    found = ((index, field.copier()) for index, field in enumerate(fields))
    return {index: copied for index, copied in found if copied is not None}


def reader_of(record: RecordClass, fields: Sequence[Field]) -> Callable[[Any], Any]:
    """A function that reads an object's fields: their values in order, of a single field its value alone.

    It copies mutable values, and raises `record.unreadable` for an object of another class.
    """
    return _reader(record, fields, copiers_of(fields))


def copier_of(record: RecordClass, fields: Sequence[Field]) -> Copier | None:
    """A function that copies an object. None: objects are immutable, and can be shared.

    It raises `record.unreadable` for an object of another class.
    """
    copiers = copiers_of(fields)
    if record.is_frozen and not copiers:
        return None
    read, make = _reader(record, fields, copiers), record.make
    if len(fields) == 1:
        return lambda message: make(read(message))
    return lambda message: make(*read(message))


def _reader(
    record: RecordClass, fields: Sequence[Field], copiers: Mapping[int, Copier]
) -> Callable[[Any], Any]:
    read = record.getter(*(field.name for field in fields))
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
