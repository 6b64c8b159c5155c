"""A schema: the fields of a message class, in order, and their fingerprint."""

import dataclasses
import hashlib
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, get_type_hints

import numpy as np
import pyarrow as pa

from bettong.application.fields import Field, field_of
from bettong.errors import SchemaError


@dataclass(frozen=True)
class Schema:
    """The layout of the messages of one class. Equal classes give equal fingerprints in every process."""

    message: type[Any]
    fields: tuple[Field, ...]

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
        """The Arrow schema of a frame's columns: no nulls anywhere."""
        return pa.schema([pa.field(field.name, field.arrow, nullable=False) for field in self.fields])

    @cached_property
    def fixed(self) -> bool:
        """Whether every field has a fixed width, as compiled computations need."""
        return all(field.dtype is not None for field in self.fields)

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The numpy record of one message. Raises SchemaError when a field's width varies."""
        loose = [field.name for field in self.fields if field.dtype is None]
        if loose:
            raise SchemaError(
                f"{self.name}: {', '.join(loose)} has no fixed width;"
                " use Annotated[str, Width(n)] or Annotated[bytes, Width(n)]"
            )
        return np.dtype([(field.name, field.dtype) for field in self.fields], align=True)

    def position(self, name: str) -> int:
        """The place of a field. Raises SchemaError when there is none of that name."""
        for place, field in enumerate(self.fields):
            if field.name == name:
                return place
        known = ", ".join(field.name for field in self.fields)
        raise SchemaError(f"{self.name} has no field {name!r}; it has {known}")


@lru_cache(maxsize=1024)
def schema_of(message: type[Any]) -> Schema:
    """The schema of a dataclass. Raises SchemaError, naming class and field, when it cannot be one."""
    if not (isinstance(message, type) and dataclasses.is_dataclass(message)):
        raise SchemaError(f"{message!r} is no schema: expected a class decorated with @dataclass")
    hints = get_type_hints(message, include_extras=True)
    declared = dataclasses.fields(message)
    if not declared:
        raise SchemaError(f"{message.__name__} is no schema: it has no fields")
    try:
        return Schema(message, tuple(field_of(field.name, hints[field.name]) for field in declared))
    except SchemaError as error:
        raise SchemaError(f"{message.__name__}: {error}") from None
