"""What tables of Python objects and tables of records have alike: how their states end."""

from __future__ import annotations

from typing import Generic, TypeVar

from bettong.application.nodes.stateful import Stateful
from bettong.application.timers import Clock, StateTimer
from bettong.frames.columns import Array
from bettong.worker.state.lifetimes import Lifetimes, stored_clocks
from bettong.worker.state.table import SavedStates

_Lifetimes = TypeVar("_Lifetimes", bound=Lifetimes)


class ExpiringTable(Generic[_Lifetimes]):
    """See StateTable. A state ends by its time to live, or by `delete_when=`."""

    def __init__(self, node: Stateful, by_log: type[_Lifetimes], by_event: type[_Lifetimes]) -> None:
        """`by_log`, `by_event`: the lifetimes of such a table, by each clock."""
        self.name = node.name
        self._node = node
        # Whether states can end.
        self._ends = node.lifetime is not None or node.delete_when is not None
        self._lifetimes: _Lifetimes | None = None
        if node.lifetime is not None:
            lifetimes = by_event if node.lifetime.clock is Clock.EVENT else by_log
            self._lifetimes = lifetimes(node.lifetime.ttl_ns)
        self._deleted = 0
        # The clock at the last `note_clock`.
        self.log_ns = 0

    def take_deleted(self) -> int:
        """See StateTable."""
        deleted, self._deleted = self._deleted, 0
        return deleted

    def note_clock(self, clock_ns: int) -> None:
        """See StateTable."""
        self.log_ns = clock_ns
        if self._lifetimes is not None:
            self._lifetimes.note_clock(clock_ns)

    @property
    def due_ns(self) -> int | None:
        """See StateTable."""
        return self._lifetimes.due_ns if self._lifetimes is not None else None

    def _lifetimes_by_clock_of(self, timer: StateTimer) -> _Lifetimes | None:
        """The lifetimes, if they go by the timer's clock: one record may bring both the timer and the state's end."""
        lifetime = self._node.lifetime
        return self._lifetimes if lifetime is not None and lifetime.clock is timer.clock else None

    def _stored_clocks(self, data: SavedStates, keys: int, log_ns: int) -> Array | None:
        """See `stored_clocks`; None without a time to live."""
        if self._lifetimes is None:
            return None
        return stored_clocks(data.last_ns, keys, log_ns, by_event=self._lifetimes.by_event)
