"""`Stream.map`, `filter` and `flat_map`: computations whose function takes a message alone."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bettong.application.callables import check_plain, name_of
from bettong.application.execution_mode import ExecutionMode, execution_mode_of
from bettong.application.nodes.computation import Computation
from bettong.application.nodes.node import StreamNode
from bettong.application.on_error import DEAD_LETTER, OnError, check_on_error
from bettong.application.returns import Returns
from bettong.application.signatures import (
    PAIRS,
    Output,
    annotated,
    annotation_text,
    check_lambda_result,
    is_optional,
    is_pair,
    message_of,
    output_of,
    returned_by,
)
from bettong.errors import ApplicationError
from bettong.schema.schema import Schema


@dataclass(frozen=True, eq=False)
class Stateless(Computation):
    """A computation whose function takes a message alone."""

    function: Callable[[Any], Any]
    on_error: OnError = DEAD_LETTER

    @property
    def mode(self) -> ExecutionMode:
        """See Computation."""
        return execution_mode_of(self.function)


class Mapped(Stateless):
    """See `Stream.map`."""

    method = "map"
    returns = Returns.ONE


class Filtered(Stateless):
    """See `Stream.filter`."""

    method = "filter"
    returns = Returns.WHETHER


class FlatMapped(Stateless):
    """See `Stream.flat_map`."""

    method = "flat_map"


def mapped(parent: StreamNode, function: Callable[[Any], Any], name: str | None, on_error: OnError) -> Mapped:
    """The node of `map`. Raises ApplicationError, as the others here do."""
    check_lambda_result("map", name, function, (message_of(parent.schema),), "Result")
    name = name or name_of(function)
    check_on_error(f"map {name!r}", on_error)
    output = map_output(name, function, parent.one_schema(name))
    return Mapped(name, output.schema, parent.keyed, parent, function, on_error)


def filtered(
    parent: StreamNode, function: Callable[[Any], Any], name: str | None, on_error: OnError
) -> Filtered:
    """The node of `filter`."""
    name = name or name_of(function)
    check_on_error(f"filter {name!r}", on_error)
    schema = parent.one_schema(name)
    check_predicate(f"filter {name!r}", function, schema)
    return Filtered(name, schema, parent.keyed, parent, function, on_error)


def flat_mapped(
    parent: StreamNode, function: Callable[[Any], Any], name: str | None, on_error: OnError
) -> FlatMapped:
    """The node of `flat_map`."""
    check_lambda_result("flat_map", name, function, (message_of(parent.schema),), "Iterator[Result]")
    name = name or name_of(function)
    check_on_error(f"flat_map {name!r}", on_error)
    output = flat_map_output(name, function, parent.one_schema(name))
    return FlatMapped(name, output.schema, parent.keyed, parent, function, on_error)


def map_output(name: str, function: Callable[..., Any], schema: Schema) -> Output:
    """The output of `map`: exactly one message."""
    returns = returned_by(repr(name), function, (schema.message,))
    check_plain(f"map {name!r}", function)
    output = output_of(name, returns, annotated(name, function, (schema.message,), "Result"))
    if output.many or is_optional(returns):
        raise ApplicationError(
            f"map {name!r}: must return one message for each; use flat_map to return several or none"
        )
    return output


def flat_map_output(name: str, function: Callable[..., Any], schema: Schema) -> Output:
    """The output of `flat_map`: an iterable of messages."""
    returns = returned_by(repr(name), function, (schema.message,))
    if execution_mode_of(function) is ExecutionMode.VECTORIZED and not is_pair(returns):
        raise ApplicationError(f"flat_map {name!r}: {PAIRS}, not {annotation_text(returns)}")
    output = output_of(name, returns, annotated(name, function, (schema.message,), "Iterator[Result]"))
    if not output.many or is_optional(returns):
        raise ApplicationError(
            f"flat_map {name!r}: must return an iterable, an empty one for nothing,"
            f" e.g. -> list[{output.schema.name}]"
        )
    return output


def check_predicate(owner: str, function: Callable[..., Any], schema: Schema) -> None:
    """Refuses a function that does not take a message and return a bool."""
    returns = returned_by(owner, function, (schema.message,))
    check_plain(owner, function)
    if returns not in (bool, inspect.Signature.empty):
        raise ApplicationError(f"{owner}: must return bool, not {annotation_text(returns)}")
