"""What a join does with the rows of a batch at once, whichever kind it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from bettong.frames.columns import Array, Columns
from bettong.worker.batch import Batch


class Pairs(NamedTuple):
    """Messages of both sides, in pairs. A side that is None has no message in any.

    `rows`: by pair the row that makes it, of a batch or of what is due, in rising order.
    """

    rows: Array
    left: Columns | None
    right: Columns | None

    def take(self, pairs: Array) -> Pairs:
        """Those of these indexes, in rising order."""
        left, right = (None if side is None else side.take(pairs) for side in (self.left, self.right))
        return Pairs(self.rows[pairs], left, right)


class TakenRows(NamedTuple):
    """What rows of a batch make: pairs, and messages without a partner.

    `late`: rows that were late. `failures`: rows that could not be taken, and why.
    """

    pairs: Sequence[Pairs]
    late: Array
    failures: Sequence[tuple[int, str]]


class ClosedKeys(NamedTuple):
    """What was due of keys: by time, then by key. `rows` of the pairs count these.

    `fired`: rows of Fired, with the event times of what they give.
    """

    fired: Batch
    pairs: Sequence[Pairs]


class ColumnJoin(Protocol):
    """The join of all keys of a partition. A row of a batch is one of SidedColumns."""

    def take(self, batch: Batch) -> TakenRows:
        """Takes rows in their order."""

    def soonest_due(self, times: Array) -> Array:
        """See Operator."""

    def close(self, watermark_ns: int) -> ClosedKeys | None:
        """Closes all that is due by that watermark. None where it gives nothing."""

    def try_without_rows(self) -> None:
        """Runs all of it over nothing, so that machine code is there before the first message comes."""
