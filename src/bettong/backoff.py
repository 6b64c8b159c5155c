"""Pauses between attempts that fail, longer each time: the one module that says how they grow.

pause_s    the rule, for a caller that counts failures itself
Backoff    for a loop that goes on until it is stopped
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

# Any pause has met its maximum by then, and a float still holds the power of two.
_DOUBLINGS_MAX = 30


def pause_s(failures: int, *, first_s: float, max_s: float) -> float:
    """The pause after so many failures in a row: none, `first_s`, twice as long each time, at most `max_s`."""
    if failures < 1:
        return 0.0
    return min(max_s, first_s * 2.0 ** min(failures - 1, _DOUBLINGS_MAX))


class Backoff:
    """The first pause takes `first_s`, each later one twice as long as the one before, at most `max_s`."""

    def __init__(self, first_s: float, max_s: float) -> None:
        self._first_s = first_s
        self._max_s = max_s
        self._failures = 0

    def next_s(self) -> float:
        """An attempt has failed: how long the pause is that begins now."""
        self._failures += 1
        return pause_s(self._failures, first_s=self._first_s, max_s=self._max_s)

    def wait(self, stopping: threading.Event) -> None:
        """Blocks for the pause, or until `stopping` is set."""
        stopping.wait(self.next_s())

    def reset(self) -> None:
        """An attempt went well: the next pause is the first one again."""
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
    """What calls a function until it returns; raises its error when that cannot pass, or `for_s` is over.

    A pause takes up to what `pause_s` says, by chance. `on_pause` gets the number of the attempt that failed.
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
    """Leaves no cycle of objects behind.

    Tenacity's own is 18 objects a call, which wait for Python's collector: a service that asks Redis some times a
    second had 10 MB of them before that looked (see `bettong.garbage`).
    """

    def __call__(self, fn: Callable[..., _Result], *args: Any, **kwargs: Any) -> _Result:
        """See Retrying."""
        try:
            return super().__call__(fn, *args, **kwargs)
        finally:
            self.iter_state.reset()
