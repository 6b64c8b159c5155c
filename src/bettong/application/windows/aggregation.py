"""The interface of aggregations: an accumulator to which a window's messages are added, and its result."""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar, runtime_checkable

from bettong.application.callables import check_arguments, check_plain
from bettong.application.execution_mode import ExecutionMode, execution_mode_of
from bettong.application.signatures import Output, aggregate_output
from bettong.application.windows.aggregated import Aggregated
from bettong.application.windows.window import Window
from bettong.errors import ApplicationError
from bettong.schema.schema import Schema, schema_of

Message_contra = TypeVar("Message_contra", contravariant=True)
Accumulator = TypeVar("Accumulator")
Result_co = TypeVar("Result_co", covariant=True)

_METHODS = ("initial", "update", "combine", "output")


@runtime_checkable
class Aggregation(Protocol[Message_contra, Accumulator, Result_co]):
    """Written by an application: a class with these four methods. Accumulators are plain data, as states are.

    Each window of each key is the fold of its messages in the log's order, so nothing here may depend on anything but
    its arguments.
    """

    def initial(self) -> Accumulator:
        """The accumulator of a window without messages."""

    def update(self, accumulator: Accumulator, message: Message_contra, /) -> Accumulator:
        """The accumulator with one more message: the same object, changed, or another one."""

    def combine(self, left: Accumulator, right: Accumulator, /) -> Accumulator:
        """The accumulator of the messages of both, `left` being of the earlier ones. Changes neither. Associative."""

    def output(self, key: Any, accumulator: Accumulator, window: Window, /) -> Result_co | None:
        """The result of a window; None for none. Must annotate what it returns. Changes nothing."""


def check_aggregation(owner: str, aggregation: object, schema: Schema, *, emit_empty: bool) -> Output:
    """The output of an aggregation. Raises ApplicationError if it is none, or does not take these messages."""
    if isinstance(aggregation, Aggregated):
        aggregation.check(owner, schema, emit_empty=emit_empty)
        return Output(schema_of(aggregation.result), many=False)
    if isinstance(aggregation, type):
        name = aggregation.__name__
        is_one = all(hasattr(aggregation, each) for each in _METHODS)
        wanted = (
            f"an object of it: {name}()"
            if is_one
            else f"bettong.aggregate({name}, FIELD=bettong.Count(), ...)"
        )
        raise ApplicationError(f"{owner}: {name} is a class; give {wanted}")
    methods: dict[str, Callable[..., Any]] = {
        name: found for name in _METHODS if callable(found := getattr(aggregation, name, None))
    }
    if missing := [name for name in _METHODS if name not in methods]:
        raise ApplicationError(
            f"{owner}: {type(aggregation).__name__} is no aggregation: it has no method {', '.join(missing)}; see"
            " bettong.Aggregation"
        )
    for name, arguments in (("initial", ()), ("combine", (None, None))):
        check_plain(f"{owner}: {name}", methods[name])
        check_arguments(f"{owner}: {name}", methods[name], arguments, f"{len(arguments)} arguments")
    for name in _METHODS:
        if execution_mode_of(methods[name]) is not ExecutionMode.PYTHON:
            raise ApplicationError(
                f"{owner}: {name}: methods of aggregations are plain Python; take off its mark"
            )
    return aggregate_output(owner, methods["update"], methods["output"], schema, Window)
