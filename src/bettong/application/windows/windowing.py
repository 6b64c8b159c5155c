"""The checked arguments of `Stream.window`: kind of windows, aggregation, and policy for late messages."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, TypeAlias, get_args

from bettong.application.durations import duration_ns
from bettong.application.execution_mode import ExecutionMode, execution_mode_of
from bettong.application.signatures import Output
from bettong.application.timers import Clock, StateTimer
from bettong.application.windows.aggregated import Aggregated
from bettong.application.windows.aggregation import Aggregation, check_aggregation
from bettong.application.windows.compiled_windows import check_compiled
from bettong.application.windows.kinds import Counts, Ephemeral, Ranges, Sessions, WindowKind
from bettong.application.windows.states import CountState, EphemeralState, RangeState, SessionState
from bettong.errors import ApplicationError
from bettong.schema.schema import Schema

# What to do with a message whose windows have all fired.
Late: TypeAlias = Literal["drop", "fire", "oldest", "side"]

_STATES: dict[type[Any], type[Any]] = {
    Ranges: RangeState,
    Sessions: SessionState,
    Counts: CountState,
    Ephemeral: EphemeralState,
}


@dataclass(frozen=True, slots=True)
class Windowing:
    """The checked arguments. `early_ns`: how long after a change open windows emit early results."""

    kind: WindowKind
    aggregation: Aggregation[Any, Any, Any]
    late: Late
    emit_empty: bool
    early_ns: int | None

    @property
    def mode(self) -> ExecutionMode:
        """The execution mode, with which the aggregation is marked."""
        return execution_mode_of(self.aggregation)

    @property
    def state(self) -> type[Any]:
        """The class of its states."""
        return _STATES[type(self.kind)]

    @property
    def accumulated(self) -> str:
        """A description of its accumulators."""
        aggregation = self.aggregation
        if isinstance(aggregation, Aggregated):
            return aggregation.description
        return type(aggregation).__qualname__

    @property
    def timers(self) -> tuple[StateTimer, ...]:
        """The timer fields of the state."""
        output = self.aggregation.output
        if isinstance(self.kind, Counts):
            timeout = (StateTimer("timeout", Clock.LOG, output),)
            return timeout if self.kind.timeout_ns is not None else ()
        due = StateTimer("due", Clock.EVENT, output)
        return (due,) if self.early_ns is None else (due, StateTimer("early", Clock.LOG, output))


def windowing_of(
    owner: str,
    schema: Schema,
    kind: object,
    aggregation: Aggregation[Any, Any, Any],
    *,
    late: Late,
    emit_empty: bool,
    early: timedelta | None,
) -> tuple[Windowing, Output]:
    """Checks the arguments of `Stream.window`; also returns its output. Raises ApplicationError if they conflict."""
    if not isinstance(kind, Ranges | Sessions | Counts | Ephemeral):
        raise ApplicationError(
            f"{owner}: {kind!r} is no kind of windows; expected bettong.tumbling(...), sliding(...), sessions(...),"
            " counts(...) or ephemeral(...)"
        )
    if late not in get_args(Late):
        raise ApplicationError(
            f"{owner}: late={late!r}; expected one of {', '.join(map(repr, get_args(Late)))}"
        )
    if not isinstance(emit_empty, bool):
        raise ApplicationError(f"{owner}: emit_empty={emit_empty!r}; expected True or False")
    if emit_empty and not isinstance(kind, Ranges):
        raise ApplicationError(f"{owner}: emit_empty: only windows of a fixed size can be empty")
    if isinstance(kind, Counts) and (late != "drop" or early is not None):
        option = "early" if early is not None else "late"
        raise ApplicationError(f"{owner}: {option}=: groups of so many messages do not go by event time")
    if isinstance(kind, Ephemeral) and late == "oldest":
        raise ApplicationError(f"{owner}: late='oldest': a key's only window has fired, and no other is open")
    early_ns = None if early is None else duration_ns(owner, "early", early)
    output = check_aggregation(owner, aggregation, schema, emit_empty=emit_empty)
    if isinstance(aggregation, Aggregated) and execution_mode_of(aggregation) is ExecutionMode.COMPILED:
        check_compiled(owner, schema, aggregation)
    found = Windowing(kind, aggregation, late, emit_empty, early_ns)
    return found, output
