"""A sink of the user's own, driven through `bettong.TwoPhaseSink`."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from bettong.application.destinations import TwoPhaseSink
from bettong.application.on_error import ANY_ERROR
from bettong.errors import BettongError
from bettong_receiver.errors import SinkError
from bettong_receiver.outlets.outlet import Lot, OutletUnavailableError, Refused

_Found = TypeVar("_Found")


class TwoPhaseOutlet:
    """See Outlet. A delivery is all or nothing for each partition by itself.

    What the sink raises is told: an OSError (no connection, a time-out) as unavailable, anything else as a fault.
    """

    def __init__(self, sink: str, open_sink: Callable[[], TwoPhaseSink]) -> None:
        self._name = f"sink {sink}"
        self._open_sink = open_sink
        self._sink: TwoPhaseSink | None = None

    def open(self, partitions: Sequence[int]) -> dict[int, bytes | None]:
        """See Outlet."""
        sink = self._sink = self._told("opening", self._open_sink)
        found = {}
        for partition in partitions:
            doing = f"recover({partition})"
            position = self._told(doing, lambda partition=partition: sink.recover(partition))  # type: ignore[misc]
            if position is not None and not isinstance(position, bytes):
                raise SinkError(
                    f"{self._name}: {doing} returned {type(position).__name__}, expected bytes or None"
                )
            found[partition] = position
        return found

    def deliver(self, lots: Sequence[Lot[bytes]]) -> Refused:
        """See Outlet."""
        sink = self._sink
        if sink is None:
            raise AssertionError("an outlet is opened first")

        def prepare(lot: Lot[bytes]) -> None:
            sink.begin(lot.partition)
            if lot.messages:
                sink.write(lot.partition, lot.messages)
            sink.prepare(lot.partition, lot.position)

        for lot in lots:
            self._told(f"preparing partition {lot.partition}", lambda lot=lot: prepare(lot))  # type: ignore[misc]
        for lot in lots:
            self._told(
                f"committing partition {lot.partition}",
                lambda lot=lot: sink.commit(lot.partition, lot.position),  # type: ignore[misc]
            )
        return {}

    def close(self) -> None:
        """See Outlet."""
        if self._sink is not None:
            try:
                self._sink.close()
            except ANY_ERROR:  # the user's own; what it did is told by the positions
                return

    def _told(self, doing: str, call: Callable[[], _Found]) -> _Found:
        try:
            return call()
        except OSError as error:
            raise OutletUnavailableError(f"{self._name}: {doing}: {error}") from error
        except BettongError:
            raise
        except ANY_ERROR as error:
            raise SinkError(f"{self._name}: {doing}: {type(error).__name__}: {error}") from error
