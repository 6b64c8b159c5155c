"""A thread that lives as long as a block."""

import threading
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


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
