"""What a sender holds for all its sessions together, and its bound; what it is at, and what it waits for."""

import threading
import time
from collections.abc import Callable

from bettong.held_time import HeldTime

# Credits flow again when this part of the bound is free, so that they do not come and go with every record.
_FREE_PART = 8

# What is held beside its bytes, by how the process's memory grew, rounded up. Of a frame that waits to be read, 6.3 kB
# where it is its session's only one: its call and its entry in a turn; further ones take less. Of a record that the log
# has not answered for, 1.1 kB: librdkafka's message, and who waits for its delivery.
FRAME_BYTES = 7 * 1024
RECORD_BYTES = 1152


class Buffer:
    """Bytes held for clients' frames that the log has not answered for, against their bound. Used from one thread.

    `full`: for how long nobody got a credit.
    """

    def __init__(self, bytes_max: int, clock_s: Callable[[], float] = time.monotonic) -> None:
        self.bytes = 0
        self.full = HeldTime(clock_s)
        self._bytes_max = bytes_max

    @property
    def is_full(self) -> bool:
        """Whether nobody gets a credit."""
        return self.full.is_held

    def add(self, size: int) -> None:
        """A frame came in."""
        self.bytes += size
        if self.bytes >= self._bytes_max:
            self.full.begin()

    def remove(self, size: int) -> None:
        """A frame was answered for."""
        self.bytes -= size
        if self.bytes <= self._bytes_max - self._bytes_max // _FREE_PART:
            self.full.end()


class SplittingProgress:
    """What is being split, since when; and how long the log has left frames unanswered. Used from several threads.

    Times are of any clock that does not go back, in seconds.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pending = 0
        self._since_s = 0.0
        self._splitting: dict[int, tuple[str, float]] = {}

    @property
    def pending(self) -> int:
        """Frames of which the log has not answered for all records."""
        return self._pending

    def begins(self, what: str, now_s: float) -> None:
        """The calling thread begins with a frame of `what`."""
        with self._lock:
            self._splitting[threading.get_ident()] = (what, now_s)

    def ends(self) -> None:
        """The calling thread is through with its frame."""
        with self._lock:
            self._splitting.pop(threading.get_ident(), None)

    def longest(self, now_s: float) -> tuple[str, float]:
        """Whose frame has been split for longest, and for how many seconds; ("", 0) when there is none."""
        with self._lock:
            what, since_s = min(self._splitting.values(), key=lambda each: each[1], default=("", now_s))
        return what, now_s - since_s

    def add_pending(self, now_s: float) -> None:
        """The log was given records of one more frame."""
        with self._lock:
            if self._pending == 0:
                self._since_s = now_s
            self._pending += 1

    def note_answer(self, now_s: float) -> None:
        """The log acknowledged or refused some record."""
        self._since_s = now_s

    def remove_pending(self) -> None:
        """The log has answered for all records of a frame."""
        with self._lock:
            self._pending -= 1

    def silent_s(self, now_s: float) -> float:
        """How long the log has been silent while frames are pending; 0 when none is."""
        with self._lock:
            return now_s - self._since_s if self._pending else 0.0
