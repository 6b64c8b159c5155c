"""Which messages of a compiled join's table delete the message of their key."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bettong.application.joins.joined import Joined
from bettong.application.joins.kinds import Latest
from bettong.frames.columns import Array
from bettong.worker.batch import Batch
from bettong.worker.calling.results import Calling, Failure
from bettong.worker.joins.latest_columns import Deletes


def deletes_of(node: Joined, calling: Calling[None] | None) -> Deletes | None:
    """How to find these messages: by a field, or by calling a predicate. None where no message deletes."""
    if calling is not None:

        def asked(batch: Batch) -> tuple[Array, Sequence[Failure]]:
            results = calling.call(batch, None)
            assert results.rows is not None  # noqa: S101 - a predicate's
            return results.rows, results.failures

        return asked
    field = node.kind.deletes_field if isinstance(node.kind, Latest) else None
    if field is None:
        return None
    position = node.sides[1].position(field)

    def read(batch: Batch) -> tuple[Array, Sequence[Failure]]:
        return np.flatnonzero(np.asarray(batch.columns.columns[position])), ()

    return read
