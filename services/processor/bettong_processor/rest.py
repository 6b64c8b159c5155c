"""Rest: nothing has come for a while, so who looks about many times a second does so less often.

What comes ends it at once. What people wait for meanwhile (a death, a new assignment) is noticed a tenth of a second
later: nothing is under way then.
"""

# Shorter pauses are those of a source that is slow.
_AFTER_S = 2.0


class Rest:
    """Pure; seconds of one monotonic clock."""

    def __init__(self, now_s: float) -> None:
        self._moved_s = now_s

    def end(self, now_s: float) -> None:
        """Something has come, or is under way."""
        self._moved_s = now_s

    def has_begun(self, now_s: float) -> bool:
        """Whether nothing has come for long enough."""
        return now_s - self._moved_s >= _AFTER_S
