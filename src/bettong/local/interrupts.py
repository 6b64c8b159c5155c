"""SIGTERM and SIGHUP as exceptions, so that what is open is closed and what is started is stopped."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# How long after it was ignored an interrupt is raised again: the finalizer that it fell into has returned by then.
_AGAIN_S = 0.05


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP, handled as Ctrl-C is."""


@contextmanager
def terminable() -> Iterator[None]:
    """Inside, SIGTERM and SIGHUP raise Terminated in the main thread. Call it from there.

    One that is ignored, as SIGHUP is below `nohup`, stays ignored.

    The interpreter runs a handler between any two instructions, so also within a `__del__` or a callback of C, where it
    prints the exception and goes on. Terminated and KeyboardInterrupt are raised again then, until they get through.
    """
    report = sys.unraisablehook

    def terminate(_number: int, _frame: FrameType | None) -> None:
        raise Terminated

    def ignored(unraisable: sys.UnraisableHookArgs) -> None:
        interrupt = unraisable.exc_type
        if not issubclass(interrupt, KeyboardInterrupt):
            report(unraisable)
            return

        def again(_number: int, _frame: FrameType | None) -> None:
            raise interrupt

        handlers.setdefault(signal.SIGALRM, signal.signal(signal.SIGALRM, again))
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)

    handlers = {
        number: signal.signal(number, terminate)
        for number in (signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    sys.unraisablehook = ignored
    try:
        yield
    finally:
        sys.unraisablehook = report
        if signal.SIGALRM in handlers:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        for number, handler in handlers.items():
            signal.signal(number, handler)
