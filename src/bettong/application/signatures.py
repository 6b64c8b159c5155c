"""The signatures of the user's functions, read from their annotations when the application is built.

A function must declare what it returns (`-> Rejected | None`); its parameters are checked where they are annotated.
"""

import collections.abc
import inspect
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Union, get_args, get_origin

from bettong.application.callables import check_arguments, check_plain, is_lambda
from bettong.application.execution_mode import ExecutionMode, RowIndexes, execution_mode_of
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
ROW_INDEXES = get_origin(RowIndexes)
# How a vectorized function returns results that are not one for each row.
PAIRS = "a vectorized function returns tuple[Message, bettong.RowIndexes]"
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


def aggregate_output(
    owner: str, update: Callable[..., Any], output: Callable[..., Any], schema: Schema, window: type
) -> Output:
    """The output of an aggregation for a window, an object of class `window`: one message, or None.

    `schema`: of the messages that it aggregates.
    """
    check_plain(f"{owner}: update", update)
    check_plain(f"{owner}: output", output)
    returned_by(f"{owner}: update", update, (Any, schema.message), "an accumulator and a message")
    returns = returned_by(
        f"{owner}: output", output, (Any, Any, window), "a key, an accumulator and a window"
    )
    if returns is None:
        raise ApplicationError(f"{owner}: output returns None, so it has no results: return a message")
    found = output_of(f"{owner}: output", returns)
    if found.many:
        raise ApplicationError(f"{owner}: output must return one message for a window, or None")
    return found


def join_output(
    owner: str,
    combine: Callable[..., Any],
    schemas: tuple[Schema, Schema],
    lacks: tuple[bool, bool],
    modes: Sequence[ExecutionMode] = (ExecutionMode.PYTHON,),
) -> Output:
    """The output of `combine(left, right)` for two messages of these schemas: one message, or None.

    `lacks`: whether the left one, or the right one, may be None. `modes`: its permitted execution modes.
    """
    check_plain(f"{owner}: combine", combine)
    takes = tuple(schema.message for schema in schemas)
    returns = returned_by(f"{owner}: combine", combine, takes, "two arguments, a message of each side")
    if (mode := execution_mode_of(combine)) not in modes:
        raise ApplicationError(
            f"{owner}: combine is marked @bettong.{mode.value}: of joins, all but join_reference have a compiled"
            " form, and none has a vectorized one; take off the mark"
        )
    if returns is None:
        raise ApplicationError(f"{owner}: combine returns None, so it has no results: return a message")
    sides = tuple(map(or_none, schemas, lacks))
    found = output_of(f"{owner}: combine", returns, annotated("combine", combine, sides, "Result | None"))
    if found.many:
        raise ApplicationError(f"{owner}: combine must return one message for a pair, or None")
    parameters = list(inspect.signature(combine, eval_str=True).parameters.values())
    for parameter, message, may_lack in zip(parameters, takes, lacks, strict=False):
        if may_lack and not _accepts(parameter.annotation, type(None)):
            raise ApplicationError(
                f"{owner}: combine: parameter {parameter.name!r} is None where there is no partner; annotate it"
                f" {message.__name__} | None"
            )
    return found


def annotated(name: str, function: Callable[..., Any], takes: tuple[Any, ...], returns: str) -> str:
    """The first line of a function with annotations for its parameters and result, as errors show it."""
    own = name.replace("-", "_") if is_lambda(function) else getattr(function, "__name__", name)
    line = _definition(own, function, takes, returns)
    return f"a lambda cannot, so write it as {line}" if is_lambda(function) else line


def check_lambda_result(
    method: str, name: str | None, function: Callable[..., Any], takes: tuple[Any, ...], returns: str
) -> None:
    """Raises ApplicationError for a lambda whose result type must be known: `name=` would not help it."""
    if name is None and is_lambda(function):
        line = _definition("function", function, takes, returns)
        raise ApplicationError(f"{method}: a lambda does not say what it returns, so write it as {line}")


def _definition(name: str, function: Callable[..., Any], takes: tuple[Any, ...], returns: str) -> str:
    """The first line of a function. Parameter types that are text are shown as they are."""
    arguments = [
        argument if kind is Any else f"{argument}: {kind if isinstance(kind, str) else annotation_text(kind)}"
        for argument, kind in zip(inspect.signature(function).parameters, takes, strict=False)
    ]
    return f"def {name}({', '.join(arguments)}) -> {returns}"


def message_of(schema: Schema | None) -> Any:
    """The class of a stream's messages; Any where there are several."""
    return Any if schema is None else schema.message


def or_none(schema: Schema | None, may_lack: bool) -> Any:  # noqa: FBT001 - one of a pair
    """How a side of a join is annotated."""
    return f"{schema.name} | None" if schema is not None and may_lack else message_of(schema)


def check_state_predicate(owner: str, function: object, state: Callable[[], Any]) -> None:
    """Refuses a function that does not take a state and return a bool."""
    if not callable(function):
        raise ApplicationError(f"{owner}: {function!r} is no function")
    returns = returned_by(owner, function, (state if isinstance(state, type) else Any,))
    check_plain(owner, function)
    if returns not in (bool, inspect.Signature.empty, Any):
        raise ApplicationError(f"{owner}: must return bool, not {annotation_text(returns)}")


def check_function(owner: str, function: object, *, takes: type, returns: tuple[type, ...] = ()) -> None:
    """Refuses what is not a function of one argument, or is annotated with other types; `()`: any result.

    A function without annotations (a lambda, a built-in) is accepted.
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
    stated = returned_by(owner, function, (takes,))
    if not returns:
        return
    members = get_args(stated) if is_union(stated) else (stated,)
    for member in map(plain_type, members):
        each = type(None) if member is None else get_origin(member) or member
        if (
            isinstance(each, type)
            and each not in (inspect.Signature.empty, Any)
            and not issubclass(each, returns)
        ):
            names = [kind.__name__ for kind in returns]
            expected = " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))
            raise ApplicationError(f"{owner}: must return {expected}, not {annotation_text(stated)}")


def plain_type(stated: Any) -> Any:
    """An annotation without its marks: `int` for `u8`."""
    while get_origin(stated) is Annotated:
        stated = get_args(stated)[0]
    return stated


def returned_by(
    owner: str, function: Callable[..., Any], takes: tuple[Any, ...], arguments: str | None = None
) -> Any:
    """A function's annotated result, `inspect.Signature.empty` without one. Checks its parameters.

    `arguments`: describes them in the error; by default `_ARGUMENTS`, by their number.
    """
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
        raise ApplicationError(f"{owner}: must take {arguments or _ARGUMENTS[len(takes)]}: {error}") from None
    for parameter, given in zip(signature.parameters.values(), takes, strict=False):
        if not _accepts(parameter.annotation, given):
            raise ApplicationError(
                f"{owner}: parameter {parameter.name!r} is annotated {annotation_text(parameter.annotation)},"
                f" but gets {annotation_text(given)}"
            )
    return function if isinstance(function, type) else signature.return_annotation


def _accepts(stated: Any, given: Any) -> bool:
    """Whether an annotation admits a class. True where that is not known."""
    if is_union(stated):
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


def output_of(name: str, stated: Any, written: str = "-> Result | None") -> Output:
    """The output of a computation whose function has that annotation. Raises ApplicationError if it is no message.

    `written`: the function's first line with annotations, for the error: see `annotated`.
    """
    if stated is inspect.Signature.empty:
        raise ApplicationError(f"{name!r}: annotate what it returns: {written}")
    message, many = without_none(stated), False
    if get_origin(message) in _MANY:
        # None among several results stands for no result.
        message, many = without_none(_item_of(message)), True
    try:
        return Output(schema_of(message), many)
    except SchemaError as error:
        raise ApplicationError(f"{name!r} returns {annotation_text(stated)}: {error}") from None


def _item_of(stated: Any) -> Any:
    """What an annotated iterable holds; the annotation itself where it does not say that."""
    items = tuple(each for each in get_args(stated) if each is not Ellipsis)
    if not items:
        return stated
    # Of other iterables, the first argument: a generator has three.
    return _union(items) if get_origin(stated) is tuple and not is_pair(stated) else items[0]


def without_none(stated: Any) -> Any:
    """An annotation without its None."""
    if not is_optional(stated):
        return stated
    return _union(tuple(each for each in get_args(stated) if each is not type(None)))


def _union(members: tuple[Any, ...]) -> Any:
    return Union[members]  # noqa: UP007 - of as many as there are


def is_union(stated: Any) -> bool:
    """Whether an annotation is a union."""
    return get_origin(stated) in (Union, types.UnionType)


def is_optional(stated: Any) -> bool:
    """Whether an annotation admits None."""
    return is_union(stated) and type(None) in get_args(stated)


def is_iterable(stated: Any) -> bool:
    """Whether an annotation is an iterable of results."""
    return get_origin(stated) in _MANY


def is_pair(stated: Any) -> bool:
    """Whether an annotation is `tuple[Message, RowIndexes]`."""
    parts = get_args(stated)
    return (
        get_origin(stated) is tuple and len(parts) == 2 and (get_origin(parts[1]) or parts[1]) is ROW_INDEXES
    )


def annotation_text(stated: object) -> str:
    """An annotation as errors show it."""
    return stated.__name__ if isinstance(stated, type) and not get_args(stated) else str(stated)


def check_version(owner: str, version: object, migrate: Any = None) -> None:
    """Raises ApplicationError for a version that is not a number, or a `migrate` that does not take (old, version)."""
    if not isinstance(version, int) or isinstance(version, bool) or not 1 <= version < 2**31:
        raise ApplicationError(f"{owner}: version={version!r}: expected a number from 1 on")
    if migrate is None:
        return
    if not callable(migrate):
        raise ApplicationError(
            f"{owner}: migrate={migrate!r}: expected a function of an old state and its version"
        )
    check_plain(f"{owner}: migrate", migrate)
    check_arguments(f"{owner}: migrate={migrate!r}", migrate, (None, 1), "an old state and its version")
