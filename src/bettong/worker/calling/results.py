"""The results of a user's function for the rows of a batch; the interface for calling it in any execution mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from bettong.frames.columns import Array, Columns
from bettong.schema.schema import Schema
from bettong.worker.batch import Batch

States_contra = TypeVar("States_contra", contravariant=True)

# A row of the batch, and why the function failed for it, or a result does not fit.
Failure = tuple[int, str]


class Results(NamedTuple):
    """Results that fit their schema, as they were when the function returned them.

    `columns`: None for a predicate, which makes no messages. `rows`: by result, the row that it comes from, in rising
    order; None: one result of each row. `failures`: in the order in which they arose.
    """

    columns: Columns | None
    rows: Array | None
    failures: Sequence[Failure] = ()


def joined(schema: Schema, pieces: Sequence[tuple[int, int, Results]]) -> Results:
    """Joins the results of pieces, each with the row where it starts and where it stops, as those of all their rows."""
    parts = [piece.columns for _, _, piece in pieces if piece.columns is not None]
    rows = [
        np.arange(start, stop) if piece.rows is None else start + piece.rows for start, stop, piece in pieces
    ]
    failures = [(start + row, reason) for start, _, piece in pieces for row, reason in piece.failures]
    columns = Columns.concatenated(schema, parts) if parts else None
    return Results(columns, np.concatenate(rows), failures)


class Calling(Protocol[States_contra]):
    """Calls one computation's function for each row of a batch, in order."""

    def call(self, batch: Batch, states: States_contra) -> Results:
        """`states`: those of the rows' keys, as `StateTable.open` returns them; None for a function without state.

        Never raises for what the user's function raises. With on_error="stop" nothing is called once a row is known
        to have raised.
        """
