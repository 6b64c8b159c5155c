"""Messages of a batch that are combined before they travel: see `application.windows.partials`.

Rows are of one class when whatever is asked of them behind the log has one answer for all of them: they are in one
pane, and either none is older than the watermark before it, or that watermark is the same. So all are in time, late, or
late for the same windows, and the first of them can stand for all: which watermark counts there is
`max(before, min(others, own))`, and where no row is older than its own, `before` alone decides.

What is due behind the log fires before a row that is older than the watermark, for that tells how far the watermark has
come. Where rows that are not older tell it, too (`Stage.needs_each_watermark`), no class goes beyond where it moves.

Rows of a key and pane are combined in their order, and only with neighbours: where the class changes another partial
begins. So the order in which an aggregation sees what it combines is that of the log, as without it.
"""

from __future__ import annotations

import hashlib
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

# In place of the watermark before rows that are not older.
_IN_TIME = -1
# Of a window without messages.
_EMPTY = object()
_MARK_BYTES = 8
# What follows the mark: a simple value or a list of these, which takes a tenth of the time; or what the codec writes.
_SIMPLE, _CODED = b"s", b"c"


def window_classes(
    kind: Ranges, times: Array, watermarks: Array, *, of_each: bool
) -> tuple[list[int], list[int]]:
    """By row, its pane, and a number that is another one where rows of a pane are of another class.

    `watermarks`: before each, as the next stage is told. `of_each`: see the module.
    """
    panes = (times - kind.offset_ns) // kind.pane_ns
    steps = watermarks if of_each else np.where(times < watermarks, watermarks, _IN_TIME)
    return panes.tolist(), steps.tolist()


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
