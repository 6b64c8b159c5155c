"""Numbers for the frames of one session: what its origin last sent to each partition.

A partition that the session has not sent to for half of the time after which consumers forget an origin is opened
again first; else its next frame would look like a gap to a consumer that has forgotten.
"""

from bettong.delivery import ORIGIN_TTL_NS

# Half of it, so that the clocks of a topic's senders may be that far apart.
SILENT_NS_MAX = ORIGIN_TTL_NS // 2


class Numbering:
    """The `previous` of each frame, by place: a number for each partition that the session may send to."""

    def __init__(self, places: int, *, acknowledged: int, now_ns: int) -> None:
        self._last = [acknowledged] * places
        self._sent_ns = [now_ns] * places

    def is_silent(self, place: int, now_ns: int) -> bool:
        """Whether the place must be opened again before a frame."""
        return now_ns - self._sent_ns[place] >= SILENT_NS_MAX

    def last(self, place: int) -> int:
        """The sequence last sent there."""
        return self._last[place]

    def open(self, place: int, now_ns: int) -> int:
        """Notes that the place is opened (again), and returns the sequence last sent there."""
        self._sent_ns[place] = now_ns
        return self._last[place]

    def number(self, place: int, sequence: int, now_ns: int) -> int:
        """Notes that frame `sequence` goes there, and returns its `previous`."""
        previous = self._last[place]
        self._last[place] = sequence
        self._sent_ns[place] = now_ns
        return previous
