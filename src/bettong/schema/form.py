"""The interface of kinds of fields beyond numbers, text and bytes: each is one class, a `Form`.

Forms are in `bettong.schema.forms` and are listed in `bettong.schema.annotations.FORMS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

import pyarrow as pa

from bettong.errors import SchemaError

# The key in a field's Arrow metadata for its kind, which Arrow's type alone does not say.
KIND = b"bettong.kind"

# How much of a value an error shows.
_SHOWN_CHARACTERS = 80
_SHOWN_BITS = 128


class UnfitValueError(SchemaError):
    """A value that does not fit its field.

    `row`: its index among the given values, None if not known. `path`: its path inside the field, such as `[2].price`.
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

# Returns the field (`bettong.schema.fields.Field`) of that name that a form holds, from its annotation or its Arrow
# field. Raises SchemaError.
Describe: TypeAlias = Callable[[str, Any], Any]


class StatedType(NamedTuple):
    """An annotation: the type, and separately the marks of `Annotated`."""

    plain: Any
    marks: Sequence[object]
    describe: Describe


class Form(ABC):
    """The values of one kind in Python, Arrow, JSON and SQL. Immutable; equal forms are interchangeable.

    Compiled functions do not take such values, and they cannot be keys; vectorized functions get an Arrow array.
    """

    # Its name, in messages and in the metadata of a field's Arrow type.
    name: ClassVar[str]
    # Whether Arrow's null is a value.
    nullable: ClassVar[bool] = False
    # The types of Postgres columns that take every value, the best first, as named in its catalogue.
    sql: Sequence[str] = ()

    @classmethod
    @abstractmethod
    def of_annotation(cls, stated: StatedType) -> Self | None:
        """The form of a type; None for a type of another kind.

        Raises SchemaError, whose text says what to write instead, for a type of this kind that no field can have.
        """

    @classmethod
    @abstractmethod
    def of_arrow(cls, field: pa.Field, describe: Describe) -> Self:
        """The same form, from the Arrow field of a sender, without the user's classes.

        Objects are then dicts, and members of an Enum their texts.
        """

    @property
    @abstractmethod
    def arrow(self) -> pa.DataType:
        """The Arrow type."""

    @property
    def token(self) -> str:
        """Its part of a schema's fingerprint. Another token means another schema."""
        return self.name

    @property
    def metadata(self) -> Mapping[bytes, bytes]:
        """The metadata of the Arrow field beside its kind, which `of_arrow` needs."""
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
        """A function that copies a value, so that later changes of it have no effect; None if values are immutable.

        It returns a value of another kind unchanged, for `array` to refuse. Call this once, not for each value.
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
        """Raises UnfitValueError for contents that `values` could not convert.

        Arrow has validated the array in full: lengths, offsets, UTF-8. Nulls have not been checked.
        """

    @abstractmethod
    def to_json(self, value: Any) -> Any:
        """The JSON value, as `json.dumps` takes it."""

    @abstractmethod
    def from_json(self, value: Any) -> Any:
        """The value of a JSON value, also for a form `of_arrow`. Raises UnfitValueError."""

    def from_cell(self, text: str) -> Any:
        """The value of a cell of a CSV file, where JSON's texts have no quotes."""
        return self.from_json(text)

    def to_sql(self, value: Any) -> Any:
        """The value for a column of type `sql`, as psycopg takes it."""
        return value


class ScalarForm(Form):
    """Base of forms that the Python type alone determines."""

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
    """The results of a function for all values. An UnfitValueError of it gets the row."""
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
    """A value as errors show it: truncated, so never a whole document or a thousand digits."""
    if isinstance(value, int) and value.bit_length() > _SHOWN_BITS:
        return f"a number of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."
