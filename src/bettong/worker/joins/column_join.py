"""The interface of joins that process the rows of a batch at once."""

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


class AddedRows(NamedTuple):
    """The result of adding a batch. `late`: the late rows; `failures`: rows that could not be added, and why.

    `partly_late`: how many were late for some of their windows.
    """

    pairs: PairColumns
    late: Array
    failures: Sequence[tuple[int, str]]
    partly_late: int = 0


class FiredKeys(NamedTuple):
    """Firings, by time, then by key: the key, when it was due, and the event time of its results.

    `rows` of `pairs`, which come in parts, are indexes of firings. `refused`: the firings without results, and why.
    """

    keys: Array
    dues: Array
    times: Array
    pairs: Iterable[PairColumns]
    refused: Mapping[int, str] = MappingProxyType({})


class ColumnJoin(Protocol):
    """The join of all keys of a partition. A row of a batch is one of SidedColumns."""

    def add(self, batch: Batch) -> AddedRows:
        """Adds the rows in order."""

    def soonest_due(self, times: Array) -> Array:
        """See Operator."""

    def close(self, watermark_ns: int, *, reports_all: bool) -> FiredKeys | None:
        """Fires all keys that are due by that watermark. None where that has no results.

        `reports_all`: reports firings without results, too.
        """

    def try_without_rows(self) -> None:
        """Runs all kernels over no rows, so that they are compiled before the first message arrives."""


def keep_messages(pool: KeptPool, columns: SidedColumns, are_kept: Array) -> Array:
    """Stores the messages of rows that are kept. By row, where its message is; 0 for the others."""
    messages, of_right = np.zeros(columns.length, np.int64), columns.of_right
    for is_right, kept in enumerate(pool.sides):
        own = np.flatnonzero((of_right == is_right) & are_kept)
        if len(own):
            messages[own] = kept.put(columns.of_side(own, is_right=bool(is_right)).columns)
    return messages
