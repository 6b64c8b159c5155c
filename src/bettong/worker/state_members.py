"""The layout of a compiled function's state: a tree of members, each of fixed width, as parts of one record.

| member | annotation                                 | in a record            | in Python              |
| ------ | ------------------------------------------ | ---------------------- | ---------------------- |
| plain  | numbers, bools, text and bytes of a width  | 64 bits, a bool, bytes | the same               |
| object | a dataclass                                | a record               | an object of the class |
| array  | `NDArray[...]`, as a new state has it      | its values             | an array of numpy      |
| list   | `Annotated[list[T], AtMost(n)]`            | how many, n of T       | a list                 |

A frozen dataclass of plain members is a value: read as a whole and set as a whole, and a list may hold it. What can be
changed in place is accessed within its record.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, pairwise
from typing import Any

import numpy as np

from bettong.errors import SchemaError
from bettong.frames.columns import Array
from bettong.schema.fields import Field, Kind
from bettong.schema.form import shown
from bettong.schema.record_classes import record_class_of
from bettong.schema.values import column_of_values

# The fields of a list's record. They are no Python names, so that no dataclass has the same record.
LENGTH, ITEMS = "len()", "[]"

# As wide as Python's arithmetic needs them.
_WIDE = {Kind.INT: np.dtype("<i8"), Kind.FLOAT: np.dtype("<f8"), Kind.BOOL: np.dtype("?")}


class Member(ABC):
    """A part of a state. `name`: in the object that holds it; `path`: what leads to it from the state."""

    name: str
    path: str

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """Its type in a record."""

    @property
    @abstractmethod
    def token(self) -> str:
        """Its part of a layout's text. Machine code for one token fits no other."""

    @property
    def is_value(self) -> bool:
        """Whether it is read and set as a whole."""
        return False

    @abstractmethod
    def store(self, records: Array, values: Sequence[Any]) -> None:
        """Sets it in new records. Raises SchemaError, which names the path, for a value of another kind."""

    @abstractmethod
    def load(self, records: Array) -> list[Any]:
        """The values as Python objects, one a record: copies, which nobody else holds."""

    def faults(self, records: Array) -> str | None:  # noqa: ARG002 - most take any bits
        """Why compiled code must not see these records; None where it may."""
        return None


@dataclass(frozen=True)
class PlainMember(Member):
    """See above. `field`: of the schema; its name is the path."""

    name: str
    path: str
    field: Field

    @property
    def dtype(self) -> np.dtype[Any]:
        """See Member."""
        dtype = _WIDE.get(self.field.kind, self.field.dtype)
        assert dtype is not None  # noqa: S101 - checked when it was made
        return dtype

    @property
    def token(self) -> str:
        """See Member."""
        return replace(self.field, name=self.name).token

    @property
    def is_value(self) -> bool:
        """See Member."""
        return True

    def store(self, records: Array, values: Sequence[Any]) -> None:
        """See Member."""
        records[...] = column_of_values(self.field, list(values))

    def load(self, records: Array) -> list[Any]:
        """See Member."""
        values = records.tolist()
        return (
            [each.decode("utf-8", "replace") for each in values] if self.field.kind is Kind.TEXT else values
        )


@dataclass(frozen=True)
class ObjectMember(Member):
    """See above; also a whole state. `is_frozen`: Python does not let its fields be set."""

    name: str
    path: str
    held_class: type[Any]
    members: tuple[Member, ...]
    is_frozen: bool

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """See Member."""
        return np.dtype([(each.name, each.dtype) for each in self.members], align=True)

    @cached_property
    def token(self) -> str:
        """See Member."""
        return f"{self.name}:{self.class_token}"

    @cached_property
    def class_token(self) -> str:
        """The token without the name. Includes how objects are compared, which compiled code does with values."""
        parameters: Any = self.held_class.__dataclass_params__
        # The repr of all parameters differs between versions of Python.
        compared = f" eq={parameters.eq} order={parameters.order}" if self.is_value else ""
        return f"{self.held_class.__qualname__}({', '.join(each.token for each in self.members)}){compared}"

    @cached_property
    def is_value(self) -> bool:
        """See Member."""
        return bool(self.path) and self.is_frozen and all(each.is_value for each in self.members)

    @property
    def is_flat(self) -> bool:
        """Whether it holds plain members alone."""
        return all(isinstance(each, PlainMember) for each in self.members)

    def member(self, name: str) -> Member:
        """The member of that name."""
        return next(each for each in self.members if each.name == name)

    def store(self, records: Array, values: Sequence[Any]) -> None:
        """See Member."""
        for value in values:
            if type(value) is not self.held_class:  # a class that inherits from it may have more fields
                where, name = f"field {self.path!r}: " if self.path else "", self.held_class.__name__
                own = f", but of {type(value).__name__}" if isinstance(value, self.held_class) else ""
                raise SchemaError(f"{where}{shown(value)} is no {name}{own}")
        for each in self.members:
            try:
                held = [getattr(value, each.name) for value in values]
            except AttributeError as error:
                raise SchemaError(f"field {each.path!r}: {error}") from None
            each.store(records[each.name], held)

    def load(self, records: Array) -> list[Any]:
        """See Member."""
        held = [each.load(records[each.name]) for each in self.members]
        return list(map(record_class_of(self.held_class).make, *held))

    def faults(self, records: Array) -> str | None:
        """See Member."""
        found = (each.faults(records[each.name]) for each in self.members)
        return next((each for each in found if each is not None), None)


@dataclass(frozen=True)
class ArrayMember(Member):
    """See above."""

    name: str
    path: str
    held: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def dtype(self) -> np.dtype[Any]:
        """See Member."""
        return np.dtype((self.held, self.shape))

    @property
    def token(self) -> str:
        """See Member."""
        return f"{self.name}:{self.held} {self.shape}"

    def store(self, records: Array, values: Sequence[Any]) -> None:
        """See Member."""
        for index, value in enumerate(values):
            given = (value.dtype, value.shape) if isinstance(value, np.ndarray) else None
            if given != (self.held, self.shape):
                found = shown(value) if given is None else f"an array of {given[0]} {given[1]}"
                raise SchemaError(f"field {self.path!r}: {found}, expected one of {self.held} {self.shape}")
            records[index] = value

    def load(self, records: Array) -> list[Any]:
        """See Member."""
        return [each.copy() for each in records]


@dataclass(frozen=True)
class ListMember(Member):
    """See above. `item`: what it holds, a value."""

    name: str
    path: str
    item: Member
    at_most: int

    @property
    def dtype(self) -> np.dtype[Any]:
        """See Member."""
        return np.dtype([(LENGTH, "<i8"), (ITEMS, self.item.dtype, (self.at_most,))], align=True)

    @property
    def token(self) -> str:
        """See Member."""
        return f"{self.name}:list({self.item.token}, at most {self.at_most})"

    def store(self, records: Array, values: Sequence[Any]) -> None:
        """See Member."""
        for value in values:
            if not isinstance(value, list):
                raise SchemaError(f"field {self.path!r}: {shown(value)} is no list")
            if len(value) > self.at_most:
                raise SchemaError(
                    f"field {self.path!r}: {len(value)} items, at most {self.at_most} can be there"
                )
        records[LENGTH] = [len(value) for value in values]
        items = np.zeros(int(records[LENGTH].sum()), self.item.dtype)
        self.item.store(items, list(chain.from_iterable(values)))
        records[ITEMS][self._used(records)] = items

    def load(self, records: Array) -> list[Any]:
        """See Member."""
        items = self.item.load(np.asarray(records[ITEMS])[self._used(records)])
        ends = np.cumsum(records[LENGTH]).tolist()
        return [items[start:stop] for start, stop in pairwise([0, *ends])]

    def faults(self, records: Array) -> str | None:
        """See Member."""
        lengths = records[LENGTH]
        wrong = lengths[(lengths < 0) | (lengths > self.at_most)]
        return (
            f"{self.path!r} has {wrong[0]} items, at most {self.at_most} can be there" if len(wrong) else None
        )

    def _used(self, records: Array) -> Array:
        """By record, which positions hold items."""
        return np.asarray(np.arange(self.at_most) < records[LENGTH][:, np.newaxis])
