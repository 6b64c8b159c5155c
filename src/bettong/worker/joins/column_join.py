"""What a join does with the rows of a batch at once, whichever kind it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, Protocol

import numpy as np

from bettong.frames.columns import Array
from bettong.worker.batch import Batch
from bettong.worker.joins.pair_columns import PairColumns
from bettong.worker.joins.sides import SidedColumns
from bettong.worker.state.kept_pool import KeptPool


class TakenRows(NamedTuple):
    """What the rows of a batch make. `late`: rows that were; `failures`: rows that could not be taken, and why.

    `partly_late`: how many were late for some of their windows.
    """

    pairs: PairColumns
    late: Array
    failures: Sequence[tuple[int, str]]
    partly_late: int = 0


class FiredKeys(NamedTuple):
    """Keys that were due, by time, then by key; when each was, and the event time of what it gives.

    The rows of `pairs`, which come in parts: which of these it was. `refused`: those that give nothing, and why.
    """

    keys: Array
    dues: Array
    times: Array
    pairs: Iterable[PairColumns]
    refused: Mapping[int, str] = MappingProxyType({})


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


def keep_messages(pool: KeptPool, columns: SidedColumns, are_kept: Array) -> Array:
    """By row that is kept, where its message is from now on; 0 for the others."""
    messages, of_right = np.zeros(columns.length, np.int64), columns.of_right
    for is_right, kept in enumerate(pool.sides):
        own = np.flatnonzero((of_right == is_right) & are_kept)
        if len(own):
            messages[own] = kept.put(columns.of_side(own, is_right=bool(is_right)).columns)
    return messages
