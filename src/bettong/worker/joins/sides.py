"""Rows of both sides of a join as one batch, in the order of the messages that they come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bettong.frames.columns import Array, Columns
from bettong.immutable import immutable
from bettong.worker.batch import Batch


@immutable()
class SidedColumns(Columns):
    """Columns of one side, or of both.

    `rows`: by row its index, first those of the left side, then those of the right one.
    """

    left: Columns | None
    right: Columns | None
    rows: Array

    @property
    def of_right(self) -> Array:
        """By row, whether it is of the right side."""
        return np.asarray(self.rows >= self._right_begins)

    @property
    def one_side(self) -> bool | None:
        """Whether all rows are of the right side (True) or of the left one (False); None: some of each."""
        if self.left is None or self.right is None:
            return self.left is None
        return None

    def __iter__(self) -> Iterator[Any]:
        """One object a row, of the class of its side."""
        if self.right is None or self.left is None:
            return iter(self.of_side(np.arange(self.length), is_right=self.left is None))
        of_right = self.of_right
        sides = [
            iter(self.of_side(np.flatnonzero(of_right == is_right), is_right=is_right))
            for is_right in (False, True)
        ]
        # Not a generator, which would end at the first object whose class raises when it is made.
        return map(next, [sides[is_right] for is_right in of_right.tolist()])

    def of_side(self, rows: Array, *, is_right: bool) -> Columns:
        """Distinct rows of one side, in ascending order, as columns of that side."""
        found = self.right if is_right else self.left
        assert found is not None  # noqa: S101 - it has these rows
        return found if len(rows) == found.length else self.messages_of(rows, is_right=is_right)

    def messages_of(self, rows: Array, *, is_right: bool) -> Columns:
        """The same for rows in any order, also repeated ones."""
        found = self.right if is_right else self.left
        assert found is not None  # noqa: S101 - it has these rows
        return found.take(self.rows[rows] - (self._right_begins if is_right else 0))

    def take(self, rows: Array) -> Columns:
        """See Columns."""
        return SidedColumns(self.schema, len(rows), (), self.left, self.right, self.rows[rows])

    def slice(self, start: int, stop: int) -> Columns:
        """See Columns."""
        return SidedColumns(self.schema, stop - start, (), self.left, self.right, self.rows[start:stop])

    @property
    def _right_begins(self) -> int:
        return self.left.length if self.left is not None else 0


@dataclass(frozen=True, slots=True)
class StreamReads:
    """The streams that a computation reads."""

    streams: tuple[str, ...]

    def arriving(self, flows: Mapping[str, Batch]) -> Sequence[Batch]:
        """The rows of these streams, by message. `flows`: the rows of each stream."""
        return Batch.merged([flows[stream] for stream in self.streams if stream in flows])


@dataclass(frozen=True, slots=True)
class SideReads:
    """The streams that a join reads on its two sides."""

    left: StreamReads
    right: StreamReads

    def arriving(self, flows: Mapping[str, Batch]) -> Sequence[Batch]:
        """See StreamReads: one batch, whose columns are SidedColumns. Of one message, those of the left side first."""
        left, right = self.left.arriving(flows), self.right.arriving(flows)
        sides = [*left, *right]
        if not sides:
            return ()
        of_left, of_right = (side[0].columns if side else None for side in (left, right))
        first = sides[0]
        if len(sides) == 1:
            rows, sources = np.arange(first.length), first.sources
        else:
            sources = np.concatenate([side.all_sources() for side in sides])
            rows = np.argsort(sources, kind="stable")
            sources = sources[rows]
        columns = SidedColumns(first.schema, len(rows), (), of_left, of_right, rows)
        return [Batch(columns, first.keys, sources, first.times, first.watermarks)]


def sides_of(batch: Batch) -> SidedColumns:
    """The columns of a batch that a join reads: it reads nothing else."""
    columns = batch.columns
    assert isinstance(columns, SidedColumns)  # noqa: S101 - see above
    return columns
