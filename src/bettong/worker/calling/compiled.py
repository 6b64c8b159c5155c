"""Runs the kernels of compiled functions over the rows of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

import numpy as np
import pyarrow as pa

from bettong.application.on_error import STOP, OnError
from bettong.application.returns import Returns
from bettong.frames.columns import Array, Column, Columns
from bettong.schema.schema import Schema
from bettong.user_errors import ANY_ERROR, reason_of
from bettong.worker.batch import Batch
from bettong.worker.calling.results import Failure, Results
from bettong.worker.joins.pair_columns import PairColumns
from bettong.worker.kernel import Kernel
from bettong.worker.state.records import Records

# Room for results at first where a message may have several; doubled as often as needed.
_ROOM_MIN = 256


class PairCalling:
    """The function of a compiled join, called for pairs of messages."""

    def __init__(self, kernel: Kernel, on_error: OnError) -> None:
        self._kernel = kernel
        self._stops = on_error == STOP

    def call(self, pairs: PairColumns, unpaired: Sequence[Failure] = ()) -> Results:
        """The results for pairs, by the rows that made these.

        `unpaired`: rows for which no pair could be made.
        """
        rows, left, right = pairs.rows, pairs.left, pairs.right
        columns = [*left.columns, *right.columns]
        if any(self._kernel.form.lacks):
            columns.append(pairs.lacks)
        made, count, raised = _run(self._kernel, left.length, columns, (), 0, stops=self._stops)
        results = _output(self._kernel, made, count, [])
        assert results.rows is not None  # noqa: S101 - pairs may give nothing
        failed = sorted((*raised, *results.failures), key=itemgetter(0))
        failures = [*unpaired, *((int(rows[pair]), reason) for pair, reason in failed)]
        failures.sort(key=itemgetter(0))
        return Results(results.columns, rows[results.rows], failures)


class CompiledCalling:
    """`@bettong.compiled` functions, by the schema that they take."""

    def __init__(self, kernels: dict[Schema, Kernel], on_error: OnError) -> None:
        self._kernels = kernels
        self._stops = on_error == STOP
        self._spare: Array | None = None

    def call(self, batch: Batch, states: Records | None) -> Results:
        """See Calling."""
        kernel = self._kernels[batch.schema]
        if states is None:
            return self._results(kernel, batch.columns, (), 0)
        if self._spare is None:
            self._spare = np.empty_like(states.states[:1])
        arrays = [states.slots, states.states, self._spare]
        if not kernel.form.deletes:
            return self._results(kernel, batch.columns, arrays, states.keys)
        deleted = np.zeros(batch.length, np.uint8)
        arrays += [states.table.first, deleted]
        results = self._results(kernel, batch.columns, arrays, states.keys)
        if (rows := np.flatnonzero(deleted)).size:
            states.table.delete(batch, states.slots, rows)
        return results

    def _results(self, kernel: Kernel, columns: Columns, states: Sequence[Array], keys: int) -> Results:
        made, count, failures = _run(kernel, columns.length, columns.columns, states, keys, stops=self._stops)
        if kernel.form.returns is Returns.WHETHER:
            return Results(None, made.sources[:count], failures)
        return _output(kernel, made, count, failures)


def _run(
    kernel: Kernel, rows: int, columns: Sequence[Column], states: Sequence[Array], keys: int, *, stops: bool
) -> tuple[_Made, int, list[Failure]]:
    """Stores the results of all rows, and counts them. `states`: the arrays that the kernel takes for them."""
    several = kernel.form.returns is Returns.MANY
    cursor = np.array([-1, 0, 0])
    made = _Made(kernel, max(rows, _ROOM_MIN) if several else rows)
    failures: list[Failure] = []
    # The kernel takes addresses: these names keep the arrays alive while it runs.
    taken = [np.ascontiguousarray(column) for column in columns]
    addresses = [_address(array) for array in (*taken, *states, cursor)]
    start = 0
    while start < rows:
        try:
            kernel.call(start, rows, made.room, keys, *addresses, *map(_address, made.arrays))
        except ANY_ERROR as error:
            row = _row_at_work(cursor, start, error)
            failures.append((row, reason_of(error)))
            if stops:
                break
            start = row + 1
        else:
            if not cursor[2]:
                break
            start, cursor[2] = int(cursor[0]), 0
            made = _Made(kernel, 2 * made.room, made)
    return made, int(cursor[1]), failures


class _Made:
    """The arrays in which a kernel stores results."""

    def __init__(self, kernel: Kernel, room: int, before: _Made | None = None) -> None:
        self.room = room
        self.sources = np.empty(room, np.int64)
        self.violations = np.empty(room if kernel.form.returns is Returns.MANY else 1, np.uint8)
        self.results = [np.empty(room, field.dtype) for field in kernel.form.result_fields]
        for old, new in zip(before.arrays if before else (), self.arrays, strict=False):
            new[: len(old)] = old

    @property
    def arrays(self) -> tuple[Array, ...]:
        return (self.sources, self.violations, *self.results)


def _output(kernel: Kernel, made: _Made, count: int, failures: list[Failure]) -> Results:
    assert kernel.form.output is not None  # noqa: S101 - a filter's alone has none
    output = Columns(kernel.form.output, count, tuple(result[:count] for result in made.results))
    sources = made.sources[:count]
    if kernel.form.returns is Returns.MANY and made.violations[:count].any():
        failures += [
            (int(sources[result]), kernel.reasons[made.violations[result] - 1])
            for result in np.flatnonzero(made.violations[:count]).tolist()
        ]
        fit = np.flatnonzero(made.violations[:count] == 0)
        output, sources = output.take(fit), sources.take(fit)
    return Results(output, sources, failures)


def _row_at_work(cursor: Array, start: int, error: BaseException) -> int:
    """The row that raised. Raises where none did, for calling the kernel again would never end."""
    row = int(cursor[0])
    if row < start:
        raise AssertionError("the kernel did not start") from error
    return row


def _address(array: Array) -> int:
    # Takes a third of the time of numpy's own way.
    address: int = pa.py_buffer(array).address
    return address
