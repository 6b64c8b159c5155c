"""SIGTERM and SIGHUP as exceptions, so that what is open is closed and what is started is stopped."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP, handled as Ctrl-C is."""


@contextmanager
def terminable() -> Iterator[None]:
    """Inside, SIGTERM and SIGHUP raise Terminated in the main thread. Call it from there."""

    def terminate(_number: int, _frame: FrameType | None) -> None:
        raise Terminated

    before = {number: signal.signal(number, terminate) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
