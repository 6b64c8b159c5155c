"""The interface of joins that process the messages of a key one by one."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from bettong.frames.columns import Array
from bettong.worker.state.objects import ObjectTable
from bettong.worker.windows.window_rows import WindowRows

# Adds the message of a row: row, key, message. Raises what the user's functions raise.
Add = Callable[[int, Any, Any], None]
# Emits the result of a left and a right message, for a row. Raises what the function raises if that stops the
# partition.
Pair = Callable[[Any, Any, int], None]


class ClosedPairs(NamedTuple):
    """The pairs of a firing, whose results have one event time. None stands for a missing partner."""

    at_ns: int
    pairs: Iterable[tuple[Any, Any]]


class KeyJoin(Protocol):
    """The join of all keys of a partition. Keys are independent."""

    def adders(self, rows: WindowRows, states: ObjectTable, pair: Pair) -> tuple[Add, Add]:
        """The functions that add messages of these rows, left and right. They record which are late."""

    def soonest_due(self, times: Array) -> Array:
        """See Operator."""

    def due_ns(self, state: Any, at_ns: int, until_ns: int) -> Sequence[int]:
        """The times up to `until_ns` at which to close the state, now that its timer is due: `at_ns` first."""

    def close(self, key: Any, state: Any, at_ns: int) -> ClosedPairs:
        """Fires the state, which was due at that time. It has advanced when this returns, and may be empty then."""
