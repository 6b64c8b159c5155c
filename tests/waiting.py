"""Waiting for a condition with a deadline: the one place of the tests that may sleep."""

import time
from collections.abc import Callable
from typing import TypeVar

# Between two looks; a twentieth of what was waited, within these: a look may cost as much as what it waits for.
_POLL_S_MIN, _POLL_S_MAX = 0.02, 0.25

_Found = TypeVar("_Found")


def eventually(condition: Callable[[], _Found | None], *, seconds: float = 30.0, what: str = "") -> _Found:
    """The first true value of `condition`, asked again and again; fails the test when there is none in time."""
    began_s = time.monotonic()
    while not (found := condition()):
        waited_s = time.monotonic() - began_s
        assert waited_s < seconds, f"not within {seconds} s: {what or condition}"
        time.sleep(min(max(waited_s / 20, _POLL_S_MIN), _POLL_S_MAX))
    return found
