"""Waiting for a condition with a deadline: the one place of the tests that may sleep."""

import os
import time
from collections.abc import Callable
from typing import TypeVar

# Whether other tests run at the same time: what a process does then, it does later.
AMONG_OTHERS = "PYTEST_XDIST_WORKER" in os.environ
# Between two looks; a twentieth of what was waited, and some times the CPU time of a look, within these: a look may
# cost as much as what it waits for.
_POLL_S_MIN, _POLL_S_MAX = 0.02, 0.25
_PER_LOOK = 4

_Found = TypeVar("_Found")


def eventually(condition: Callable[[], _Found | None], *, seconds: float = 30.0, what: str = "") -> _Found:
    """The first true value of `condition`, asked again and again; fails the test when there is none in time."""
    began_s, begun_cpu_s = time.monotonic(), time.thread_time()
    while not (found := condition()):
        waited_s, look_cpu_s = time.monotonic() - began_s, time.thread_time() - begun_cpu_s
        assert waited_s < seconds, f"not within {seconds} s: {what or condition}"
        time.sleep(min(max(waited_s / 20, _PER_LOOK * look_cpu_s, _POLL_S_MIN), _POLL_S_MAX))
        begun_cpu_s = time.thread_time()
    return found
