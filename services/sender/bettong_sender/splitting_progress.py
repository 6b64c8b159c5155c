"""How far splitters and the log are: the frames being split, and those that the log has not answered for."""

import threading


class SplittingProgress:
    """Which frames are being split, and since when; how long the log has not answered. Used from several threads.

    Times are seconds of any monotonic clock.
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
