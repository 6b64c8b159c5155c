"""Waiting for a condition with a deadline: the one place of the tests that may sleep."""

import os
import time
from collections.abc import Callable
from typing import TypeVar

# Other tests run at the same time, on the same cores.
_IS_AMONG_OTHERS = "PYTEST_XDIST_WORKER" in os.environ
_AMONG_OTHERS_TIMES = 5.0
# Between two looks; a twentieth of what was waited, and some times the CPU time of a look, within these: a look may
# cost as much as what it waits for.
_POLL_S_MIN, _POLL_S_MAX = 0.02, 0.25
_PER_LOOK = 4

_Found = TypeVar("_Found")


def bound_s(alone_s: float) -> float:
    """What takes at most so many seconds on a machine that does nothing else may take; beside other tests five times.

    Mark such a test `timely`: `make faults` runs it by itself.
    """
    return alone_s * (_AMONG_OTHERS_TIMES if _IS_AMONG_OTHERS else 1.0)


def eventually(
    condition: Callable[[], _Found | None], *, seconds: float = 30.0, what: str | Callable[[], str] = ""
) -> _Found:
    """The first true value of `condition`, asked again and again; fails the test when there is none in time.

    `seconds`: see `bound_s`. `what`: text for the failure, or a function that makes it then.
    """
    limit_s = bound_s(seconds)
    began_s, begun_cpu_s = time.monotonic(), time.thread_time()
    while not (found := condition()):
        waited_s, look_cpu_s = time.monotonic() - began_s, time.thread_time() - begun_cpu_s
        assert waited_s < limit_s, (
            f"not within {limit_s} s: {what() if callable(what) else what or condition}"
        )
        time.sleep(min(max(waited_s / 20, _PER_LOOK * look_cpu_s, _POLL_S_MIN), _POLL_S_MAX))
        begun_cpu_s = time.thread_time()
    return found
