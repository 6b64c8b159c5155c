"""What became of messages of a join that came late: counted, and kept for the streams of late messages."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bettong.frames.columns import Array
from bettong.worker.batch import Batch
from bettong.worker.joins.sides import sides_of


class LateSides:
    """`late`, `partly_late`: how many messages were, since somebody set these to 0.

    `rows`, `partly_late_rows`: the same, for a row is one.
    """

    def __init__(self) -> None:
        self.late = self.partly_late = self.rows = self.partly_late_rows = 0
        # By side: its late rows, where somebody wants them.
        self._batches: dict[bool, list[Batch]] = {}

    def keep(self, *, is_right: bool) -> None:
        """The late messages of that side are wanted."""
        self._batches[is_right] = []

    def note(self, batch: Batch, late: Sequence[int] | Array, partly_late: int = 0) -> None:
        """These rows of a batch of SidedColumns were late, and so many partly."""
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
        """Those of a side since this was last asked."""
        late, self._batches[is_right] = self._batches[is_right], []
        return late
