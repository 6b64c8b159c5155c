"""When the first window of a message is due, message by message and over columns: see `KeyWindows.soonest_due`.

An event time that is too late for its windows counts as the latest one that is not, so that nothing is beyond 64 bits.
"""

import numpy as np

from bettong.application.timers import NEVER
from bettong.application.windows.kinds import Ephemeral, Ranges, Sessions
from bettong.frames.columns import Array


def soonest_of_ranges(kind: Ranges, times: Array) -> Array:
    """By row, when the first window that covers its time is due."""
    known = np.minimum(times, kind.latest_ns)
    first: Array = known + kind.slide_ns - (known - kind.offset_ns - kind.size_ns) % kind.slide_ns
    return first + kind.delay_ns


def soonest_of_sessions(kind: Sessions, times: Array) -> Array:
    """By row, when a session is due that no later message extends."""
    return np.minimum(times, kind.latest_ns) + kind.wait_ns


def soonest_of_ephemeral(kind: Ephemeral, times: Array) -> Array:
    """By row, when the window is due that it opens."""
    return np.minimum(times, NEVER - 1 - kind.trigger_ns) + kind.trigger_ns
