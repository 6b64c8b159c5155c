"""Checks whether windows can run compiled, over columns: their aggregates must be of fixed-width fields."""

from collections.abc import Mapping
from typing import Any

from bettong.application.windows.aggregate import Aggregate
from bettong.application.windows.aggregated import Aggregated
from bettong.application.windows.aggregates import (
    Count,
    Distinct,
    First,
    Last,
    Max,
    Mean,
    Min,
    Sum,
)
from bettong.application.windows.approx_distinct import ApproxDistinct
from bettong.application.windows.quantile import Quantile
from bettong.application.windows.ranked import Top
from bettong.errors import ApplicationError
from bettong.schema.fields import Field, Kind
from bettong.schema.schema import Schema, schema_of

_OF_NUMBERS = (Sum, Mean, Min, Max, Quantile)
_COMPILED = (Count, First, Last, Top, Distinct, ApproxDistinct, *_OF_NUMBERS)
# Each pane has room for all values of `Top`: at most as much as `ApproxDistinct` takes.
_TOP_BYTES_MAX = 4096
_WORD_BYTES = 8
_NUMBERS = (Kind.INT, Kind.FLOAT)
# The fields that the window itself fills; the key's type is known when the stage is prepared.
_OF_WINDOW: Mapping[str, Kind] = {"start": Kind.INT, "end": Kind.INT, "final": Kind.BOOL}


def check_compiled(owner: str, schema: Schema, aggregated: Aggregated[Any]) -> None:
    """Raises ApplicationError for an aggregation that has no compiled form."""
    owner = f"{owner}: compiled"
    for field in schema_of(aggregated.result).fields:
        filled = aggregated.fields.get(field.name)
        if type(filled) is Top:
            _check_top(owner, field, filled, schema)
            continue
        if field.dtype is None:
            raise ApplicationError(f"{owner}: {aggregated.__name__}.{_variable_width_reason(field)}")
        if field.name in aggregated.fields:
            aggregate = aggregated.fields[field.name]
            _check_filled(owner, field, _kind_of(owner, field.name, aggregate, schema))
        elif field.name in _OF_WINDOW:
            _check_filled(owner, field, _OF_WINDOW[field.name])


def check_key(owner: str, field: Field, key: Kind) -> None:
    """Raises ApplicationError where a window's key does not fit that field of its result."""
    _check_filled(f"{owner}: compiled", field, key)


def _check_filled(owner: str, field: Field, kind: Kind) -> None:
    if field.kind is not kind and (kind, field.kind) != _NUMBERS:
        raise ApplicationError(f"{owner}: {field.name}: {kind.value} is no {field.kind.value}")


def _variable_width_reason(field: Field) -> str:
    """Why a field cannot be compiled."""
    if field.form is not None:
        return (
            f"{field.name} is {field.kind_name}: numbers, bools, and text and bytes of a fixed width are all that can"
            " be there"
        )
    return f"{field.name} has no fixed width; use Annotated[str, Width(n)]"


def _check_top(owner: str, field: Field, top: Top, schema: Schema) -> None:
    """Raises ApplicationError where the values have no fixed width, or would take too much of a pane."""
    _kind_of(owner, field.name, top, schema)
    owner = f"{owner}: {field.name}=Top(...)"
    by = top.of if top.by is None else top.by
    if not isinstance(by, str):
        raise ApplicationError(
            f"{owner}: by= is a function: that of compiled ones is a field; map the messages before, or take off"
            " bettong.compiled"
        )
    if field.kind_name != "list":
        raise ApplicationError(
            f"{owner}: its result is a list, and {field.name} is {field.kind_name}; annotate it as a list"
        )
    size = 0
    for each in (top.of, by):
        read = schema.fields[schema.position(str(each))]
        if read.dtype is None:
            raise ApplicationError(f"{owner}: {_variable_width_reason(read)}")
        size += -(-read.dtype.itemsize // _WORD_BYTES) * _WORD_BYTES
    if top.count * size > _TOP_BYTES_MAX:
        raise ApplicationError(
            f"{owner}: {top.count} values of {size} bytes, with what they go by, take more than {_TOP_BYTES_MAX} bytes;"
            f" have at most {_TOP_BYTES_MAX // size}, or take off bettong.compiled"
        )


def _kind_of(owner: str, name: str, aggregate: Aggregate, schema: Schema) -> Kind:
    """The kind of an aggregate's results."""
    owner = f"{owner}: {name}={type(aggregate).__name__}(...)"
    # Not a subclass, which may compute something else.
    if type(aggregate) not in _COMPILED:
        raise ApplicationError(f"{owner} has no compiled form; take off bettong.compiled")
    # An aggregate without a value of no messages needs an optional field, which has no fixed width.
    if aggregate.where is not None and not isinstance(aggregate.where, str):
        raise ApplicationError(
            f"{owner}: where= is a function: that of compiled ones is a bool field; map the messages before, or take"
            " off bettong.compiled"
        )
    if isinstance(aggregate, Count):
        return Kind.INT
    of = aggregate.reads["of"]
    if not isinstance(of, str):
        raise ApplicationError(
            f"{owner} is of a function: compiled ones are of a field; map the messages before, or take off"
            " bettong.compiled"
        )
    field = schema.fields[schema.position(of)]
    if field.dtype is None:
        raise ApplicationError(f"{owner}: {_variable_width_reason(field)}")
    if isinstance(aggregate, _OF_NUMBERS) and field.kind not in _NUMBERS:
        raise ApplicationError(f"{owner}: {field.name} is {field.kind.value}, expected a number")
    if isinstance(aggregate, Mean | Quantile):
        return Kind.FLOAT
    return Kind.INT if isinstance(aggregate, Distinct | ApproxDistinct) else field.kind
