"""Rest: no record has arrived for a while, so loops that poll many times a second poll less often.

A record ends it at once. Other events, such as a death or a new assignment, are detected a tenth of a second later,
which delays no record.
"""

# Shorter pauses are usual for a slow source.
_AFTER_S = 2.0


class Rest:
    """Pure; seconds of one monotonic clock."""

    def __init__(self, now_s: float) -> None:
        self._moved_s = now_s

    def end(self, now_s: float) -> None:
        """Something has arrived, or is in progress."""
        self._moved_s = now_s

    def has_begun(self, now_s: float) -> bool:
        """Whether nothing has arrived for long enough."""
        return now_s - self._moved_s >= _AFTER_S
