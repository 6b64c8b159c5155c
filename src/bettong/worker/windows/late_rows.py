"""Messages that are late for their windows: counted, and kept for the stream of late messages."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bettong.frames.columns import Array
from bettong.worker.batch import Batch


class LateRows:
    """`late`, `partly_late`: how many messages were, since the caller last set these to 0.

    `rows`, `partly_late_rows`: in how many rows, which are fewer where messages were combined.
    """

    def __init__(self, *, are_kept: bool) -> None:
        """`are_kept`: whether late rows are kept for `take`."""
        self.late = self.partly_late = self.rows = self.partly_late_rows = 0
        self._are_kept = are_kept
        self._batches: list[Batch] = []

    def count(self, late: int, partly_late: int) -> None:
        """Adds so many late and partly late messages to the counts."""
        self.late += late
        self.partly_late += partly_late

    def keep(self, batch: Batch, late: Sequence[int] | Array) -> None:
        """Keeps the late rows of a batch."""
        if len(late) and self._are_kept:
            self._batches.append(batch.take(np.asarray(late, np.int64)))

    def take(self) -> list[Batch]:
        """Removes and returns the late messages kept so far."""
        late, self._batches = self._batches, []
        return late
