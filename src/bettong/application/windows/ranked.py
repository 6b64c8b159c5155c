"""The greatest or smallest of a window's messages."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, ClassVar

from bettong.application.windows.aggregate import Condition, Read
from bettong.errors import ApplicationError

# The result is a list in one message. More values belong in a stream of their own, which its reader sorts.
COUNT_MAX = 10_000

_rank = itemgetter(0)


@dataclass(frozen=True, slots=True)
class Top:
    """The `count` greatest values, the greatest first: a list. Of equal ones, those that were added first.

    `by`: what ranks them, a field or a function of the message; the values themselves when None. `smallest`: the
    smallest ones, the smallest first. It is an option, not a negative `by`, because text and times have no negative.
    """

    count: int
    of: Read
    by: Read | None = None
    smallest: bool = field(default=False, kw_only=True)
    where: Condition | None = field(default=None, kw_only=True)
    is_of_none: ClassVar[bool] = True
    adds_in_place: ClassVar[bool] = False
    of_kinds: ClassVar[tuple[str, ...]] = ()
    result_kinds: ClassVar[tuple[str, ...]] = ("list",)

    def __post_init__(self) -> None:
        if not _is_count(self.count):
            raise ApplicationError(f"Top({self.count!r}, ...): expected a number from 1 to {COUNT_MAX}")
        if not isinstance(self.smallest, bool):
            raise ApplicationError(f"Top(..., smallest={self.smallest!r}): expected True or False")

    @property
    def reads(self) -> Mapping[str, Read]:
        """See Aggregate."""
        return {"of": self.of} if self.by is None else {"of": self.of, "by": self.by}

    @property
    def options(self) -> str:
        """See Aggregate."""
        return f"count={self.count}, smallest" if self.smallest else f"count={self.count}"

    def value(self, value: Any, *by: Any) -> tuple[Any, Any]:
        """See Aggregate: the rank, and the value."""
        rank = by[0] if by else value
        if _has_nan(rank):
            raise ValueError(f"{rank} has no place among numbers; where= leaves messages out")
        return rank, value

    def first(self, value: tuple[Any, Any]) -> list[tuple[Any, Any]]:
        """See Aggregate. Ascending by rank; of equal ones, those added later are nearer to the end that is dropped."""
        return [value]

    def add(self, accumulator: list[tuple[Any, Any]], value: tuple[Any, Any]) -> list[tuple[Any, Any]]:
        """See Aggregate. Nearly always one comparison or two: most messages are not among the first."""
        is_full = len(accumulator) == self.count
        if self.smallest:
            index = bisect_right(accumulator, value[0], key=_rank)
            if is_full and index == self.count:
                return accumulator
            return [*accumulator[:index], value, *accumulator[index:]][: self.count]
        index = bisect_left(accumulator, value[0], key=_rank)
        if is_full and not index:
            return accumulator
        return [*accumulator[:index], value, *accumulator[index:]][-self.count :]

    def join(self, left: list[tuple[Any, Any]], right: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        """See Aggregate."""
        if self.smallest:
            return sorted([*left, *right], key=_rank)[: self.count]
        return sorted([*right, *left], key=_rank)[-self.count :]

    def result(self, accumulator: list[tuple[Any, Any]] | None) -> list[Any]:
        """See Aggregate."""
        values = [value for _, value in accumulator or ()]
        return values if self.smallest else values[::-1]


def _has_nan(rank: Any) -> bool:
    """Whether it is NaN, or a tuple or list that contains NaN, which may still equal itself."""
    if isinstance(rank, tuple | list):
        return any(map(_has_nan, rank))
    return bool(rank != rank)  # noqa: PLR0124 - only NaN is not what it is


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= COUNT_MAX
