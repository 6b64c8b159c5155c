"""When something is due, by the log clock or by the watermark."""

from typing import NamedTuple

from bettong.application.timers import NEVER


class Due(NamedTuple):
    """Lower bounds of when something is due, by either clock, Unix ns; NEVER: nothing is."""

    log_ns: int = NEVER
    watermark_ns: int = NEVER

    def is_reached(self, log_ns: int, watermark_ns: int) -> bool:
        """Whether one of the clocks has reached its bound."""
        return self.log_ns <= log_ns or self.watermark_ns <= watermark_ns
