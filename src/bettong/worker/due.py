"""When something is due, by the two clocks that an operator knows."""

from typing import NamedTuple

from bettong.application.timers import NEVER


class Due(NamedTuple):
    """When something may be due, and nothing before: once a clock has come so far, Unix ns. NEVER: it never does."""

    log_ns: int = NEVER
    watermark_ns: int = NEVER

    def is_reached(self, log_ns: int, watermark_ns: int) -> bool:
        """Whether one of the clocks is there."""
        return self.log_ns <= log_ns or self.watermark_ns <= watermark_ns
