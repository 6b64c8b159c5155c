"""A schema: the fields of a message class, in order, and their fingerprint."""

import dataclasses
import hashlib
import inspect
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, get_type_hints

import numpy as np
import pyarrow as pa

from bettong.errors import SchemaError
from bettong.schema.fields import KIND, Field, field_of


@dataclass(frozen=True)
class Schema:
    """The layout of the messages of one class. Equal classes give equal fingerprints in every process."""

    message: type[Any]
    fields: tuple[Field, ...]

    def __hash__(self) -> int:
        """Of the class alone, which decides the fields: schemas are looked up for each frame."""
        return hash(self.message)

    @property
    def name(self) -> str:
        """The name of the message class."""
        return self.message.__name__

    @cached_property
    def fingerprint(self) -> int:
        """64 bits over names and types of the fields, never 0; the class's own name does not count."""
        text = ";".join(field.token for field in self.fields)
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") or 1

    @cached_property
    def arrow(self) -> pa.Schema:
        """The Arrow schema of a frame's columns: no nulls anywhere. Metadata of a field hold its kind."""
        return pa.schema(
            [
                pa.field(field.name, field.arrow, nullable=False, metadata={KIND: field.kind.value})
                for field in self.fields
            ]
        )

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
    """The schema of a dataclass. Raises SchemaError, naming class and field, when it cannot be one."""
    if not isinstance(message, type) or not dataclasses.is_dataclass(message):
        raise SchemaError(f"{message!r} is no schema: expected a class decorated with @dataclass")
    return _schema_of_class(message)


@lru_cache(maxsize=1024)
def _schema_of_class(message: type[Any]) -> Schema:
    try:
        hints = get_type_hints(message, include_extras=True)
    except NameError as error:
        raise SchemaError(f"{message.__name__}: an annotation cannot be resolved: {error}") from None
    names = [field.name for field in dataclasses.fields(message)]
    if not names:
        raise SchemaError(f"{message.__name__} is no schema: it has no fields")
    _check_making(message, names)
    try:
        return Schema(message, tuple(field_of(name, hints[name]) for name in names))
    except SchemaError as error:
        raise SchemaError(f"{message.__name__}: {error}") from None


def _check_making(message: type[Any], names: list[str]) -> None:
    """Refuses classes that do more than hold values: messages are made again from columns, many times."""
    if hasattr(message, "__post_init__"):
        raise SchemaError(
            f"{message.__name__} has a __post_init__, which would run again at every stage;"
            " check and change values where messages are first made"
        )
    parameters = inspect.signature(message).parameters.values()
    if [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD] != names:
        raise SchemaError(
            f"{message.__name__}: expected to be made as {message.__name__}({', '.join(names)});"
            " kw_only, init=False, InitVar and an __init__ of your own are not supported"
        )
