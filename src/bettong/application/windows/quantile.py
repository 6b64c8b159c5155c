"""Approximate quantiles of a window's numbers, in memory that does not grow with the messages.

Numbers are counted in buckets, as in DDSketch (Masson et al. 2019) and HdrHistogram: the same numbers have the same
result in whatever order they arrive and however panes are combined. It is our own because the result must be a
deterministic fold: other sketches are randomized (KLL) or depend on the order (t-digest), DDSketch's library computes
buckets by a logarithm whose last bit depends on the machine, and HdrHistogram takes integers of a known range.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import ceil, frexp, isfinite, ldexp
from typing import Any, ClassVar

from bettong.application.windows.aggregates import OfValue
from bettong.errors import ApplicationError

# Buckets of a quantile between a number and its double. From its middle to its edge one has 1/128 of its least number.
PER_DOUBLING = 64
# The buckets of 64 doublings. If numbers touch more, neighbouring buckets are merged, which lowers the accuracy.
BUCKETS_MAX = 64 * PER_DOUBLING
# Numbers nearer to zero are zero: floats do not hold them to 53 bits. `frexp` gives them this exponent, or a lower one.
EXPONENT_MIN = -1022
NUMBER_MIN = 2.0**EXPONENT_MIN


@dataclass(frozen=True, slots=True)
class Quantile(OfValue):
    """The least number that a share `q` of all numbers, from 0 to 1, does not exceed: with 0.5 it is the median.

    Numbers are counted in buckets, 64 between each number and its double, and a window keeps those that its numbers
    touch, at most 4,096. So the relative error is less than 0.8 % where the greatest number is at most 2**60 times the
    least one (both signs: 2**30), or where there are at most 4,096 different ones. If they touch more buckets, the
    error doubles each time that these are twice as many. Numbers nearer to zero than 1e-307 count as zero.
    """

    q: float
    adds_in_place: ClassVar[bool] = True
    of_kinds: ClassVar[tuple[str, ...]] = ("int", "float", "decimal")
    result_kinds: ClassVar[tuple[str, ...]] = ("float",)

    def __post_init__(self) -> None:
        if not _is_share(self.q):
            raise ApplicationError(
                f"Quantile(..., {self.q!r}): expected a number from 0 to 1, 0.5 for the median"
            )

    def value(self, value: Any) -> int:
        """See Aggregate: the bucket of a number. It increases with the number; that of zero is zero."""
        if not isinstance(value, int | float | Decimal):
            raise TypeError(f"Quantile of {value!r:.60}, expected a number")
        number = float(value)
        if not isfinite(number):
            raise ValueError(f"Quantile of {number}, expected a finite number; where= leaves messages out")
        if abs(number) < NUMBER_MIN:
            return 0
        mantissa, exponent = frexp(abs(number))
        # The mantissa is from 0.5 up to 1.
        bucket = (exponent - EXPONENT_MIN) * PER_DOUBLING + int(mantissa * 2 * PER_DOUBLING)
        return bucket if number > 0 else -bucket

    def first(self, value: int) -> list[Any]:
        """See Aggregate. How often the number of buckets was halved, and the count of each bucket."""
        return [0, {value: 1}]

    def add(self, accumulator: list[Any], value: int) -> list[Any]:
        """See Aggregate."""
        halvings, counts = accumulator
        bucket = widened(value, halvings)
        counts[bucket] = counts.get(bucket, 0) + 1
        return accumulator if len(counts) <= BUCKETS_MAX else _bounded(halvings, counts)

    def join(self, left: list[Any], right: list[Any]) -> list[Any]:
        """See Aggregate. No more halvings than the numbers of both need, so the order does not matter."""
        halvings = max(left[0], right[0])
        counts = dict[int, int]()
        for own, held in (left, right):
            for bucket, count in held.items():
                wider = widened(bucket, halvings - own)
                counts[wider] = counts.get(wider, 0) + count
        return _bounded(halvings, counts)

    def result(self, accumulator: list[Any]) -> float:
        """See Aggregate."""
        halvings, counts = accumulator
        # `q` as it is written: 0.07 of a hundred is seven, but with the float nearest to 0.07 it would be eight.
        left = max(1, ceil(Fraction(str(self.q)) * sum(counts.values())))
        for bucket in sorted(counts):
            left -= counts[bucket]
            if left <= 0:
                return middle(bucket, halvings)
        raise AssertionError("no quantile is beyond all values")


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def widened(bucket: int, halvings: int) -> int:
    """The bucket that contains this one after so many halvings. Only that of zero becomes zero."""
    return bucket >> halvings if bucket >= 0 else -(-bucket >> halvings)


def _bounded(halvings: int, counts: dict[int, int]) -> list[Any]:
    """An accumulator, halved until it has at most BUCKETS_MAX buckets."""
    while len(counts) > BUCKETS_MAX:
        halvings += 1
        wider = dict[int, int]()
        for bucket, count in counts.items():
            wider[widened(bucket, 1)] = wider.get(widened(bucket, 1), 0) + count
        counts = wider
    return [halvings, counts]


def middle(bucket: int, halvings: int) -> float:
    """The number in the middle of a bucket."""
    if not bucket:
        return 0.0
    middle = sum(_half_of_least(each << halvings) for each in (abs(bucket), abs(bucket) + 1))
    return middle if bucket > 0 else -middle


def _half_of_least(bucket: int) -> float:
    """Half of the least number in a bucket before any halving; the whole may be more than a float can hold."""
    doubling, part = divmod(bucket - PER_DOUBLING, PER_DOUBLING)
    return ldexp(0.5 + part / (2 * PER_DOUBLING), doubling + EXPONENT_MIN - 1)
