"""The kinds of joins: which messages of a key, one of each side, are paired."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from operator import attrgetter
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from bettong.application.durations import duration_ns
from bettong.application.joins.gathered import Gathered
from bettong.application.signatures import check_function
from bettong.application.timers import NEVER
from bettong.application.windows.kinds import Ranges, Sessions
from bettong.application.windows.windowing import Windowing
from bettong.errors import ApplicationError
from bettong.schema.fields import Kind
from bettong.schema.schema import Schema

# The sides whose messages have a result without a partner, too.
How: TypeAlias = Literal["inner", "left", "right", "outer"]

_ZERO = timedelta(0)


@dataclass(frozen=True, slots=True)
class Within:
    """Messages of the right side that are `lower_ns` to `upper_ns` later than one of the left side, both included."""

    lower_ns: int
    upper_ns: int
    # Whether a message of the left side may have several partners, as each of the right side may.
    left_has_several: ClassVar[bool] = True

    def reach_ns(self, *, is_right: bool) -> tuple[int, int]:
        """How much later than a message of that side its partners are, at least and at most."""
        return (-self.upper_ns, -self.lower_ns) if is_right else (self.lower_ns, self.upper_ns)


@dataclass(frozen=True, slots=True)
class Latest:
    """The newest message of the right side, in the order of the log, unless it `deletes`.

    `deletes_field`: the name of the bool field that says it, if it is one.
    """

    deletes: Callable[[Any], Any] | None = field(default=None, repr=False)
    deletes_field: str | None = field(default=None, repr=False)
    left_has_several: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class AsOf:
    """The message of the right side with the latest event time that is not later than the left one's.

    `tolerance_ns`: how much earlier it may be.
    """

    tolerance_ns: int | None
    left_has_several: ClassVar[bool] = False

    @property
    def latest_ns(self) -> int:
        """Messages of later event times would be due beyond 64 bits."""
        return NEVER - 2 - (self.tolerance_ns or 0)


@dataclass(frozen=True, slots=True)
class InWindow:
    """All messages of the right side that are in the same window."""

    windowing: Windowing
    left_has_several: ClassVar[bool] = True

    def __str__(self) -> str:
        """Part of the description of states that later processes compare: the windows alone."""
        return f"InWindow({self.windowing.kind})"


JoinKind: TypeAlias = Within | Latest | AsOf | InWindow


def alone_sides(how: How) -> tuple[bool, bool]:
    """Whether a message of the left side has a result without a partner, and whether one of the right side does."""
    return how in ("left", "outer"), how in ("right", "outer")


def check_how(owner: str, how: object, *, of_left: bool = False) -> None:
    """Raises ApplicationError for an invalid `how`. `of_left`: only "inner" and "left" are valid."""
    allowed = get_args(How)[:2] if of_left else get_args(How)
    if how not in allowed:
        raise ApplicationError(f"{owner}: how={how!r}; expected one of {', '.join(map(repr, allowed))}")


def within(owner: str, lower: object, upper: object) -> Within:
    """Checks the arguments of `join_within`. Raises ApplicationError, as the others here do."""
    found = Within(_bound_ns(owner, "lower", lower), _bound_ns(owner, "upper", upper))
    if found.lower_ns > found.upper_ns:
        raise ApplicationError(
            f"{owner}: lower={lower} is more than upper={upper}, so nothing is within them"
        )
    return found


def latest(owner: str, delete_when: str | Callable[[Any], bool] | None, table: Schema) -> Latest:
    """Checks the arguments of `join_latest`, for messages of that schema."""
    if delete_when is None:
        return Latest()
    if not isinstance(delete_when, str):
        check_function(f"{owner}: delete_when", delete_when, takes=table.message, returns=(bool,))
        return Latest(delete_when)
    kinds = {field.name: field.kind for field in table.fields}
    if kinds.get(delete_when) is not Kind.BOOL:
        bools = [name for name, kind in kinds.items() if kind is Kind.BOOL]
        raise ApplicationError(
            f"{owner}: delete_when={delete_when!r} is no bool field of {table.name}; it has"
            f" {', '.join(bools) or 'none'}: name one, or give a function of the message"
        )
    return Latest(attrgetter(delete_when), delete_when)


def as_of(owner: str, tolerance: object) -> AsOf:
    """Checks the arguments of `join_as_of`."""
    return AsOf(None if tolerance is None else duration_ns(owner, "tolerance", tolerance, zero=True))


def in_window(owner: str, window: object) -> InWindow:
    """Checks the arguments of `join_window`: windows of event time only."""
    if not isinstance(window, Ranges | Sessions):
        raise ApplicationError(
            f"{owner}: {window!r} is no window of a join; expected bettong.tumbling(...), sliding(...) or sessions(...)"
        )
    return InWindow(Windowing(window, Gathered(), late="drop", emit_empty=False, early_ns=None))


def _bound_ns(owner: str, option: str, bound: object) -> int:
    if isinstance(bound, timedelta) and bound < _ZERO:
        return -duration_ns(owner, option, -bound)
    return duration_ns(owner, option, bound, zero=True)
