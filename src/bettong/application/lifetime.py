"""The states of a computation, as an application describes them: what makes one, and how long it lives."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from bettong.application.callables import check_state
from bettong.application.durations import duration_ns
from bettong.application.execution_mode import ExecutionMode, execution_mode_of
from bettong.application.signatures import check_state_predicate
from bettong.application.timers import Clock
from bettong.errors import ApplicationError

# What a time to live goes by: the log clock, or event time.
TtlClock: TypeAlias = Literal["log", "event"]


@dataclass(frozen=True, slots=True)
class Lifetime:
    """A state ends when a clock is `ttl_ns` or more past its key's last message."""

    ttl_ns: int
    clock: Clock


def lifetime_of(owner: str, ttl: object, clock: object) -> Lifetime | None:
    """What `stateful` was given. Raises ApplicationError for what is no time, or no clock, to live by."""
    clocks = {"log": Clock.LOG, "event": Clock.EVENT}
    if not isinstance(clock, str) or clock not in clocks:
        raise ApplicationError(f'{owner}: ttl_clock={clock!r}; expected "log" or "event"')
    if ttl is not None:
        return Lifetime(duration_ns(owner, "ttl", ttl), clocks[clock])
    if clock != "log":
        raise ApplicationError(f"{owner}: ttl_clock={clock!r} without a ttl: give ttl=timedelta(...)")
    return None


def check_states(owner: str, state: Callable[[], Any], delete_when: object, mode: ExecutionMode) -> None:
    """Refuses states that cannot be changed in place, and what cannot say of one whether it is to be deleted.

    `mode`: how the functions that change it are run. Raises ApplicationError.
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
