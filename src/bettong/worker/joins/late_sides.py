"""Late messages of a join: counted, and kept for the streams of late messages."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bettong.frames.columns import Array
from bettong.worker.batch import Batch
from bettong.worker.joins.sides import sides_of


class LateSides:
    """`late`, `partly_late`: how many messages were, since the caller last set these to 0.

    `rows`, `partly_late_rows`: the same numbers, since each row is one message.
    """

    def __init__(self) -> None:
        self.late = self.partly_late = self.rows = self.partly_late_rows = 0
        # By side, its late rows, where a stream reads them.
        self._batches: dict[bool, list[Batch]] = {}

    def keep(self, *, is_right: bool) -> None:
        """Makes `note` keep the late messages of that side."""
        self._batches[is_right] = []

    def note(self, batch: Batch, late: Sequence[int] | Array, partly_late: int = 0) -> None:
        """Records rows of a batch of SidedColumns as late, and so many as partly late."""
        self.late += len(late)
        self.partly_late += partly_late
        self.rows += len(late)
        self.partly_late_rows += partly_late
        if not len(late) or not self._batches:
            return
        columns, rows = sides_of(batch), np.asarray(late, np.int64)
        of_right = columns.of_right[rows]
        for is_right, found in self._batches.items():
            own = rows[of_right == is_right]
            if len(own):
                found.append(batch.derived(columns.of_side(own, is_right=is_right), own))

    def take(self, *, is_right: bool) -> list[Batch]:
        """Removes and returns the late messages of a side that were kept so far."""
        late, self._batches[is_right] = self._batches[is_right], []
        return late
