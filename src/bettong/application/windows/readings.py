"""What aggregates read of messages: fields or functions, and the condition under which a message is added."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any, NamedTuple

from bettong.application.signatures import check_function
from bettong.application.windows.aggregate import Aggregate, Read
from bettong.errors import ApplicationError
from bettong.schema.fields import Field, Kind
from bettong.schema.forms.nullable import NullableForm
from bettong.schema.schema import Schema

# The value of a message that is not added.
NOTHING = object()


class Added(NamedTuple):
    """What a message adds to an aggregate: the value of a field as it is, or, without one, always the same."""

    field: str | None
    same: Any


def as_it_is(aggregate: Aggregate, value: Any) -> Any:  # noqa: ARG001 - a method of one
    """The `value` of an aggregate that adds what is read as it is, of any type."""
    return value


def check_written(owner: str, aggregate: Aggregate) -> None:
    """Raises ApplicationError where an argument is neither a field's name nor a function."""
    for argument, read in _arguments(aggregate):
        if not isinstance(read, str) and not callable(read):
            raise ApplicationError(
                f"{owner}: {argument}={read!r} is neither a field's name nor a function of a message"
            )


def check_read(owner: str, aggregate: Aggregate, schema: Schema) -> None:
    """Raises ApplicationError where messages of a schema lack what an aggregate reads. `owner`: of its field."""
    kind, names = type(aggregate).__name__, [field.name for field in schema.fields]
    for argument, read in _arguments(aggregate):
        # Shown as it is written: the first argument of most is `of`.
        shown = repr(read) if isinstance(read, str) else name_of(read)
        written = f"{owner}={kind}({shown if argument == 'of' else f'{argument}={shown}'})"
        is_condition = argument == "where"
        if not isinstance(read, str):
            check_function(written, read, takes=schema.message, returns=(bool,) if is_condition else ())
            continue
        if read not in names:
            raise ApplicationError(f"{written}: {schema.name} has no such field; it has {', '.join(names)}")
        if schema.made_class is dict:
            raise ApplicationError(
                f"{written}: messages of {schema.name} are dicts; give a function: lambda message: message[{read!r}]"
            )
        field = schema.fields[schema.position(read)]
        if is_condition and field.kind is not Kind.BOOL:
            raise ApplicationError(
                f"{written}: {read} is {field.kind_name}, expected bool; or give a function of a message"
            )
        held, kinds = held_field(field), aggregate.of_kinds
        if argument == "of" and kinds and held.kind_name not in kinds:
            raise ApplicationError(
                f"{written}: {read} is {held.kind_name}, expected {', '.join(kinds[:-1])} or {kinds[-1]}; or give a"
                " function that returns one"
            )


def reader_of(name: str, aggregate: Aggregate) -> Callable[[Any], Any]:
    """A function that returns the value an aggregate adds for a message; NOTHING if none. `name`: of its field.

    It returns None, which cannot be added, where it has read None.
    """
    read, where = _value_of(aggregate), aggregate.where
    if where is None:
        return read
    fits = attrgetter(where) if isinstance(where, str) else where

    def value(message: Any) -> Any:
        found = fits(message)
        if found is True:
            return read(message)
        if found is not False:
            raise TypeError(
                f"{name}={description_of(aggregate)}: where= gave {found!r:.60}, expected True or False"
            )
        return NOTHING

    return value


def added_of(aggregate: Aggregate) -> Added | None:
    """What a message adds, where it can be read from a column, without the message object; else None."""
    reads = list(aggregate.reads.values())
    if aggregate.where is not None or len(reads) > 1:
        return None
    if not reads:
        return Added(None, aggregate.value())
    (read,) = reads
    return Added(read, None) if isinstance(read, str) and type(aggregate).value is as_it_is else None


def description_of(aggregate: Aggregate) -> str:
    """A description of its accumulators."""
    reads = dict(aggregate.reads)
    of = [name_of(reads.pop("of"))] if "of" in reads else []
    more = [f"{argument}={name_of(read)}" for argument, read in reads.items()]
    options = [aggregate.options] if aggregate.options else []
    where = [f"where={name_of(aggregate.where)}"] if aggregate.where is not None else []
    return f"{type(aggregate).__name__}({', '.join([*of, *more, *options, *where])})"


def held_field(field: Field) -> Field:
    """The field that describes a field's values other than None."""
    return field.form.held if isinstance(field.form, NullableForm) else field


def name_of(read: Read) -> str:
    """How errors call a field or a function."""
    return str(getattr(read, "__name__", read))


def _arguments(aggregate: Aggregate) -> Iterator[tuple[str, Read]]:
    yield from aggregate.reads.items()
    if aggregate.where is not None:
        yield "where", aggregate.where


def _value_of(aggregate: Aggregate) -> Callable[[Any], Any]:
    """A function of a message that returns its value; None where any of what it reads is None."""
    value = aggregate.value
    read = [attrgetter(each) if isinstance(each, str) else each for each in aggregate.reads.values()]
    if not read:
        same = value()
        return lambda _: same
    if len(read) == 1 and type(aggregate).value is as_it_is:
        return read[0]

    def of_message(message: Any) -> Any:
        found = [each(message) for each in read]
        return None if any(each is None for each in found) else value(*found)

    return of_message
