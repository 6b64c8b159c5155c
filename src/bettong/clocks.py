"""Combines two clocks, so that a wrong one does little harm: this machine's, and Redis', which all machines share.

A log clock never goes back. So a machine that is a day ahead would expire whatever has a TTL of a day, and what is
written afterwards would live too long. With two clocks both would have to be ahead; one that is behind only causes
delays.
"""

import time
from collections.abc import Callable

from bettong.logs import Logger

# Clocks that NTP synchronizes differ by less; Redis' time as known here is late by the latency of its response.
_AHEAD_NS_MAX = 1_000_000_000
# A larger difference is logged: an operator has to set one of the clocks.
_APART_NS_MAX = 60 * 1_000_000_000


class CarriedClock:
    """Another machine's clock: its last reported time plus the time that has passed here since. Thread-safe."""

    def __init__(self, monotonic_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._monotonic_ns = monotonic_ns
        self._heard: tuple[int, int] | None = None

    def hear(self, at_ns: int) -> None:
        """Sets the other clock's current time, Unix ns."""
        self._heard = at_ns, self._monotonic_ns()

    @property
    def now_ns(self) -> int | None:
        """Unix ns; None before the first `hear`."""
        if self._heard is None:
            return None
        at_ns, heard_ns = self._heard
        return at_ns + self._monotonic_ns() - heard_ns


class CheckedClock:
    """This machine's clock; Redis' while the machine is more than a second ahead of it.

    Thread-safe, but several threads may log at once that the two differ.
    """

    def __init__(self, machine_ns: Callable[[], int], log: Logger) -> None:
        self.machine_ns = machine_ns
        self._log = log
        self._is_apart = False

    def now_ns(self, redis_ns: int) -> int:
        """Unix ns. `redis_ns`: Redis' clock now."""
        machine_ns = self.machine_ns()
        is_apart = abs(machine_ns - redis_ns) > _APART_NS_MAX
        if is_apart and not self._is_apart:
            self._log.warning(
                "the clocks of this machine and of Redis differ; the log goes by the earlier one. Set them (NTP,"
                " chrony)",
                machine_ahead_s=round((machine_ns - redis_ns) / 1e9),
            )
        self._is_apart = is_apart
        return redis_ns if machine_ns - redis_ns > _AHEAD_NS_MAX else machine_ns
