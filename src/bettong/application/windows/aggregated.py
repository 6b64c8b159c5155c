"""Built-in aggregations: a result whose fields are counts, sums, and so on, of a window's messages.

    aggregate(Minute, trades=Count(), volume=Sum("size"), high=Max("price"))

Each aggregate is a fold of one value of each message: a field, or what a function of the message returns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import Any, Generic, TypeVar

from bettong.application.execution_mode import BuiltIn
from bettong.application.windows.aggregate import Aggregate
from bettong.application.windows.aggregates import Sum
from bettong.application.windows.readings import (
    NOTHING,
    Added,
    added_of,
    check_read,
    check_written,
    description_of,
    held_field,
    reader_of,
)
from bettong.application.windows.window import Window
from bettong.errors import ApplicationError, SchemaError
from bettong.schema.fields import Field
from bettong.schema.schema import Schema, schema_of

Result = TypeVar("Result")

# Fields of a result that the window fills itself.
_OF_WINDOW = ("key", "start", "end", "final")
_TIMES = frozenset({"start", "end"})
_OF_TIMES = ("int", "float", "json")  # kinds of fields that can hold one
# By the kind of a value, the other kinds of fields that hold it, at least for some values.
_HELD_BY = {
    "int": ("float", "json"),
    "float": ("json",),
    "bool": ("int", "float", "json"),
    "text": ("json",),
    "bytes": ("text",),
    "decimal": ("float",),
    "list": ("json",),
    "dict": ("json", "object"),
    "object": ("json", "dict"),
}
# The sum of no values, by the kind of the result's field; 0 for others.
_NO_SUM: Mapping[str, Any] = {"decimal": Decimal(0), "timedelta": timedelta(0)}
_OF_ANY_CLASS = ("json", "enum")  # kinds of values that any field may hold


def aggregate(result: type[Result], **aggregates: Aggregate) -> Aggregated[Result]:
    """An aggregation for `Stream.window` whose results are `result`, a dataclass.

    Each of its fields is one of these aggregates, by name, or the window's own: `key`, `start`, `end` (both Unix ns),
    `final`. `where=` of an aggregate, a bool field's name or a predicate of the message, selects the messages that are
    added; an aggregate that is undefined without messages (Min, Mean, ...) then needs a field that may be None.
    `bettong.compiled(aggregate(...))` runs over columns. Raises ApplicationError for fields that nothing fills.
    """
    name = getattr(result, "__name__", repr(result))
    owner = f"aggregate({name})"
    try:
        fields = {field.name: field for field in schema_of(result).fields}
    except SchemaError as error:
        raise ApplicationError(f"{owner}: {error}") from None
    for field, each in aggregates.items():
        if isinstance(each, type) or not isinstance(each, Aggregate):
            raise ApplicationError(
                f"{owner}: {field}={each!r} is no aggregate; expected bettong.Count(), Sum('field'), ..."
            )
        if field not in fields:
            raise ApplicationError(f"{owner}: {name} has no field {field!r}; it has {', '.join(fields)}")
        check_written(f"{owner}: {field}", each)
        _check_filled(owner, fields[field], each)
    if missing := [each for each in fields if each not in aggregates and each not in _OF_WINDOW]:
        raise ApplicationError(
            f"{owner}: nothing fills {', '.join(missing)}: give an aggregate for it; the window itself fills"
            f" {', '.join(_OF_WINDOW)}"
        )
    for own in sorted(fields.keys() & _TIMES - aggregates.keys()):
        if held_field(fields[own]).kind_name not in _OF_TIMES:
            raise ApplicationError(
                f"{owner}: the window fills {own} with Unix time in nanoseconds, and the field is"
                f" {fields[own].kind_name}; annotate {name}.{own} as int"
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
        self._readers = [reader_of(*each) for each in aggregates.items()]
        numbered = list(enumerate(self._aggregates))
        # Aggregates that may raise come before those that change an accumulator: a message that fails adds nothing.
        ordered = sorted(numbered, key=lambda each: each[1].adds_in_place)
        self._steps = [(index, each.first, each.add) for index, each in ordered]
        self._in_place = [index for index, each in ordered if each.adds_in_place]
        schema = schema_of(result)
        self._make: Callable[..., Result] = schema.make
        names = [field.name for field in schema.fields]
        self._of_nothing = [
            _of_nothing(each, schema.fields[schema.position(name)]) for name, each in aggregates.items()
        ]
        # By field: the index of its aggregate, or the name of the window's value.
        self._sources = [list(aggregates).index(each) if each in aggregates else each for each in names]

    @property
    def description(self) -> str:
        """A description of the accumulators."""
        return ", ".join(map(description_of, self._aggregates))

    @property
    def shows_key(self) -> bool:
        """Whether a field is filled with the window's key."""
        return "key" in self._sources

    def check(self, owner: str, schema: Schema, *, emit_empty: bool) -> None:
        """Raises ApplicationError for messages that do not have these values."""
        result = schema_of(self.result)
        for name, each in self.fields.items():
            check_read(f"{owner}: {name}", each, schema)
            field = result.fields[result.position(name)]
            _check_held(f"{owner}: {name}", field, each, schema)
            if emit_empty and not each.is_of_none and not _may_be_none(field):
                raise ApplicationError(
                    f"{owner}: emit_empty: {name}={type(each).__name__}(...) has no value in a window without"
                    f" messages; annotate {self.__name__}.{name} as it is | None"
                )

    def initial(self) -> list[Any]:
        """See Aggregation. None stands for the accumulator of no values."""
        return [None] * len(self._aggregates)

    def update(self, accumulator: list[Any], message: Any) -> list[Any]:
        """See Aggregation. All values are read before one is added."""
        return self.update_values(accumulator, [read(message) for read in self._readers])

    def update_values(self, accumulator: list[Any], values: Sequence[Any]) -> list[Any]:
        """The same with the values read of the message, by aggregate."""
        for index in self._in_place:
            if values[index] is None:
                raise self.no_value(index)
        changed = accumulator.copy()
        for index, first, add in self._steps:
            value = values[index]
            if value is None:
                raise self.no_value(index)
            if value is not NOTHING:
                found = accumulator[index]
                changed[index] = first(value) if found is None else add(found, value)
        return changed

    def no_value(self, index: int) -> TypeError:
        """The error for a message whose value for this aggregate is None."""
        field, aggregate = list(self.fields.items())[index]
        return TypeError(
            f"{field}={description_of(aggregate)}: found None, expected a value; where= leaves messages out"
        )

    def added(self) -> list[Added] | None:
        """By aggregate what a message adds; None where that can only be read from message objects."""
        found = [added for each in self._aggregates if (added := added_of(each)) is not None]
        return found if 0 < len(found) == len(self._aggregates) else None

    def combine(self, left: list[Any], right: list[Any]) -> list[Any]:
        """See Aggregation."""
        return [
            one if other is None else other if one is None else each.join(one, other)
            for each, one, other in zip(self._aggregates, left, right, strict=True)
        ]

    def output(self, key: Any, accumulator: list[Any], window: Window) -> Result:
        """See Aggregation."""
        found = [
            of_nothing() if value is None else each.result(value)
            for each, of_nothing, value in zip(self._aggregates, self._of_nothing, accumulator, strict=True)
        ]
        own = {"key": key, "start": window.start, "end": window.end, "final": window.final}
        return self._make(*(own[each] if isinstance(each, str) else found[each] for each in self._sources))


def _of_nothing(aggregate: Aggregate, field: Field) -> Callable[[], Any]:
    """What gives the result of an aggregate without values, for a field of the result."""
    if isinstance(aggregate, Sum):
        return partial(_NO_SUM.get, held_field(field).kind_name, 0)
    return partial(aggregate.result, None) if aggregate.is_of_none else _none


def _none() -> None:
    return None


def _check_filled(owner: str, field: Field, aggregate: Aggregate) -> None:
    """Raises ApplicationError for a field of a result that cannot hold the results of an aggregate."""
    written = f"{owner}: {field.name}={type(aggregate).__name__}(...)"
    if aggregate.where is not None and not aggregate.is_of_none and not _may_be_none(field):
        raise ApplicationError(
            f"{written}: where= may leave no message, and of none it has no value: annotate the field as it is | None"
        )
    held = held_field(field)
    if aggregate.result_kinds and held.kind_name not in (*aggregate.result_kinds, "json"):
        raise ApplicationError(
            f"{written}: its result is {aggregate.result_kinds[0]}, and the field is {field.kind_name}"
        )


def _check_held(owner: str, field: Field, aggregate: Aggregate, schema: Schema) -> None:
    """Raises ApplicationError for a field of a result that cannot hold a value of the field that is read."""
    read = aggregate.reads.get("of")
    if aggregate.result_kinds or not isinstance(read, str):
        return
    kind, held = (held_field(each).kind_name for each in (schema.fields[schema.position(read)], field))
    value = "int" if kind == "bool" and isinstance(aggregate, Sum) else kind
    if value not in _OF_ANY_CLASS and held not in (value, *_HELD_BY.get(value, ())):
        raise ApplicationError(
            f"{owner}={type(aggregate).__name__}({read!r}): {schema.name}.{read} is {kind}, and the result's field is"
            f" {held}, which cannot hold it; annotate both alike, or give a function that converts"
        )


def _may_be_none(field: Field) -> bool:
    return field.nullable or field.kind_name == "json"


class AggregatedValues(Generic[Result]):
    """The same aggregates over values instead of messages: those of `Aggregated.added`. See Aggregation."""

    def __init__(self, aggregated: Aggregated[Result]) -> None:
        self.initial = aggregated.initial
        self.update = _update_one(aggregated) if len(aggregated.fields) == 1 else aggregated.update_values
        self.combine = aggregated.combine
        self.output = aggregated.output


def _update_one(aggregated: Aggregated[Any]) -> Callable[[list[Any], Sequence[Any]], list[Any]]:
    """As `update_values`, for a single aggregate, in half the time."""
    (aggregate,) = aggregated.fields.values()
    first, add = aggregate.first, aggregate.add

    def update(accumulator: list[Any], values: Sequence[Any]) -> list[Any]:
        (value,) = values
        if value is None:
            raise aggregated.no_value(0)
        (found,) = accumulator
        accumulator[0] = first(value) if found is None else add(found, value)
        return accumulator

    return update
