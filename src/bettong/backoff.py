"""Exponential back-off between failed attempts, for the whole library.

pause_s    the rule, for a caller that counts failures itself
Backoff    for a loop that runs until it is stopped
attempts   retries one call for some seconds, with jitter, so that callers do not retry in step
"""

import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception,
    stop_after_delay,
    wait_random_exponential,
)

_Result = TypeVar("_Result")

# Any pause has reached its maximum by then, and a float can still represent the power of two.
_DOUBLINGS_MAX = 30


def pause_s(failures: int, *, first_s: float, max_s: float) -> float:
    """The pause after `failures` in a row: 0 for none, then `first_s`, doubled each time, at most `max_s`."""
    if failures < 1:
        return 0.0
    return min(max_s, first_s * 2.0 ** min(failures - 1, _DOUBLINGS_MAX))


class Backoff:
    """Pauses that begin with `first_s` and double each time, up to `max_s`."""

    def __init__(self, first_s: float, max_s: float) -> None:
        self._first_s = first_s
        self._max_s = max_s
        self._failures = 0

    def next_s(self) -> float:
        """Counts a failed attempt; returns the pause before the next."""
        self._failures += 1
        return pause_s(self._failures, first_s=self._first_s, max_s=self._max_s)

    def wait(self, stopping: threading.Event) -> None:
        """Counts a failed attempt, and blocks for the pause, or until `stopping` is set."""
        stopping.wait(self.next_s())

    def reset(self) -> None:
        """Call it after a successful attempt: the next pause is `first_s` again."""
        self._failures = 0


def attempts(
    for_s: float,
    may_pass: Callable[[BaseException], bool],
    *,
    first_s: float = 0.05,
    max_s: float = 1.0,
    on_pause: Callable[[int], None] | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Retrying:
    """Calls a function until it returns; raises its error unless `may_pass`, or once `for_s` is over.

    A pause is random, up to that of `pause_s`. `on_pause` receives the number of the failed attempt.
    """

    def report_pause(state: RetryCallState) -> None:
        if on_pause is not None:
            on_pause(state.attempt_number)

    return _Acyclic(
        retry=retry_if_exception(may_pass),
        stop=stop_after_delay(for_s),
        wait=wait_random_exponential(first_s, max_s),
        before_sleep=report_pause,
        sleep=sleep,
        reraise=True,
    )


class _Acyclic(Retrying):
    """Leaves no reference cycle behind.

    Tenacity leaves 18 objects in a cycle with each call, which only Python's garbage collector frees: a service that
    calls Redis some times a second accumulated 10 MB of them before it ran (see `bettong.garbage`).
    """

    def __call__(self, fn: Callable[..., _Result], *args: Any, **kwargs: Any) -> _Result:
        """See Retrying."""
        try:
            return super().__call__(fn, *args, **kwargs)
        finally:
            self.iter_state.reset()
