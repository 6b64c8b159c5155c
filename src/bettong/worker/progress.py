"""How far the fold of a record is: read by other threads while it runs, and recorded where other processes see it.

It costs nothing a row: a loop's own iterator knows how many rows are left. Only when `mark` is set, after a worker has
died at a record, is each row marked before the user's function is called, and do timers fire one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import length_hint
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from bettong.failure_sites import FailureSites
    from bettong.worker.batch import Batch
    from bettong.worker.stopwatch import Stopwatch


class FoldPosition(NamedTuple):
    """Where a fold is: at a computation, and there at a message of the frame, at a timer, or at several at once.

    `message`: its index. `owner`: the computation whose timers fire, when this one processes them or their results;
    `timer`: which one, as `Firing.text` returns it. `calls`: how many messages or timers are processed at once; 0: the
    whole frame. `number`: how many timers fired in this worker before. What is unknown has its default.
    """

    computation: str
    message: int | None = None
    owner: str = ""
    timer: bytes = b""
    calls: int = 0
    number: int = 0


# A value of `calls`: no user function runs, the worker looks for timers or puts them in order.
OWN_WORK = -1

# Called with the fold's position.
Mark = Callable[[FoldPosition], None]


class _Fired(NamedTuple):
    """Timers that fire. `number`: how many fired before; `text`: returns one, given its row's source."""

    owner: str
    batch: Batch
    number: int
    text: Callable[[int], bytes]


class FoldProgress:
    """The progress of one partition's fold. Written by the thread that folds; `at` may be called by any.

    `stopwatch`: None unless computations are timed. `enter_timed`: called with each computation that begins, in frames
    whose computations are timed. `failure_sites`: the process's, which get each message that fails; None unless wanted.
    """

    __slots__ = ("_at", "_fired", "_number", "enter_timed", "failure_sites", "mark", "stopwatch")

    def __init__(self) -> None:
        self.mark: Mark | None = None
        self.stopwatch: Stopwatch | None = None
        self.enter_timed: Callable[[str], None] | None = None
        self.failure_sites: FailureSites | None = None
        # The last part: timers that fire, or OWN_WORK for the worker's own work.
        self._at: tuple[str, Batch | None, Iterator[Any] | None, _Fired | int | None] = ("", None, None, None)
        self._fired: _Fired | None = None
        self._number = 0

    def enter(self, computation: str) -> None:
        """A computation begins, with the whole frame, or all that fired, at once unless `messages` is called."""
        self._at = (computation, None, None, self._fired)
        if self.enter_timed is not None:
            self.enter_timed(computation)
        if self.mark is not None:
            self.mark(self.at())

    def fire(self, owner: str, batch: Batch, text: Callable[[int], bytes]) -> None:
        """Timers of a computation fire: until `end_firing`, rows are these, or what they lead to.

        `text`: returns a row's timer, given the row's source.
        """
        self._fired = _Fired(owner, batch, self._number, text)
        self._number += batch.length
        self.enter(owner)

    def rest(self, computation: str) -> None:
        """No user function is called until `fire` or `end_firing`."""
        self._fired = None
        self._at = (computation, None, None, OWN_WORK)
        if self.enter_timed is not None:
            self.enter_timed(computation)
        if self.mark is not None:
            self.mark(self.at())

    def end_firing(self) -> None:
        """The timers have fired: the next rows are messages of the frame."""
        self._fired = None
        self.enter("")

    def messages(self, computation: str, batch: Batch, beside: Iterator[Any]) -> Iterable[Any]:
        """A batch's messages, for a loop that takes one by one, each after an item of `beside`, an iterator as long."""
        self._at = (computation, batch, beside, self._fired)
        return batch.columns if self.mark is None else _Marked(computation, batch, self._fired, self.mark)

    def at(self) -> FoldPosition:
        """The current position."""
        computation, batch, beside, fired = self._at
        if isinstance(fired, int):
            return FoldPosition(computation, calls=OWN_WORK, number=self._number)
        if batch is not None and beside is not None:
            row = batch.length - length_hint(beside) - 1
            if 0 <= row < batch.length:
                return _position(computation, batch, row, fired)
        if fired is None:
            return FoldPosition(computation)
        timer = fired.text(fired.batch.source(0)) if fired.batch.length == 1 else b""
        return FoldPosition(computation, None, fired.owner, timer, fired.batch.length, fired.number)


def _position(computation: str, batch: Batch, row: int, fired: _Fired | None) -> FoldPosition:
    source = batch.source(row)
    if fired is None:
        return FoldPosition(computation, source, calls=1)
    return FoldPosition(computation, None, fired.owner, fired.text(source), 1, fired.number + row)


class _Marked:
    """Messages, each marked before it is made: making one may run the user's code, too."""

    def __init__(self, computation: str, batch: Batch, fired: _Fired | None, mark: Mark) -> None:
        self._computation = computation
        self._batch = batch
        self._fired = fired
        self._mark = mark
        self._row = 0
        self._messages = iter(batch.columns)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        row, self._row = self._row, self._row + 1
        if row < self._batch.length:
            self._mark(_position(self._computation, self._batch, row, self._fired))
        return next(self._messages)
