"""Pairs of messages of both sides of a join as columns, for compiled functions."""

from __future__ import annotations

from typing import NamedTuple

from bettong.frames.columns import Array, Columns


class PairColumns(NamedTuple):
    """Pairs of messages: by pair the row that made it, in rising order, and the messages of both sides.

    `lacks`: which of these there is, see `kernel.BOTH`. Where there is no message, its values mean nothing.
    """

    rows: Array
    left: Columns
    right: Columns
    lacks: Array

    def take(self, pairs: Array) -> PairColumns:
        """Some of them."""
        return PairColumns(self.rows[pairs], self.left.take(pairs), self.right.take(pairs), self.lacks[pairs])
