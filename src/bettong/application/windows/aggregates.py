"""Aggregations that are built in: a result whose fields are counts, sums, and so on, of a window's messages.

    aggregate(Minute, trades=Count(), volume=Sum("size"), high=Max("price"))

Each aggregate is a fold of one value of each message: a field, or what a function of the message gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, ClassVar, Generic, Protocol, TypeVar, runtime_checkable

from bettong.application.execution_mode import BuiltIn
from bettong.application.signatures import check_function
from bettong.application.windows.window import Window
from bettong.errors import ApplicationError, SchemaError
from bettong.schema.schema import Schema, schema_of

Result = TypeVar("Result")

# Fields of a result that the window fills itself.
_OF_WINDOW = ("key", "start", "end", "final")


@runtime_checkable
class Aggregate(Protocol):
    """One field of a result. `of`: of which value of a message; None: of the message itself."""

    # Whether there is a result without a message.
    is_of_none: ClassVar[bool]

    @property
    def of(self) -> str | Callable[[Any], Any] | None:
        """A field's name, or a function of the message."""

    def first(self, value: Any, /) -> Any:
        """The accumulator of one value."""

    def add(self, accumulator: Any, value: Any, /) -> Any:
        """The accumulator with one value more; may be the same object."""

    def join(self, left: Any, right: Any, /) -> Any:
        """That of both; changes neither."""

    def result(self, accumulator: Any, /) -> Any:
        """The field's value; None stands for the accumulator of no value."""


@dataclass(frozen=True, slots=True)
class Count:
    """How many messages there are."""

    of: None = None
    is_of_none: ClassVar[bool] = True

    def first(self, value: Any) -> int:  # noqa: ARG002
        """See Aggregate."""
        return 1

    def add(self, accumulator: int, value: Any) -> int:  # noqa: ARG002
        """See Aggregate."""
        return accumulator + 1

    def join(self, left: int, right: int) -> int:
        """See Aggregate."""
        return left + right

    def result(self, accumulator: int | None) -> int:
        """See Aggregate."""
        return accumulator or 0


@dataclass(frozen=True, slots=True)
class _OfValue:
    """An aggregate of a value, which is its accumulator, too."""

    of: str | Callable[[Any], Any]
    is_of_none: ClassVar[bool] = False

    def first(self, value: Any) -> Any:
        """See Aggregate."""
        return value

    def result(self, accumulator: Any) -> Any:
        """See Aggregate."""
        return accumulator


@dataclass(frozen=True, slots=True)
class Sum(_OfValue):
    """The sum of numbers."""

    is_of_none: ClassVar[bool] = True

    def add(self, accumulator: Any, value: Any) -> Any:
        """See Aggregate."""
        return accumulator + value

    join = add

    def result(self, accumulator: Any) -> Any:
        """See Aggregate."""
        return 0 if accumulator is None else accumulator


@dataclass(frozen=True, slots=True)
class Min(_OfValue):
    """The least value."""

    def add(self, accumulator: Any, value: Any) -> Any:
        """See Aggregate."""
        return min(accumulator, value)

    join = add


@dataclass(frozen=True, slots=True)
class Max(_OfValue):
    """The greatest value."""

    def add(self, accumulator: Any, value: Any) -> Any:
        """See Aggregate."""
        return max(accumulator, value)

    join = add


@dataclass(frozen=True, slots=True)
class First(_OfValue):
    """The value of the message that was added first."""

    def add(self, accumulator: Any, value: Any) -> Any:  # noqa: ARG002
        """See Aggregate."""
        return accumulator

    join = add


@dataclass(frozen=True, slots=True)
class Last(_OfValue):
    """The value of the message that was added last."""

    def add(self, accumulator: Any, value: Any) -> Any:  # noqa: ARG002
        """See Aggregate."""
        return value

    join = add


@dataclass(frozen=True, slots=True)
class Mean(_OfValue):
    """The sum of numbers divided by how many they are."""

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
class Distinct(_OfValue):
    """How many different values there are, exactly: each is kept while the window is open."""

    is_of_none: ClassVar[bool] = True

    def first(self, value: Any) -> dict[Any, None]:
        """See Aggregate. A dict, for it keeps its order: equal windows are equal bytes."""
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


def aggregate(result: type[Result], **aggregates: Aggregate) -> Aggregated[Result]:
    """An aggregation for `Stream.window` whose results are `result`, a dataclass.

    Each of its fields is one of these aggregates, by name, or the window's own: `key`, `start`, `end` (both Unix ns),
    `final`. `bettong.compiled(aggregate(...))` runs over columns, where the windows are `tumbling` or `sliding`. Raises
    ApplicationError for fields that nothing fills.
    """
    name = getattr(result, "__name__", repr(result))
    owner = f"aggregate({name})"
    try:
        fields = [field.name for field in schema_of(result).fields]
    except SchemaError as error:
        raise ApplicationError(f"{owner}: {error}") from None
    for field, each in aggregates.items():
        if not isinstance(each, Aggregate):
            raise ApplicationError(
                f"{owner}: {field}={each!r} is no aggregate; expected bettong.Count(), Sum('field'), ..."
            )
        if field not in fields:
            raise ApplicationError(f"{owner}: {name} has no field {field!r}; it has {', '.join(fields)}")
        if not isinstance(each.of, str | None) and not callable(each.of):
            raise ApplicationError(
                f"{owner}: {field}: of={each.of!r} is neither a field's name nor a function of a message"
            )
    if missing := [each for each in fields if each not in aggregates and each not in _OF_WINDOW]:
        raise ApplicationError(
            f"{owner}: nothing fills {', '.join(missing)}: give an aggregate for it; the window itself fills"
            f" {', '.join(_OF_WINDOW)}"
        )
    return Aggregated(name, result, aggregates)


class Aggregated(BuiltIn, Generic[Result]):
    """Aggregates as the fields of one result. See Aggregation.

    `fields`: by field of the result, its aggregate; the window itself fills the others.
    """

    def __init__(self, name: str, result: type[Result], aggregates: Mapping[str, Aggregate]) -> None:
        self.__name__ = name
        self.result = result
        self.fields = dict(aggregates)
        self._aggregates = tuple(aggregates.values())
        self._values = tuple(_value_of(each.of) for each in self._aggregates)
        self._make: Callable[..., Result] = schema_of(result).make
        names = [field.name for field in schema_of(result).fields]
        # By field: the number of its aggregate, or the name of what the window fills.
        self._sources = [list(aggregates).index(each) if each in aggregates else each for each in names]

    @property
    def description(self) -> str:
        """What the accumulators are of."""
        return ", ".join(f"{type(each).__name__}({_name(each.of)})" for each in self._aggregates)

    @property
    def shows_key(self) -> bool:
        """Whether a field is filled with the window's key."""
        return "key" in self._sources

    def check(self, owner: str, schema: Schema, *, emit_empty: bool) -> None:
        """Raises ApplicationError for messages that do not have these values."""
        names = [field.name for field in schema.fields]
        for field, each in self.fields.items():
            kind = type(each).__name__
            if isinstance(each.of, str) and each.of not in names:
                raise ApplicationError(
                    f"{owner}: {field}={kind}({each.of!r}): {schema.name} has no such field; it has {', '.join(names)}"
                )
            if isinstance(each.of, str) and schema.made_class is dict:
                raise ApplicationError(
                    f"{owner}: {field}={kind}({each.of!r}): messages of {schema.name} are dicts; give a function:"
                    f" lambda message: message[{each.of!r}]"
                )
            if callable(each.of):
                check_function(f"{owner}: {field}={kind}({_name(each.of)})", each.of, takes=schema.message)
            if emit_empty and not each.is_of_none:
                raise ApplicationError(
                    f"{owner}: emit_empty: {field}={kind}(...) has no value in a window without messages"
                )

    def initial(self) -> list[Any]:
        """See Aggregation. None: of no value."""
        return [None] * len(self._aggregates)

    def update(self, accumulator: list[Any], message: Any) -> list[Any]:
        """See Aggregation. All values are read before one is added."""
        values = [value(message) for value in self._values]
        return [
            each.first(value) if found is None else each.add(found, value)
            for each, found, value in zip(self._aggregates, accumulator, values, strict=True)
        ]

    def combine(self, left: list[Any], right: list[Any]) -> list[Any]:
        """See Aggregation."""
        return [
            one if other is None else other if one is None else each.join(one, other)
            for each, one, other in zip(self._aggregates, left, right, strict=True)
        ]

    def output(self, key: Any, accumulator: list[Any], window: Window) -> Result:
        """See Aggregation."""
        found = [each.result(value) for each, value in zip(self._aggregates, accumulator, strict=True)]
        own = {"key": key, "start": window.start, "end": window.end, "final": window.final}
        return self._make(*(own[each] if isinstance(each, str) else found[each] for each in self._sources))


def _value_of(of: str | Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    if of is None:
        return lambda _: True
    if isinstance(of, str):
        return attrgetter(of)

    def value(message: Any) -> Any:
        found = of(message)
        if found is None:
            raise TypeError(f"{_name(of)} returned None, expected a value")
        return found

    return value


def _name(of: object) -> str:
    return "" if of is None else str(getattr(of, "__name__", of))
