"""Progress of splitters and log: the frames being split, and those for which the log has not answered."""

import threading

from bettong.identifiers import Origin


class SplittingProgress:
    """Which frame each thread splits, and since when; for how long the log has not answered. Used from many threads.

    Times are seconds of any monotonic clock.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pending = 0
        self._since_s = 0.0
        self._splitting: dict[int, tuple[Origin, float]] = {}

    @property
    def pending(self) -> int:
        """Frames with records for which the log has not answered."""
        return self._pending

    def begin_frame(self, origin: Origin, now_s: float) -> None:
        """Notes that the calling thread begins to split a frame of this origin."""
        with self._lock:
            self._splitting[threading.get_ident()] = (origin, now_s)

    def end_frame(self) -> None:
        """Notes that the calling thread has split its frame."""
        with self._lock:
            self._splitting.pop(threading.get_ident(), None)

    def longest_frame(self, now_s: float) -> tuple[Origin, float]:
        """The origin of the frame that has been split for longest, and for how many seconds; ("", 0) if none is."""
        with self._lock:
            origin, since_s = min(
                self._splitting.values(), key=lambda each: each[1], default=(Origin(""), now_s)
            )
        return origin, now_s - since_s

    def add_pending(self, now_s: float) -> None:
        """Notes that records of one more frame were passed to the log."""
        with self._lock:
            if self._pending == 0:
                self._since_s = now_s
            self._pending += 1

    def note_answer(self, now_s: float) -> None:
        """Notes that the log acknowledged or refused a record."""
        self._since_s = now_s

    def remove_pending(self) -> None:
        """Notes that the log has answered for all records of a frame."""
        with self._lock:
            self._pending -= 1

    def silent_s(self, now_s: float) -> float:
        """For how many seconds the log has not answered while frames are pending; 0 when none is."""
        with self._lock:
            return now_s - self._since_s if self._pending else 0.0
