"""Durations and event times that an application passes; 64-bit nanoseconds inside."""

from datetime import timedelta

from bettong.errors import ApplicationError

_US_NS = 1000
# Clocks are 64-bit nanoseconds: 292 years from 1970 on.
_DURATION_MAX = timedelta(days=36_500)


def duration_ns(owner: str, option: str, duration: object, *, zero: bool = False) -> int:
    """A duration in nanoseconds. `zero`: whether it may be 0. Raises ApplicationError for any other value."""
    least = timedelta(0) if zero else timedelta(microseconds=1)
    if not isinstance(duration, timedelta) or not least <= duration <= _DURATION_MAX:
        above = "from 0" if zero else "above 0"
        raise ApplicationError(
            f"{owner}: {option}={duration!r}; expected a datetime.timedelta {above} and of at most"
            f" {_DURATION_MAX.days} days"
        )
    return duration // timedelta(microseconds=1) * _US_NS


def seconds(count: float) -> int:
    """So many seconds in nanoseconds, to calculate with event times in functions, compiled ones too."""
    whole = int(count)
    return whole * 1_000_000_000 + int(round((count - whole) * 1_000_000_000.0))  # noqa: RUF046 - compiled, too
