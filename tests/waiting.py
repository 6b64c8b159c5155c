"""Waiting for a condition with a deadline: the one place of the tests that may sleep."""

import time
from collections.abc import Callable
from typing import TypeVar

_LOOK_S = 0.02

_Found = TypeVar("_Found")


def eventually(condition: Callable[[], _Found | None], *, seconds: float = 30.0, what: str = "") -> _Found:
    """The first true value of `condition`, asked again and again; fails the test when there is none in time."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {seconds} s: {what or condition}"
        time.sleep(_LOOK_S)
    return found
