"""Aggregates of a window's messages: counts, sums, and so on, each over one value of a message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from bettong.application.windows.aggregate import Condition, Read
from bettong.application.windows.readings import as_it_is
from bettong.errors import ApplicationError

_NUMBERS = ("int", "float")


@dataclass(frozen=True, slots=True)
class Count:
    """How many messages there are."""

    of: None = None
    where: Condition | None = field(default=None, kw_only=True)
    is_of_none: ClassVar[bool] = True
    adds_in_place: ClassVar[bool] = False
    of_kinds: ClassVar[tuple[str, ...]] = ()
    result_kinds: ClassVar[tuple[str, ...]] = _NUMBERS

    def __post_init__(self) -> None:
        if self.of is not None:
            raise ApplicationError(
                f"Count({self.of!r}): it counts messages, and reads no value; Count(where=...) leaves messages out, and"
                " Distinct(...) counts different values"
            )

    @property
    def options(self) -> str:
        """See Aggregate."""
        return ""

    @property
    def reads(self) -> Mapping[str, Read]:
        """See Aggregate."""
        return {}

    def value(self) -> int:
        """See Aggregate."""
        return 1

    def first(self, value: int) -> int:
        """See Aggregate."""
        return value

    def add(self, accumulator: int, value: int) -> int:
        """See Aggregate."""
        return accumulator + value

    join = add

    def result(self, accumulator: int | None) -> int:
        """See Aggregate."""
        return accumulator or 0


@dataclass(frozen=True, slots=True)
class OfValue:
    """Base of aggregates of a value, which is also the accumulator."""

    of: Read
    where: Condition | None = field(default=None, kw_only=True)
    is_of_none: ClassVar[bool] = False
    adds_in_place: ClassVar[bool] = False
    of_kinds: ClassVar[tuple[str, ...]] = ()
    result_kinds: ClassVar[tuple[str, ...]] = ()

    @property
    def options(self) -> str:
        """See Aggregate."""
        return ""

    @property
    def reads(self) -> Mapping[str, Read]:
        """See Aggregate."""
        return {"of": self.of}

    value = as_it_is

    def first(self, value: Any) -> Any:
        """See Aggregate."""
        return value

    def result(self, accumulator: Any) -> Any:
        """See Aggregate."""
        return accumulator


@dataclass(frozen=True, slots=True)
class Sum(OfValue):
    """The sum of numbers."""

    is_of_none: ClassVar[bool] = True
    of_kinds: ClassVar[tuple[str, ...]] = ("int", "float", "bool", "decimal", "timedelta", "enum", "json")

    def add(self, accumulator: Any, value: Any) -> Any:
        """See Aggregate."""
        return accumulator + value

    join = add

    def result(self, accumulator: Any) -> Any:
        """See Aggregate."""
        return 0 if accumulator is None else accumulator


@dataclass(frozen=True, slots=True)
class Min(OfValue):
    """The least value."""

    def add(self, accumulator: Any, value: Any) -> Any:
        """See Aggregate."""
        return min(accumulator, value)

    join = add


@dataclass(frozen=True, slots=True)
class Max(OfValue):
    """The greatest value."""

    def add(self, accumulator: Any, value: Any) -> Any:
        """See Aggregate."""
        return max(accumulator, value)

    join = add


@dataclass(frozen=True, slots=True)
class First(OfValue):
    """The value of the message that was added first."""

    def add(self, accumulator: Any, value: Any) -> Any:  # noqa: ARG002
        """See Aggregate."""
        return accumulator

    join = add


@dataclass(frozen=True, slots=True)
class Last(OfValue):
    """The value of the message that was added last."""

    def add(self, accumulator: Any, value: Any) -> Any:  # noqa: ARG002
        """See Aggregate."""
        return value

    join = add


@dataclass(frozen=True, slots=True)
class Mean(OfValue):
    """The sum of numbers divided by how many they are."""

    of_kinds: ClassVar[tuple[str, ...]] = ("int", "float", "bool", "decimal", "enum", "json")
    result_kinds: ClassVar[tuple[str, ...]] = ("float",)

    def first(self, value: Any) -> tuple[Any, int]:
        """See Aggregate."""
        return value, 1

    def add(self, accumulator: tuple[Any, int], value: Any) -> tuple[Any, int]:
        """See Aggregate."""
        return accumulator[0] + value, accumulator[1] + 1

    def join(self, left: tuple[Any, int], right: tuple[Any, int]) -> tuple[Any, int]:
        """See Aggregate."""
        return left[0] + right[0], left[1] + right[1]

    def result(self, accumulator: tuple[Any, int]) -> float:
        """See Aggregate."""
        return float(accumulator[0] / accumulator[1])


@dataclass(frozen=True, slots=True)
class Distinct(OfValue):
    """How many different values there are, exactly: each is kept while the window is open."""

    is_of_none: ClassVar[bool] = True
    adds_in_place: ClassVar[bool] = True
    result_kinds: ClassVar[tuple[str, ...]] = _NUMBERS

    def value(self, value: Any) -> Any:
        """See Aggregate. An unhashable value is refused before anything is added."""
        hash(value)
        return value

    def first(self, value: Any) -> dict[Any, None]:
        """See Aggregate. A dict, because it keeps its order: equal windows have equal bytes."""
        return {value: None}

    def add(self, accumulator: dict[Any, None], value: Any) -> dict[Any, None]:
        """See Aggregate."""
        accumulator[value] = None
        return accumulator

    def join(self, left: dict[Any, None], right: dict[Any, None]) -> dict[Any, None]:
        """See Aggregate."""
        return left | right

    def result(self, accumulator: dict[Any, None] | None) -> int:
        """See Aggregate."""
        return len(accumulator or ())
