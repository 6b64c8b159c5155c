"""Messages of a batch that are pre-aggregated before they are repartitioned: see `application.windows.partials`.

Rows are of one class when the next stage would treat them alike: they are in one pane, and either none is older than
the watermark before it, or that watermark is the same. Then all are in time, late, or late for the same windows, and
the first can represent all: the watermark that counts there is `max(before, min(others, own))`, and where no row is
older than its own, `before` alone decides.

The next stage fires its timers before a row that is older than the watermark, because such a row reports the watermark.
Where other rows report it, too (`Stage.needs_each_watermark`), a class ends where the watermark moves.

Rows of a key and pane are combined in order, and only with neighbours: where the class changes, another partial begins.
So an aggregation combines in the order of the log, as it would without partials.
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

# Stands for the watermark before rows that are not older than it.
_IN_TIME = -1
# The accumulator of a window without messages.
_EMPTY = object()
_MARK_BYTES = 8
# The byte behind the mark: MessagePack of a simple value or a list of these, a tenth of the time; or the codec's form.
_SIMPLE, _CODED = b"s", b"c"


def window_classes(
    kind: Ranges, times: Array, watermarks: Array, *, of_each: bool
) -> tuple[list[int], list[int]]:
    """By row, its pane, and a number that differs between rows of a pane that are not of one class.

    `watermarks`: the one before each row, as reported to the next stage. `of_each`: whether that needs each of them.
    """
    panes = (times - kind.offset_ns) // kind.pane_ns
    steps = watermarks if of_each else np.where(times < watermarks, watermarks, _IN_TIME)
    return panes.tolist(), steps.tolist()


class PackedAccumulators:
    """Accumulators as bytes, marked with the windows they belong to. `plain`: the windows that read messages."""

    def __init__(self, plain: Windowed) -> None:
        self._classes = Classes(plain)
        self._name = plain.name
        settings = f"{plain.windowing.kind} of {plain.windowing.accumulated}, version {plain.version}"
        self._mark = hashlib.blake2b(settings.encode(), digest_size=_MARK_BYTES).digest()

    def pack(self, accumulator: Any) -> bytes:
        """Raises UnfitError for an accumulator that is not plain data."""
        kind = type(accumulator)
        if kind in codec.SIMPLE or (kind is list and codec.SIMPLE.issuperset(map(type, accumulator))):
            try:
                return self._mark + _SIMPLE + msgpack.packb(accumulator)  # type: ignore[no-any-return]
            except (OverflowError, UnicodeEncodeError):
                pass  # numbers and texts that only the codec can hold
        return self._mark + _CODED + codec.encode((), (accumulator,), self._classes)

    def unpack(self, packed: bytes) -> Any:
        """The packed accumulator. Raises ValueError for one of other windows, and what `reading.decode` raises."""
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
    """The aggregation of partials instead of messages. See Aggregation."""

    def __init__(self, plain: Windowed, accumulator: str) -> None:
        """`accumulator`: the field of a partial that holds it."""
        self._aggregation: Aggregation[Any, Any, Any] = plain.windowing.aggregation
        self._unpack = PackedAccumulators(plain).unpack
        self._field = accumulator
        self.combine = self._aggregation.combine

    def initial(self) -> Any:
        """See Aggregation. A marker, never combined: a user's `initial()` need not be neutral under `combine`."""
        return _EMPTY

    def update(self, accumulator: Any, partial: Any, /) -> Any:
        """See Aggregation."""
        found = self._unpack(getattr(partial, self._field))
        return found if accumulator is _EMPTY else self.combine(accumulator, found)

    def output(self, key: Any, accumulator: Any, window: Window, /) -> Any:
        """See Aggregation."""
        found = self._aggregation.initial() if accumulator is _EMPTY else accumulator
        return self._aggregation.output(key, found, window)
