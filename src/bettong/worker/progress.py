"""How far the fold of a frame is: read by other threads while it is at work, and left where others can read it.

It costs nothing a row: a loop's own iterator knows how many rows it has left. Only once `mark` is set, after a worker
has died at a frame, each row is noted in it before the user's function is called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import length_hint
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bettong.worker.batch import Batch

# Called with the computation at work, and the index of its message in the frame; None: all of the frame at a time.
Mark = Callable[[str, int | None], None]


class FoldProgress:
    """Of one partition's fold. Written by the thread that folds; `at` may be asked by any."""

    __slots__ = ("_at", "mark")

    def __init__(self) -> None:
        self.mark: Mark | None = None
        self._at: tuple[str, Batch | None, Iterator[Any] | None] = ("", None, None)

    def enter(self, computation: str) -> None:
        """A computation begins, with all of the frame at a time unless it says more."""
        self._at = (computation, None, None)
        if self.mark is not None:
            self.mark(computation, None)

    def messages(self, computation: str, batch: Batch, beside: Iterator[Any]) -> Iterable[Any]:
        """A batch's messages, which a loop takes one by one; `beside`, an iterator of as many, just before each.

        Of rows that fired nothing more is reported than their computation: no message of the frame stands for them.
        """
        if batch.keys.are_fired:
            return batch.columns
        self._at = (computation, batch, beside)
        return batch.columns if self.mark is None else _Marked(computation, batch, self.mark)

    def at(self) -> tuple[str, int | None]:
        """The computation at work, and the index in the frame of the message that it is at."""
        computation, batch, beside = self._at
        if batch is None or beside is None:
            return computation, None
        row = batch.length - length_hint(beside) - 1
        return computation, batch.source(row) if 0 <= row < batch.length else None


class _Marked:
    """Messages, each marked before it is made: to make one may run the user's code, too."""

    def __init__(self, computation: str, batch: Batch, mark: Mark) -> None:
        self._computation = computation
        self._batch = batch
        self._mark = mark
        self._row = 0
        self._messages = iter(batch.columns)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        row, self._row = self._row, self._row + 1
        if row < self._batch.length:
            self._mark(self._computation, self._batch.source(row))
        return next(self._messages)
