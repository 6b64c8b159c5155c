"""Every aggregate of a window, and the same from a list of its messages, by a plain calculation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import bettong
from bettong import Application, Window
from tests.samples.windows import Amount

RESULTS = "meters.sink.out"


@dataclass
class Facts:
    key: bettong.u32
    start: int
    end: int
    final: bool
    messages: int
    even: int
    total: int
    total_even: int
    least: int
    least_even: int | None
    most: int
    mean: float
    mean_even: float | None
    first: int
    last: int
    last_even: int | None
    different: int
    greatest: list[int]
    smallest_even: list[int]
    newest_of_greatest: list[int]
    median: float
    low_even: float | None
    about_different: int


def is_even(amount: Amount) -> bool:
    return amount.value % 2 == 0


def third(amount: Amount) -> int:
    return amount.value // 3


def every() -> Any:
    """An aggregation with all of them, with and without a condition."""
    return bettong.aggregate(
        Facts,
        messages=bettong.Count(),
        even=bettong.Count(where=is_even),
        total=bettong.Sum("value"),
        total_even=bettong.Sum("value", where=is_even),
        least=bettong.Min("value"),
        least_even=bettong.Min("value", where=is_even),
        most=bettong.Max("value"),
        mean=bettong.Mean("value"),
        mean_even=bettong.Mean("value", where=is_even),
        first=bettong.First("value"),
        last=bettong.Last("value"),
        last_even=bettong.Last("value", where=is_even),
        different=bettong.Distinct(third),
        greatest=bettong.Top(3, "value"),
        smallest_even=bettong.Top(2, "value", where=is_even, smallest=True),
        newest_of_greatest=bettong.Top(2, "at", by=third),
        median=bettong.Quantile("value", 0.5),
        low_even=bettong.Quantile("value", 0.2, where=is_even),
        about_different=bettong.ApproxDistinct(third),
    )


class Plain:
    """The same of a list of messages."""

    def initial(self) -> list[Amount]:
        return []

    def update(self, accumulator: list[Amount], amount: Amount) -> list[Amount]:
        return [*accumulator, amount]

    def combine(self, left: list[Amount], right: list[Amount]) -> list[Amount]:
        return [*left, *right]

    def output(self, key: int, accumulator: list[Amount], window: Window) -> Facts:
        values = [each.value for each in accumulator]
        even = [each for each in values if each % 2 == 0]
        return Facts(
            key,
            window.start,
            window.end,
            window.final,
            messages=len(values),
            even=len(even),
            total=sum(values),
            total_even=sum(even),
            least=min(values),
            least_even=min(even, default=None),
            most=max(values),
            mean=mean(values),
            mean_even=mean(even) if even else None,
            first=values[0],
            last=values[-1],
            last_even=even[-1] if even else None,
            different=len({each // 3 for each in values}),
            greatest=sorted(values, reverse=True)[:3],
            smallest_even=sorted(even)[:2],
            # `sorted` leaves what is equal in its order, also in reverse.
            newest_of_greatest=[each.at for each in sorted(accumulator, key=third, reverse=True)[:2]],
            median=quantile(values, 1, 2),
            low_even=quantile(even, 1, 5) if even else None,
            # Of so few, what is approximate is exact.
            about_different=len({each // 3 for each in values}),
        )


def mean(values: Sequence[int]) -> float:
    return sum(values) / len(values)


def quantile(values: Sequence[int], numerator: int, denominator: int) -> int:
    """Exactly. A quantile of a window is within 1/128 of it, so of numbers below 64 it is rounded to it."""
    return sorted(values)[max(0, -(-len(values) * numerator // denominator) - 1)]


def rounded(facts: Facts) -> Facts:
    low = facts.low_even
    return replace(facts, median=round(facts.median), low_even=None if low is None else round(low))


def by_windows(kind: Any, aggregation: Any, **options: Any) -> Application:
    """`in`, by windows, to `out`."""
    app = Application("meters")
    source = app.source("in", schema=Amount, key="key", event_time="at")
    source.window(kind, aggregation, name="facts", **options).sink("out")
    return app
