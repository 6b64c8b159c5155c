"""Threads of a service: how often they take turns, and one that lives as long as a block."""

import sys
import threading
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

# Python hands its lock from thread to thread this often; by default each 5 ms.
SWITCH_S = 0.0005


def take_turns_often() -> None:
    """From now on a thread waits half a millisecond for Python's lock, where another one computes, and not 5.

    Arrow, numpy and Kafka's clients give it away and ask for it again many times a frame.
    """
    sys.setswitchinterval(SWITCH_S)


class BlockThread(ABC):
    """A context manager: `_run` works in a thread of its own from entering to leaving, and is not waited for longer.

    `_run` ends when `_stopping` is set. What it raises ends the thread alone.
    """

    def __init__(self, name: str, *, close_s_max: float) -> None:
        """`close_s_max`: leaving blocks for so many seconds at most; the thread ends with its process anyway."""
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
        """In the thread."""
