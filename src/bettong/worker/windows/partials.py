"""Messages of a batch that are combined before they travel: see `application.windows.partials`.

Rows are of one class when whatever is asked of them behind the log has one answer for all of them: the same pane, and
the watermark before them within the same step of the grid of times at which that pane's windows are over. Which
watermark counts there is `max(before, min(others, own))`, which does not part two that lie in one step. So all of a
class are in time, late, or late for the same windows, and the first of them can stand for all.

Rows of a key are combined in their order, and those of one key and pane change their class only as the watermark goes
on. So the order in which an aggregation sees what it combines is that of the log, as without it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from typing import Any

import msgpack  # type: ignore[import-untyped]
import numpy as np

from bettong.application.windows.aggregation import Aggregation
from bettong.application.windows.kinds import Ranges
from bettong.application.windows.window import Window
from bettong.application.windows.windowed import Windowed
from bettong.frames.columns import Array
from bettong.worker.state import codec, reading
from bettong.worker.state.classes import Classes
from bettong.worker.windows.ranges import RangeWindows

# Of a window without messages.
_EMPTY = object()
_MARK_BYTES = 8
# What follows the mark: a simple value or a list of these, which takes a tenth of the time; or what the codec writes.
_SIMPLE, _CODED = b"s", b"c"


def window_classes(
    kind: Ranges, windows: RangeWindows, times: Array, watermarks: Array
) -> Sequence[Hashable]:
    """By row, its class. `watermarks`: before each, as the next stage is told."""
    panes = (times - kind.offset_ns) // kind.pane_ns
    dues = windows.soonest_due(times)
    steps = np.where(watermarks < dues, 0, (watermarks - dues) // kind.slide_ns + 1)
    if not len(times) or (steps.max() == 0 and panes.min() == panes.max()):
        return [0] * len(times)
    return list(zip(panes.tolist(), steps.tolist(), strict=True))


class PackedAccumulators:
    """Accumulators as bytes, which say of what windows they are. `plain`: those that read messages."""

    def __init__(self, plain: Windowed) -> None:
        self._classes = Classes(plain)
        self._name = plain.name
        settings = f"{plain.windowing.kind} of {plain.windowing.accumulated}, version {plain.version}"
        self._mark = hashlib.blake2b(settings.encode(), digest_size=_MARK_BYTES).digest()

    def pack(self, accumulator: Any) -> bytes:
        """Raises UnfitError for what is no plain data."""
        kind = type(accumulator)
        if kind in codec.SIMPLE or (kind is list and codec.SIMPLE.issuperset(map(type, accumulator))):
            try:
                return self._mark + _SIMPLE + msgpack.packb(accumulator)  # type: ignore[no-any-return]
            except (OverflowError, UnicodeEncodeError):
                pass  # numbers and texts that only the codec can hold
        return self._mark + _CODED + codec.encode((), (accumulator,), self._classes)

    def unpack(self, packed: bytes) -> Any:
        """What `pack` was given. Raises ValueError for that of other windows, and as `reading.decode`."""
        if packed[:_MARK_BYTES] != self._mark:
            raise ValueError(
                f"it was combined for other windows than {self._name!r} has now, before the application was changed;"
                " run the version that combined it until the log behind local(...) is read, or leave its messages out"
            )
        form, body = packed[_MARK_BYTES : _MARK_BYTES + 1], packed[_MARK_BYTES + 1 :]
        if form == _SIMPLE:
            return msgpack.unpackb(body)
        _, (accumulator,) = reading.decode(body, self._classes)
        return accumulator


class MergedPartials:
    """See Aggregation: of partials instead of messages."""

    def __init__(self, plain: Windowed, accumulator: str) -> None:
        """`accumulator`: the field of a partial that has it."""
        self._aggregation: Aggregation[Any, Any, Any] = plain.windowing.aggregation
        self._unpack = PackedAccumulators(plain).unpack
        self._field = accumulator
        self.combine = self._aggregation.combine

    def initial(self) -> Any:
        """See Aggregation. Nothing is combined with it: what a user's `initial` gives need not go with others."""
        return _EMPTY

    def update(self, accumulator: Any, partial: Any, /) -> Any:
        """See Aggregation."""
        found = self._unpack(getattr(partial, self._field))
        return found if accumulator is _EMPTY else self.combine(accumulator, found)

    def output(self, key: Any, accumulator: Any, window: Window, /) -> Any:
        """See Aggregation."""
        found = self._aggregation.initial() if accumulator is _EMPTY else accumulator
        return self._aggregation.output(key, found, window)
