"""A kind of field that is more than a number, text or bytes: everything about it is one class, a `Form`.

Forms lie in `bettong.schema.forms` and are listed in `bettong.schema.annotations.FORMS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

import pyarrow as pa

from bettong.errors import SchemaError

# Of a field's Arrow metadata: its kind, which Arrow's type alone does not say.
KIND = b"bettong.kind"

# Of an error's text: more of a value helps nobody.
_SHOWN_CHARACTERS = 80
_SHOWN_BITS = 128


class UnfitValueError(SchemaError):
    """A value that is none of its field's.

    `row`: which of those given, None where that is not known. `path`: what leads to it inside of the field, such as
    `[2].price`.
    """

    def __init__(self, reason: str, row: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.row = row
        self.path = ""

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}" if self.path else self.reason


# Copies a value.
Copier: TypeAlias = Callable[[Any], Any]

# Gives the field (`bettong.schema.fields.Field`) of that name that a form holds, by its annotation or its Arrow field.
# Raises SchemaError.
Describe: TypeAlias = Callable[[str, Any], Any]


class StatedType(NamedTuple):
    """An annotation: the type, and apart from it what `Annotated` marks it with."""

    plain: Any
    marks: Sequence[object]
    describe: Describe


class Form(ABC):
    """Values of one kind: what they are in Python, Arrow, JSON and SQL. Immutable; equal ones are interchangeable.

    Compiled functions take none of them, nor are they keys; vectorized functions see an Arrow array.
    """

    # What people call it, and what the metadata of a field's Arrow type say.
    name: ClassVar[str]
    # Whether Arrow's null is a value.
    nullable: ClassVar[bool] = False
    # Types of Postgres' columns that take every value, the best first, as its catalogue calls them.
    sql: Sequence[str] = ()

    @classmethod
    @abstractmethod
    def of_annotation(cls, stated: StatedType) -> Self | None:
        """The form of a type; None for another kind's.

        Raises SchemaError, whose text says what to write instead, for one of this kind that no field can have.
        """

    @classmethod
    @abstractmethod
    def of_arrow(cls, field: pa.Field, describe: Describe) -> Self:
        """The same form, from the Arrow field that a sender sent: without the user's classes.

        Then objects are dicts, and members of an Enum their texts.
        """

    @property
    @abstractmethod
    def arrow(self) -> pa.DataType:
        """The one Arrow type."""

    @property
    def token(self) -> str:
        """Its part of a schema's fingerprint. What has another one is another schema."""
        return self.name

    @property
    def metadata(self) -> Mapping[bytes, bytes]:
        """Of the Arrow field, beside its kind: what `of_arrow` needs."""
        return {}

    def arrow_field(self, name: str) -> pa.Field:
        """The Arrow type under a name, with the kind."""
        return pa.field(
            name,
            self.arrow,
            nullable=self.nullable,
            metadata={KIND: self.name.encode(), **self.metadata},
        )

    def copier(self) -> Copier | None:
        """Makes an equal value that nobody else holds; None where a value cannot be changed after it was given.

        What is no value of this kind stays as it is, for `array` to refuse. Ask once, not for each value.
        """
        return None

    @abstractmethod
    def array(self, values: Sequence[Any]) -> pa.Array:
        """An array of `arrow`. Raises UnfitValueError."""

    @abstractmethod
    def values(self, array: pa.Array) -> list[Any]:
        """The Python values of an array that was checked."""

    @abstractmethod
    def check(self, array: pa.Array) -> None:
        """Raises UnfitValueError for anything that `values` could not turn into values of this kind.

        Arrow itself has validated the array in full: lengths, offsets, UTF-8. Nulls have not been looked at.
        """

    @abstractmethod
    def to_json(self, value: Any) -> Any:
        """What stands in JSON for a value, as `json.dumps` takes it."""

    @abstractmethod
    def from_json(self, value: Any) -> Any:
        """A value from what stands in JSON, also for a form `of_arrow`. Raises UnfitValueError."""

    def from_cell(self, text: str) -> Any:
        """The same from a cell of a CSV file: what JSON has as text stands there without quotes."""
        return self.from_json(text)

    def to_sql(self, value: Any) -> Any:
        """What a column of type `sql` is given, as psycopg takes it."""
        return value


class ScalarForm(Form):
    """Values of one Python type, which says all about them."""

    python: ClassVar[type[Any]]

    @classmethod
    def of_annotation(cls, stated: StatedType) -> Self | None:
        """See Form."""
        return cls() if stated.plain is cls.python else None

    @classmethod
    def of_arrow(cls, field: pa.Field, describe: Describe) -> Self:  # noqa: ARG003 - there is one only
        """See Form."""
        return cls()


def each(function: Callable[[Any], Any], values: Sequence[Any]) -> list[Any]:
    """What a function gives for all values. What it raises for one says which."""
    made: list[Any] = []
    try:
        for value in values:
            made.append(function(value))  # noqa: PERF401 - its length says which value raised
    except UnfitValueError as error:
        error.row = len(made)
        raise
    return made


def without_nulls(array: pa.Array, what: str) -> None:
    """Raises UnfitValueError for an array that has nulls."""
    if array.null_count:
        row = array.is_null().index(True).as_py()
        raise UnfitValueError(f"None is no {what}; a field that may lack a value is `... | None`", row)


def shown(value: object) -> str:
    """A value for an error's text: never a whole document, never a thousand digits."""
    if isinstance(value, int) and value.bit_length() > _SHOWN_BITS:
        return f"a number of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."
