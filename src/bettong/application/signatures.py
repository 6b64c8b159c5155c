"""What the user's functions take and return, read from their annotations when the application is built.

A function must say what it returns (`-> Rejected | None`); what it takes is checked where it is annotated.
"""

import collections.abc
import inspect
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Union, get_args, get_origin, get_type_hints

from bettong.application.schema import Schema, schema_of
from bettong.errors import ApplicationError, SchemaError

_MANY = (
    list,
    tuple,
    collections.abc.Iterable,
    collections.abc.Iterator,
    collections.abc.Sequence,
    collections.abc.Generator,
    collections.abc.Collection,
)


@dataclass(frozen=True, slots=True)
class Output:
    """What a computation returns: messages of `schema`, one at a time or (`many`) in iterables."""

    schema: Schema
    many: bool


def map_output(name: str, function: Callable[..., Any], schema: Schema) -> Output:
    """The output of `map`: exactly one message."""
    hints = _checked_hints(name, function, (schema.message,))
    output = _output(name, hints)
    if output.many or _is_optional(hints["return"]):
        raise ApplicationError(
            f"map {name!r}: must return one message for each; use flat_map to return several or none"
        )
    return output


def flat_map_output(name: str, function: Callable[..., Any], schema: Schema) -> Output:
    """The output of `flat_map`: an iterable of messages."""
    output = _output(name, _checked_hints(name, function, (schema.message,)))
    if not output.many:
        raise ApplicationError(f"flat_map {name!r}: must return an iterable, e.g. -> list[{output.schema.name}]")
    return output


def predicate(name: str, function: Callable[..., Any], schema: Schema) -> None:
    """Checks the function of a `filter`: takes a message, returns a bool."""
    hints = _checked_hints(name, function, (schema.message,))
    if hints.get("return", bool) is not bool:
        raise ApplicationError(f"filter {name!r}: must return bool, not {hints['return']}")


def stateful_output(
    name: str, handlers: Mapping[Schema | None, Callable[..., Any]], state: Callable[[], Any]
) -> Output:
    """The common output of the functions of a stateful computation."""
    outputs: list[Output] = []
    for schema, function in handlers.items():
        takes = schema.message if schema is not None else Any
        hints = _checked_hints(name, function, (takes, state if isinstance(state, type) else Any))
        if "return" not in hints:
            raise ApplicationError(_silent(name))
        if hints["return"] is not type(None):
            outputs.append(_output(name, hints))
    if not outputs:
        raise ApplicationError(f"stateful {name!r}: no function returns a message, so nothing could follow it")
    if len(set(outputs)) > 1:
        kinds = ", ".join(sorted({output.schema.name for output in outputs}))
        raise ApplicationError(
            f"stateful {name!r}: its functions return different things ({kinds}); return one schema, one way"
        )
    return outputs[0]


def _checked_hints(name: str, function: Callable[..., Any], takes: tuple[Any, ...]) -> dict[str, Any]:
    if not callable(function):
        raise ApplicationError(f"{name!r}: {function!r} is no function")
    try:
        hints = get_type_hints(function, include_extras=True)
        signature = inspect.signature(function)
        signature.bind(*takes)
    except TypeError as error:
        raise ApplicationError(f"{name!r}: must take {len(takes)} argument(s), {error}") from None
    except NameError as error:
        raise ApplicationError(f"{name!r}: an annotation cannot be resolved: {error}") from None
    positional = list(signature.parameters)[: len(takes)]
    for parameter, expected in zip(positional, takes, strict=False):
        stated = hints.get(parameter, Any)
        if stated is not Any and expected is not Any and stated is not expected:
            raise ApplicationError(
                f"{name!r}: parameter {parameter!r} is annotated {_text(stated)}, but gets {_text(expected)}"
            )
    return hints


def _output(name: str, hints: dict[str, Any]) -> Output:
    if "return" not in hints:
        raise ApplicationError(_silent(name))
    stated = hints["return"]
    many = False
    if _is_optional(stated):
        stated = next(each for each in get_args(stated) if each is not type(None))
    if get_origin(stated) in _MANY:
        stated, many = get_args(stated)[0], True
    try:
        return Output(schema_of(stated), many)
    except (SchemaError, TypeError) as error:
        raise ApplicationError(f"{name!r} returns {_text(hints['return'])}: {error}") from None


def _is_optional(stated: Any) -> bool:  # noqa: ANN401 - annotations are of any type
    return get_origin(stated) in (Union, types.UnionType) and type(None) in get_args(stated)


def _silent(name: str) -> str:
    return f"{name!r}: annotate what it returns, e.g. -> Result | None"


def _text(stated: object) -> str:
    return stated.__name__ if isinstance(stated, type) and not get_args(stated) else str(stated)
