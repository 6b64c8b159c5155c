"""What a join does with the rows of a batch at once, whichever kind it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from bettong.frames.columns import Array
from bettong.worker.batch import Batch
from bettong.worker.joins.pair_columns import PairColumns


class TakenRows(NamedTuple):
    """What the rows of a batch make. `late`: rows that were; `failures`: rows that could not be taken, and why."""

    pairs: PairColumns
    late: Array
    failures: Sequence[tuple[int, str]]


class FiredKeys(NamedTuple):
    """Keys that were due, by time, then by key, and when each was. The rows of `pairs`: which of these it was."""

    keys: Array
    dues: Array
    pairs: PairColumns


class ColumnJoin(Protocol):
    """The join of all keys of a partition. A row of a batch is one of SidedColumns."""

    def take(self, batch: Batch) -> TakenRows:
        """Takes rows in their order."""

    def soonest_due(self, times: Array) -> Array:
        """See Operator."""

    def close(self, watermark_ns: int, *, reports_all: bool) -> FiredKeys | None:
        """Closes all that is due by that watermark. None where nothing comes of it.

        `reports_all`: not only where something does.
        """

    def try_without_rows(self) -> None:
        """Runs all of it over nothing, so that machine code is there before the first message comes."""
