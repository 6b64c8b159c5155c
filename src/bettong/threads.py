"""Threads of a service: the switch interval, and a thread that runs as long as a block."""

import sys
import threading
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

# The GIL's switch interval; Python's default is 5 ms.
SWITCH_S = 0.0005


def take_turns_often() -> None:
    """From now on a thread waits for the GIL of a computing thread for 0.5 ms instead of 5 ms.

    Arrow, numpy and Kafka's clients release and acquire it many times for each frame.
    """
    sys.setswitchinterval(SWITCH_S)


class BlockThread(ABC):
    """A context manager that runs `_run` in its own thread until it is left.

    `_run` must end when `_stopping` is set. An error that it raises ends only the thread.
    """

    def __init__(self, name: str, *, close_s_max: float) -> None:
        """`close_s_max`: the most that leaving waits for the thread, a daemon, to end."""
        self._stopping = threading.Event()
        self._close_s_max = close_s_max
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._thread.join(self._close_s_max)

    @abstractmethod
    def _run(self) -> None:
        """Runs in the thread."""
