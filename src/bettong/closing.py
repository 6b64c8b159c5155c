"""Base class of context managers that are closed on leaving the `with` block."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Closing(ABC):
    """A context manager that enters as itself, and is closed when the block ends, however it ends."""

    @abstractmethod
    def close(self) -> None:
        """Releases its resources."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
