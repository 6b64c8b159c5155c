"""A schema: the fields of a message class, in order, and their fingerprint."""

import dataclasses
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa

from bettong.errors import SchemaError
from bettong.schema.annotations import field_of
from bettong.schema.copying import copier_of, copiers_of, reader_of
from bettong.schema.defaults import with_default
from bettong.schema.fields import Field
from bettong.schema.form import Copier
from bettong.schema.record_classes import Getter, RecordClass, is_frozen, is_record_class, record_class_of


@dataclass(frozen=True)
class Schema:
    """The layout of the messages of one class. Equal classes have equal fingerprints in every process."""

    message: type[Any]
    fields: tuple[Field, ...]

    def __hash__(self) -> int:
        """The hash of the class alone, which determines the fields: schemas are looked up for each frame."""
        return hash(self.message)

    @property
    def name(self) -> str:
        """The name of the message class."""
        return self.message.__name__

    @cached_property
    def fingerprint(self) -> int:
        """64 bits over names and types of the fields, never 0; the name of the class is not part of it."""
        text = ";".join(field.token for field in self.fields)
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") or 1

    @cached_property
    def arrow(self) -> pa.Schema:
        """The Arrow schema of a frame's columns, with the kind of each field in its metadata."""
        return pa.schema([field.arrow_field for field in self.fields])

    @cached_property
    def is_plain(self) -> bool:
        """Whether no field has a form: then a frame's columns are viewed in place."""
        return all(field.form is None for field in self.fields)

    @cached_property
    def make(self) -> Callable[..., Any]:
        """Makes a message from the values of its fields, in order."""
        return self.message if dataclasses.is_dataclass(self.message) else record_class_of(self.message).make

    @cached_property
    def getter(self) -> Getter:
        """`attrgetter`, or `itemgetter` where messages are dicts."""
        return attrgetter if dataclasses.is_dataclass(self.message) else record_class_of(self.message).getter

    def field_values(self, messages: Sequence[Any]) -> list[list[Any]]:
        """The values of messages, a list a field."""
        return [list(map(get, messages)) for get in self.getters]

    @cached_property
    def getters(self) -> tuple[Callable[[Any], Any], ...]:
        """Each gets the value of one field of a message."""
        return tuple(self.getter(field.name) for field in self.fields)

    @cached_property
    def unreadable(self) -> tuple[type[Exception], ...]:
        """What a getter raises for an object of another class."""
        return (
            (AttributeError,)
            if dataclasses.is_dataclass(self.message)
            else record_class_of(self.message).unreadable
        )

    @cached_property
    def made_class(self) -> type[Any]:
        """The class of messages as objects: the message's own, or dict."""
        return (
            self.message
            if dataclasses.is_dataclass(self.message)
            else record_class_of(self.message).made_class
        )

    @cached_property
    def record(self) -> RecordClass:
        """How messages are made and read."""
        return RecordClass(
            self.name,
            {},
            self.make,
            self.made_class,
            getter=self.getter,
            unreadable=self.unreadable,
            is_frozen=is_frozen(self.message),
        )

    @cached_property
    def read(self) -> Callable[[Any], Any]:
        """Reads a message: see `copying.reader_of`."""
        return reader_of(self.record, self.fields)

    @cached_property
    def copied(self) -> Copier | None:
        """Copies a message: see `copying.copier_of`."""
        return copier_of(self.record, self.fields)

    @cached_property
    def changing(self) -> frozenset[int]:
        """The positions of fields whose values are mutable."""
        return frozenset(copiers_of(self.fields))

    @cached_property
    def dtypes(self) -> tuple[np.dtype[Any], ...] | None:
        """The numpy types of the fields; None when the width of one varies."""
        found = tuple(field.dtype for field in self.fields if field.dtype is not None)
        return found if len(found) == len(self.fields) else None

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Bytes of a value of each field, 0 where the width varies."""
        return tuple(field.dtype.itemsize if field.dtype is not None else 0 for field in self.fields)

    @property
    def fixed(self) -> bool:
        """Whether every field has a fixed width, as compiled computations need."""
        return self.dtypes is not None

    def position(self, name: str) -> int:
        """The index of a field. Raises SchemaError when there is none of that name."""
        for index, field in enumerate(self.fields):
            if field.name == name:
                return index
        known = ", ".join(field.name for field in self.fields)
        raise SchemaError(f"{self.name} has no field {name!r}; it has {known}")


def schema_of(message: object) -> Schema:
    """The schema of a dataclass, a TypedDict or a pydantic model.

    Raises SchemaError, naming class and field, for a class that cannot be one.
    """
    if not isinstance(message, type) or not is_record_class(message):
        raise SchemaError(
            f"{message!r} is no schema: expected a class decorated with @dataclass, a TypedDict or a pydantic model"
        )
    found: Any = message
    return _schema_of_class(found)


@lru_cache(maxsize=1024)
def _schema_of_class(message: Any) -> Schema:
    record = record_class_of(message)
    try:
        fields = (field_of(name, hint) for name, hint in record.hints.items())
        return Schema(message, tuple(with_default(field, record.defaults) for field in fields))
    except SchemaError as error:
        raise SchemaError(f"{message.__name__}: {error}") from None
