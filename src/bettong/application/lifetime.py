"""How long a state lives, as an application says it."""

from datetime import timedelta

from bettong.errors import ApplicationError

_US_NS = 1000
# Clocks are 64-bit nanoseconds: 292 years from 1970 on.
_LIFETIME_MAX = timedelta(days=36_500)


def lifetime_ns(owner: str, ttl: object) -> int | None:
    """A time to live in nanoseconds. Raises ApplicationError for what is no such time."""
    if ttl is None:
        return None
    if not isinstance(ttl, timedelta) or not timedelta(0) < ttl <= _LIFETIME_MAX:
        raise ApplicationError(
            f"{owner}: ttl={ttl!r}; expected a datetime.timedelta above 0 and of at most {_LIFETIME_MAX.days} days"
        )
    return ttl // timedelta(microseconds=1) * _US_NS
