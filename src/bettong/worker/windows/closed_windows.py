"""Windows over columns that were over, by time, then by key."""

from typing import NamedTuple, Protocol

import numpy as np

from bettong.frames.columns import Array
from bettong.worker.windows.accumulators import WindowWords


class ClosedWindows(NamedTuple):
    """Keys, when each was due, its start and its end; which of them give results, and what those kept."""

    keys: Array
    dues: Array
    starts: Array
    ends: Array
    given: Array
    kept: WindowWords


class ClosingColumns(Protocol):
    """The windows of a computation over columns, of all keys of a partition."""

    def soonest_due(self, times: Array) -> Array:
        """See KeyWindows."""

    def close(self, clock_ns: int) -> ClosedWindows | None:
        """Fires all windows that are over by then; None where none is. Their items are still in use.

        `clock_ns`: of the clock by which they go.
        """

    def try_without_rows(self) -> None:
        """Runs all of it over nothing, so that machine code is there before the first message comes."""


def firing_order(keys: Array, dues: Array) -> Array:
    """The order of windows that are over, of which there are some."""
    # Of one time, as nearly always, keys are sorted alone, which is five times as fast.
    return np.argsort(keys) if (dues == dues[0]).all() else np.lexsort((keys, dues))
