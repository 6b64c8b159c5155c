"""The rows of a batch that are added to windows, and the interface of window kinds."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from bettong.frames.columns import Array
from bettong.worker.state.objects import ObjectTable

# Adds the message of a row: row, key, message. Raises what the user's functions raise.
Add = Callable[[int, Any, Any], None]
# Adds rows: their keys, messages and numbers. When it raises, the iterators are past the row that failed.
AddRows = Callable[[Iterator[Any], Iterator[Any], Iterator[int]], None]
# Emits the result of a window, for the row that caused it.
Emit = Callable[[Any, int], None]


@dataclass(slots=True)
class WindowRows:
    """Event times of rows, and the watermark before each. `late`, `partly_late`: rows, in order.

    A row is late when all of its windows are over, partly late when only some are: the adder records that, unless a
    function raised for the row. `emptied`: rows that completed the last open window of their key.
    """

    times: Array
    watermarks: Array
    late: list[int] = field(default_factory=list)
    partly_late: list[int] = field(default_factory=list)
    emptied: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Closed:
    """The results of a timer, of one event time: of a window that is over, or of several that are still open."""

    at_ns: int
    results: list[Any]


class KeyWindows(Protocol):
    """The windows of a computation: one kind, all keys of a partition. Keys are independent."""

    def adder(self, rows: WindowRows, states: ObjectTable, emit: Emit) -> Add:
        """A function that adds messages of these rows to the windows of their keys, and records which are late."""

    def rows_adder(self, rows: WindowRows, states: ObjectTable, emit: Emit) -> AddRows:
        """The same for many rows at a time."""

    def soonest_due(self, times: Array) -> Array:
        """By row, a lower bound of the event-time timers that a message of that event time sets."""

    def close(self, key: Any, state: Any, timer: str, at_ns: int) -> Closed:
        """Fires a timer of the state that was due at that time; returns the results. The state may be empty then.

        Raises what the user's functions raise, for that result alone: the state has advanced by then.
        """

    def skip(self, key: Any, state: Any, timer: str, at_ns: int, *, empty: bool) -> None:
        """As `close`, without results or user functions. `empty`: skips next windows without messages, too."""


def ends_beyond(at_ns: int, word: str = "window") -> ValueError:
    """The error for a message of that event time, which cannot be added."""
    return ValueError(f"its event time is {at_ns} ns: its {word} ends after the year 2262")


def each_row(add: Add) -> AddRows:
    """Adds many rows one after the other."""

    def add_rows(keys: Iterator[Any], messages: Iterator[Any], numbers: Iterator[int]) -> None:
        for key, message, row in zip(keys, messages, numbers, strict=True):
            add(row, key, message)

    return add_rows


class RowByRow:
    """Windows that add many rows one by one. See KeyWindows."""

    def adder(self, rows: WindowRows, states: ObjectTable, emit: Emit) -> Add:
        """See KeyWindows."""
        raise NotImplementedError

    def rows_adder(self, rows: WindowRows, states: ObjectTable, emit: Emit) -> AddRows:
        """See KeyWindows."""
        return each_row(self.adder(rows, states, emit))
