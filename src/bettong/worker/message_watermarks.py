"""The watermark before each message of a frame: a message that is older is late. Pure.

It is how far the earlier messages of its origin had moved the watermark. So it depends neither on how messages were cut
into frames, nor on the partitions that the earlier ones are in:

    own          how far the origin had come before the message (`Frame.message_watermarks`)
    others       the lowest watermark of the other live origins
    before       the partition's watermark before the record's messages

    the watermark before a message  =  max(before, min(others, own))

A frame without that column has no message older than its `own`, so none is older than min(others, own): whether a
message is late depends on `before` alone, which is the watermark of all of them.
"""

from __future__ import annotations

import numpy as np

from bettong.frames.columns import Array
from bettong.frames.frame import CLOCK_NS_MAX, Frame
from bettong.frames.times import decode_times


class MessageWatermarks:
    """The watermarks of one frame's messages, or of what fired in one call. Arguments: see the module."""

    __slots__ = ("_before_ns", "_others_ns", "_own", "_values")

    def __init__(self, before_ns: int, own: Array | None = None, others_ns: int = CLOCK_NS_MAX) -> None:
        self._before_ns = before_ns
        self._own = own
        self._others_ns = others_ns
        self._values: Array | None = None

    @property
    def are_one(self) -> bool:
        """Whether it is the same for all messages."""
        return self._own is None

    def of_messages(self, indexes: Array) -> Array:
        """Unix ns, as 64-bit integers: of the messages with these indexes."""
        if self._own is None:
            return np.full(len(indexes), self._before_ns, np.int64)
        if self._values is None:
            self._values = np.maximum(np.minimum(self._own, self._others_ns), self._before_ns)
        return self._values.take(indexes)

    def own_ns(self, index: int) -> int:
        """`own` of a message, where there is a column."""
        assert self._own is not None  # noqa: S101 - nobody asks otherwise
        return int(self._own[index])


def own_watermarks(frame: Frame, messages: int) -> Array | None:
    """The `own` watermarks that a frame carries; None: none of its messages is older than its own.

    Raises FrameError where it carries them for another number of messages.
    """
    given = frame.message_watermarks
    return decode_times(given, messages, "watermarks") if given else None
