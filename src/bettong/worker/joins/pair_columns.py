"""Pairs of messages of both sides of a join as columns, for compiled functions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bettong.frames.columns import Array, Columns
from bettong.worker.kernel import BOTH, RIGHT_LACKS


class PairColumns(NamedTuple):
    """Pairs of messages: by pair the row that made it, in rising order, and the messages of both sides.

    `lacks`: which of these exist, see `kernel.BOTH`. Where a message does not, its values mean nothing.
    """

    rows: Array
    left: Columns
    right: Columns
    lacks: Array

    @classmethod
    def of_left(cls, rows: Array, left: Columns, right: Columns, alone: Array) -> PairColumns:
        """Pairs of messages of the left side. `alone`: by pair, whether it has no right message."""
        return cls(rows, left, right, np.where(alone, RIGHT_LACKS, BOTH).astype(np.uint8))

    def take(self, pairs: Array) -> PairColumns:
        """Some of the pairs."""
        return PairColumns(self.rows[pairs], self.left.take(pairs), self.right.take(pairs), self.lacks[pairs])


def interleaved(one: tuple[Array, Columns], other: tuple[Array, Columns]) -> Columns:
    """Merges messages of two origins: of each, the indexes of its messages in the result, and the messages."""
    columns = Columns.concatenated(one[1].schema, [one[1], other[1]])
    return columns.take(np.argsort(np.concatenate([one[0], other[0]])))
