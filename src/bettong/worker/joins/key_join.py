"""What a join does with the messages of a key, whichever kind it is."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from bettong.frames.columns import Array
from bettong.worker.state.objects import ObjectTable
from bettong.worker.windows.window_rows import WindowRows

# Takes a message of a row and its key. Raises what the user's functions raise.
Add = Callable[[int, Any, Any], None]
# Makes the result of a left and a right message, for a row. Raises what the function raises where that stops all.
Pair = Callable[[Any, Any, int], None]


class ClosedPairs(NamedTuple):
    """What was due: pairs whose results have one event time. None stands for a partner that there is not."""

    at_ns: int
    pairs: Iterable[tuple[Any, Any]]


class KeyJoin(Protocol):
    """The join of all keys of a partition. Keys have nothing to do with one another."""

    def adders(self, rows: WindowRows, states: ObjectTable, pair: Pair) -> tuple[Add, Add]:
        """What takes messages of these rows: of the left side, and of the right one. It notes which are late."""

    def soonest_due(self, times: Array) -> Array:
        """See Operator."""

    def due_ns(self, state: Any, at_ns: int, until_ns: int) -> Sequence[int]:
        """The times up to `until_ns` at which the state is to be closed, now that its timer was due: that one first.

        None where it is due later than that timer said; the state says when.
        """

    def close(self, key: Any, state: Any, at_ns: int) -> ClosedPairs:
        """The state was due at that time. It has gone on when this returns, and may be empty then."""
