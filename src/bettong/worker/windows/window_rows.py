"""The rows of a batch on their way into windows, and which of them are late."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from bettong.frames.columns import Array
from bettong.worker.state.objects import ObjectTable

# Takes a message of a row and its key. Raises what the user's functions raise.
Add = Callable[[int, Any, Any], None]
# Takes rows: their keys, messages and numbers. What raises leaves the iterators behind the row that it was at.
AddRows = Callable[[Iterator[Any], Iterator[Any], Iterator[int]], None]
# Takes what a window gave, and the row that it is of.
Take = Callable[[Any, int], None]


@dataclass(slots=True)
class WindowRows:
    """Event times of rows, and how far the watermark was before each. `late`, `partly_late`: rows, in their order.

    A row is late when all of its windows are over, partly late when some are and others not: who adds it notes that,
    unless a function raised for it. `emptied`: rows with which the last open window of their key was over.
    """

    times: Array
    watermarks: Array
    late: list[int] = field(default_factory=list)
    partly_late: list[int] = field(default_factory=list)
    emptied: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Closed:
    """What a window gave, or several that are still open, when it was due: results of one event time."""

    at_ns: int
    results: list[Any]


class KeyWindows(Protocol):
    """The windows of a computation: one kind, all keys of a partition. Keys have nothing to do with one another."""

    def adder(self, rows: WindowRows, states: ObjectTable, take: Take) -> Add:
        """What puts messages of these rows into the windows of their keys, and notes which are late."""

    def rows_adder(self, rows: WindowRows, states: ObjectTable, take: Take) -> AddRows:
        """The same for many at a time."""

    def soonest_due(self, times: Array) -> Array:
        """By row, a lower bound of when a message of that event time makes something due, by event time."""

    def close(self, key: Any, state: Any, timer: str, at_ns: int) -> Closed:
        """A timer of the state was due at that time: what it gives. The state may be empty then.

        Raises what the user's functions raise, for that result alone: the state has gone on by then.
        """

    def skip(self, key: Any, state: Any, timer: str, at_ns: int, *, empty: bool) -> None:
        """The same where no function of the user's must be called. `empty`: those without messages go with it."""


def each_row(add: Add) -> AddRows:
    """Takes many by taking one after the other."""

    def add_rows(keys: Iterator[Any], messages: Iterator[Any], numbers: Iterator[int]) -> None:
        for key, message, row in zip(keys, messages, numbers, strict=True):
            add(row, key, message)

    return add_rows


class RowByRow:
    """Windows that take many rows as they take one. See KeyWindows."""

    def adder(self, rows: WindowRows, states: ObjectTable, take: Take) -> Add:
        """See KeyWindows."""
        raise NotImplementedError

    def rows_adder(self, rows: WindowRows, states: ObjectTable, take: Take) -> AddRows:
        """See KeyWindows."""
        return each_row(self.adder(rows, states, take))
