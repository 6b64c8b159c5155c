"""The lifetime of a computation's states, and checks of the functions that make and delete them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from bettong.application.callables import check_state
from bettong.application.durations import duration_ns
from bettong.application.execution_mode import ExecutionMode, execution_mode_of
from bettong.application.signatures import check_state_predicate
from bettong.application.timers import Clock
from bettong.errors import ApplicationError

# The clock of a time to live: the log clock, or event time.
TtlClock: TypeAlias = Literal["log", "event"]


@dataclass(frozen=True, slots=True)
class Lifetime:
    """A state ends when a clock is `ttl_ns` or more past its key's last message."""

    ttl_ns: int
    clock: Clock


def lifetime_of(owner: str, ttl: object, clock: object) -> Lifetime | None:
    """Checks `ttl=` and `ttl_clock=` of `stateful`. Raises ApplicationError for an invalid duration or clock."""
    clocks = {"log": Clock.LOG, "event": Clock.EVENT}
    if not isinstance(clock, str) or clock not in clocks:
        raise ApplicationError(f'{owner}: ttl_clock={clock!r}; expected "log" or "event"')
    if ttl is not None:
        return Lifetime(duration_ns(owner, "ttl", ttl), clocks[clock])
    if clock != "log":
        raise ApplicationError(f"{owner}: ttl_clock={clock!r} without a ttl: give ttl=timedelta(...)")
    return None


def check_states(owner: str, state: Callable[[], Any], delete_when: object, mode: ExecutionMode) -> None:
    """Refuses states that cannot be changed in place, and a `delete_when` that is no predicate of them.

    `mode`: of the functions that change them. Raises ApplicationError.
    """
    if delete_when is not None:
        _check_delete_when(owner, delete_when, state, mode)
    if mode is not ExecutionMode.VECTORIZED:
        check_state(owner, state)


def _check_delete_when(
    owner: str, delete_when: object, state: Callable[[], Any], mode: ExecutionMode
) -> None:
    if mode is ExecutionMode.VECTORIZED:
        raise ApplicationError(
            f"{owner}: delete_when= is asked after each message, and a vectorized function is called with many; give"
            " a ttl=, or functions that are not vectorized"
        )
    if callable(delete_when) and execution_mode_of(delete_when) is not mode:
        mark = (
            "no mark, as its functions"
            if mode is ExecutionMode.PYTHON
            else f"the mark of its functions, @bettong.{mode.value}"
        )
        raise ApplicationError(f"{owner}: give delete_when= {mark}")
    check_state_predicate(f"{owner}: delete_when", delete_when, state)
