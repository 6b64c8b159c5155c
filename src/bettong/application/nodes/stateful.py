"""`Stream.stateful`: folds each key's messages into a state of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic, TypedDict, TypeVar

from bettong.application.callables import check_plain, name_of
from bettong.application.codecs import Pickle, check_codec
from bettong.application.execution_mode import ExecutionMode, RowIndexes, common_mode, execution_mode_of
from bettong.application.lifetime import Lifetime, TtlClock, check_states, lifetime_of
from bettong.application.merging import check_keyed, handlers_by_schema
from bettong.application.nodes.computation import Computation
from bettong.application.nodes.node import StreamNode
from bettong.application.on_error import DEAD_LETTER, OnError, check_on_error
from bettong.application.returns import Returns
from bettong.application.signatures import (
    PAIRS,
    ROW_INDEXES,
    Output,
    annotated,
    annotation_text,
    check_lambda_result,
    check_version,
    is_iterable,
    is_pair,
    is_union,
    message_of,
    output_of,
    returned_by,
)
from bettong.application.timers import Clock, Fired, StateTimer, state_timers
from bettong.errors import ApplicationError
from bettong.schema.schema import Schema

# A function of a message and a state; a vectorized one takes a third argument, see `execution_mode.vectorized`.
Handler = Callable[..., Any]


State = TypeVar("State")


class StatefulOptions(TypedDict, Generic[State], total=False):
    """The other keyword arguments of `Stream.stateful`, which explains them."""

    name: str | None
    timers: (
        Mapping[
            str,
            Callable[[Fired[Any], State], object] | Callable[[Fired[Any], State, RowIndexes], object],
        ]
        | None
    )
    ttl: timedelta | None
    ttl_clock: TtlClock
    delete_when: Callable[[State], bool] | None
    version: int
    migrate: Callable[[Any, int], State] | None
    on_error: OnError
    state_codec: type[Pickle] | None


@dataclass(frozen=True, eq=False)
class Stateful(Computation):
    """See `Stream.stateful`. `returns`: MANY where the functions return iterables of messages.

    `lifetime`: how long a state lives; None: for ever. `delete_when` has the execution mode of the functions, which
    must not be vectorized; an error of it counts as one of the function. After a state has ended, the key's next
    message finds a new one, even in the same frame.
    """

    handlers: Mapping[Schema, Handler]
    state: Callable[[], Any]
    returns: Returns = Returns.ONE
    mode: ExecutionMode = ExecutionMode.PYTHON
    timers: tuple[StateTimer, ...] = ()
    lifetime: Lifetime | None = None
    delete_when: Callable[[Any], bool] | None = None
    version: int = 1
    migrate: Callable[[Any, int], Any] | None = None
    on_error: OnError = DEAD_LETTER
    state_codec: type[Pickle] | None = None
    method = "stateful"

    @property
    def goes_by_event_time(self) -> bool:
        """See Computation."""
        lives_by_it = self.lifetime is not None and self.lifetime.clock is Clock.EVENT
        return lives_by_it or any(timer.clock is Clock.EVENT for timer in self.timers)

    @property
    def follows_log_clock(self) -> bool:
        """Whether its table needs the log clock, apart from states whose lifetime follows it."""
        return False

    @property
    def settings(self) -> str:
        """What determines, beside functions and messages, what its states mean: part of their description."""
        timers = [f"{timer.field} by {timer.clock.value}" for timer in self.timers]
        return f", timers {', '.join(timers)}" if timers else ""


def stateful(
    parent: StreamNode,
    handlers: Mapping[StreamNode, Handler],
    *,
    state: Callable[[], Any],
    name: str | None = None,
    timers: Mapping[str, Handler] | None = None,
    ttl: timedelta | None = None,
    ttl_clock: TtlClock = "log",
    delete_when: Callable[[Any], bool] | None = None,
    version: int = 1,
    migrate: Callable[[Any, int], Any] | None = None,
    on_error: OnError = DEAD_LETTER,
    state_codec: type[Pickle] | None = None,
) -> Stateful:
    """The node of `Stream.stateful`. `handlers`: by stream. Raises ApplicationError."""
    for of, each in handlers.items():
        takes = (message_of(of.schema), state if isinstance(state, type) else Any)
        check_lambda_result("stateful", name, each, takes, "Result | None")
    name = name or "-".join(dict.fromkeys(name_of(each) for each in handlers.values()))
    owner = f"stateful {name!r}"
    check_on_error(owner, on_error)
    check_keyed(owner, parent, state)
    check_version(owner, version, migrate)
    by_schema, firing = handlers_by_schema(name, parent, handlers), state_timers(owner, state, timers)
    mode = common_mode(owner, [*by_schema.values(), *(timer.function for timer in firing)])
    check_codec(name, state_codec, mode)
    output = stateful_output(name, by_schema, state, firing)
    check_states(owner, state, delete_when, mode)
    return Stateful(
        name,
        output.schema,
        keyed=True,
        parent=parent,
        handlers=by_schema,
        state=state,
        returns=Returns.MANY if output.many else Returns.ONE,
        mode=mode,
        timers=firing,
        lifetime=lifetime_of(owner, ttl, ttl_clock),
        delete_when=delete_when,
        version=version,
        migrate=migrate,
        on_error=on_error,
        state_codec=state_codec,
    )


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
        takes = (message, takes_state, *[ROW_INDEXES] * vectorized)
        returns = returned_by(repr(name), function, takes)
        if vectorized and (is_union(returns) or (is_iterable(returns) and not is_pair(returns))):
            raise ApplicationError(
                f"stateful {name!r}: {PAIRS}, or one result a row, or None; not {annotation_text(returns)}"
            )
        if returns is not None:
            outputs.append(output_of(name, returns, annotated(name, function, takes, "Result | None")))
    if not outputs:
        raise ApplicationError(f"stateful {name!r}: no function returns a message, so it has no results")
    for _, function in functions:
        check_plain(repr(name), function, many=outputs[0].many)
    if len(set(outputs)) > 1:
        kinds = ", ".join(sorted(f"{'many ' * each.many}{each.schema.name}" for each in set(outputs)))
        raise ApplicationError(
            f"stateful {name!r}: its functions return different things ({kinds}); return one schema, one way"
        )
    return outputs[0]
