"""What the user's functions take and return, read from their annotations when the application is built.

A function must say what it returns (`-> Rejected | None`); what it takes is checked where it is annotated.
"""

import collections.abc
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Union, get_args, get_origin

from bettong.application.callables import check_plain
from bettong.application.execution_mode import ExecutionMode, Places, execution_mode_of
from bettong.application.timers import Fired, StateTimer
from bettong.errors import ApplicationError, SchemaError
from bettong.schema.schema import Schema, schema_of

_MANY = (
    list,
    tuple,
    collections.abc.Iterable,
    collections.abc.Iterator,
    collections.abc.Sequence,
    collections.abc.Generator,
    collections.abc.Collection,
)
_PLACES = get_origin(Places)
_PAIRS = "a vectorized function returns tuple[Message, bettong.Places]"
_ARGUMENTS = {
    1: "one argument",
    2: "two arguments, a message and a state",
    3: "three arguments, messages, states, and the row of each message's key among the states",
}


@dataclass(frozen=True, slots=True)
class Output:
    """What a computation returns: messages of `schema`, one at a time or (`many`) in iterables."""

    schema: Schema
    many: bool


def map_output(name: str, function: Callable[..., Any], schema: Schema) -> Output:
    """The output of `map`: exactly one message."""
    returns = _returns(repr(name), function, (schema.message,))
    check_plain(f"map {name!r}", function)
    output = _output(name, returns)
    if output.many or _is_optional(returns):
        raise ApplicationError(
            f"map {name!r}: must return one message for each; use flat_map to return several or none"
        )
    return output


def flat_map_output(name: str, function: Callable[..., Any], schema: Schema) -> Output:
    """The output of `flat_map`: an iterable of messages."""
    returns = _returns(repr(name), function, (schema.message,))
    if execution_mode_of(function) is ExecutionMode.VECTORIZED and not _is_pair(returns):
        raise ApplicationError(f"flat_map {name!r}: {_PAIRS}, not {_text(returns)}")
    output = _output(name, returns)
    if not output.many or _is_optional(returns):
        raise ApplicationError(
            f"flat_map {name!r}: must return an iterable, an empty one for nothing,"
            f" e.g. -> list[{output.schema.name}]"
        )
    return output


def predicate(name: str, function: Callable[..., Any], schema: Schema) -> None:
    """Checks the function of a `filter`: takes a message, returns a bool."""
    returns = _returns(repr(name), function, (schema.message,))
    check_plain(f"filter {name!r}", function)
    if returns not in (bool, inspect.Signature.empty):
        raise ApplicationError(f"filter {name!r}: must return bool, not {_text(returns)}")


def stateful_output(
    name: str,
    handlers: Mapping[Schema, Callable[..., Any]],
    state: Callable[[], Any],
    timers: Sequence[StateTimer] = (),
) -> Output:
    """The common output of the functions of a stateful computation, those of its timers included."""
    takes_state = state if isinstance(state, type) else Any
    outputs: list[Output] = []
    functions: list[tuple[type, Callable[..., Any]]] = [
        *((schema.message, function) for schema, function in handlers.items()),
        *((Fired, timer.function) for timer in timers),
    ]
    for message, function in functions:
        vectorized = execution_mode_of(function) is ExecutionMode.VECTORIZED
        takes = (message, takes_state, *[_PLACES] * vectorized)
        returns = _returns(repr(name), function, takes)
        if vectorized and (_is_union(returns) or (get_origin(returns) in _MANY and not _is_pair(returns))):
            raise ApplicationError(
                f"stateful {name!r}: {_PAIRS}, or one result a row, or None; not {_text(returns)}"
            )
        if returns is not None:
            outputs.append(_output(name, returns))
    if not outputs:
        raise ApplicationError(
            f"stateful {name!r}: no function returns a message, so nothing could follow it"
        )
    for _, function in functions:
        check_plain(repr(name), function, many=outputs[0].many)
    if len(set(outputs)) > 1:
        kinds = ", ".join(sorted(f"{'many ' * each.many}{each.schema.name}" for each in set(outputs)))
        raise ApplicationError(
            f"stateful {name!r}: its functions return different things ({kinds}); return one schema, one way"
        )
    return outputs[0]


def check_state_predicate(owner: str, function: object, state: Callable[[], Any]) -> None:
    """Refuses what does not take a state and return a bool."""
    if not callable(function):
        raise ApplicationError(f"{owner}: {function!r} is no function")
    returns = _returns(owner, function, (state if isinstance(state, type) else Any,))
    check_plain(owner, function)
    if returns not in (bool, inspect.Signature.empty, Any):
        raise ApplicationError(f"{owner}: must return bool, not {_text(returns)}")


def check_function(owner: str, function: object, *, takes: type, returns: tuple[type, ...]) -> None:
    """Refuses what is no function of one argument, or says that it takes or returns something else.

    What says nothing (a lambda, a built-in) is taken at its word.
    """
    if not callable(function):
        raise ApplicationError(f"{owner}: {function!r} is no function")
    check_plain(owner, function)
    if execution_mode_of(function) is ExecutionMode.VECTORIZED:
        raise ApplicationError(f"{owner}: it is called for one message at a time, so it cannot be vectorized")
    try:
        inspect.signature(function)
    except ValueError:  # of a built-in without a signature
        return
    stated = _returns(owner, function, (takes,))
    members = get_args(stated) if _is_union(stated) else (stated,)
    for each in map(plain_type, members):
        if (
            isinstance(each, type)
            and each not in (inspect.Signature.empty, Any)
            and not issubclass(each, returns)
        ):
            names = [kind.__name__ for kind in returns]
            expected = " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))
            raise ApplicationError(f"{owner}: must return {expected}, not {_text(stated)}")


def plain_type(stated: Any) -> Any:
    """An annotation without its marks: `int` for `u8`."""
    while get_origin(stated) is Annotated:
        stated = get_args(stated)[0]
    return stated


def _returns(owner: str, function: Callable[..., Any], takes: tuple[Any, ...]) -> Any:
    """What a function says it returns, `inspect.Signature.empty` when nothing. Checks what it takes."""
    if not callable(function):
        raise ApplicationError(f"{owner}: {function!r} is no function")
    check_plain(owner, function, many=True)
    try:
        signature = inspect.signature(function, eval_str=True)
        signature.bind(*takes)
    except (NameError, AttributeError, SyntaxError) as error:
        raise ApplicationError(f"{owner}: an annotation cannot be resolved: {error}") from None
    except ValueError as error:
        raise ApplicationError(f"{owner}: {error}; wrap it in a function with annotations") from None
    except TypeError as error:
        arguments = _ARGUMENTS[len(takes)]
        raise ApplicationError(f"{owner}: must take {arguments}: {error}") from None
    for parameter, given in zip(signature.parameters.values(), takes, strict=False):
        if not _accepts(parameter.annotation, given):
            raise ApplicationError(
                f"{owner}: parameter {parameter.name!r} is annotated {_text(parameter.annotation)},"
                f" but gets {_text(given)}"
            )
    return signature.return_annotation


def _accepts(stated: Any, given: Any) -> bool:
    """Whether an annotation leaves room for a class. True where that is not known."""
    if _is_union(stated):
        return any(_accepts(each, given) for each in get_args(stated))
    stated = get_origin(stated) or stated
    if Any in (stated, given) or stated is inspect.Parameter.empty:
        return True
    if not isinstance(stated, type) or not isinstance(given, type):
        return True
    try:
        return issubclass(given, stated)
    except TypeError:  # a protocol that cannot be checked at run time
        return True


def _output(name: str, stated: Any) -> Output:
    if stated is inspect.Signature.empty:
        raise ApplicationError(f"{name!r}: annotate what it returns, e.g. -> Result | None")
    message, many = stated, False
    if _is_optional(message):
        message = next(each for each in get_args(message) if each is not type(None))
    if get_origin(message) in _MANY:
        message, many = get_args(message)[0], True
    try:
        return Output(schema_of(message), many)
    except SchemaError as error:
        raise ApplicationError(f"{name!r} returns {_text(stated)}: {error}") from None


def _is_union(stated: Any) -> bool:
    return get_origin(stated) in (Union, types.UnionType)


def _is_optional(stated: Any) -> bool:
    return _is_union(stated) and type(None) in get_args(stated)


def _is_pair(stated: Any) -> bool:
    """Whether it is `tuple[Message, Places]`."""
    parts = get_args(stated)
    return get_origin(stated) is tuple and len(parts) == 2 and (get_origin(parts[1]) or parts[1]) is _PLACES


def _text(stated: object) -> str:
    return stated.__name__ if isinstance(stated, type) and not get_args(stated) else str(stated)


def check_version(name: str, version: object, migrate: object) -> None:
    """Raises ApplicationError for a version that is no number, or a migration that takes no (old, version)."""
    if not isinstance(version, int) or isinstance(version, bool) or not 1 <= version < 2**31:
        raise ApplicationError(f"stateful {name!r}: version={version!r}: expected a number from 1 on")
    if migrate is None:
        return
    try:
        inspect.signature(migrate).bind(None, 1)  # type: ignore[arg-type]
    except TypeError as error:
        raise ApplicationError(
            f"stateful {name!r}: migrate={migrate!r}: expected a function of an old state and its version ({error})"
        ) from None
