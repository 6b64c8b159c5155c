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

_buffer_of = pa.py_buffer
# Room for results at first where a message may have several; doubled as often as needed.
_ROOM_MIN = 256


class PairCalling:
    """The function of a compiled join, called for pairs of messages."""

    def __init__(self, kernel: Kernel, on_error: OnError) -> None:
        self._lacks = any(kernel.form.lacks)
        self._runner = _KernelRunner(kernel, stops=on_error == STOP)

    def call(self, pairs: PairColumns, unpaired: Sequence[Failure] = ()) -> Results:
        """The results for pairs, by the rows that made these.

        `unpaired`: rows for which no pair could be made.
        """
        rows, left, right = pairs.rows, pairs.left, pairs.right
        columns = [*left.columns, *right.columns]
        if self._lacks:
            columns.append(pairs.lacks)
        results = self._runner.run(left.length, columns, (), 0)
        assert results.rows is not None  # noqa: S101 - pairs may give nothing
        failed = sorted(results.failures, key=itemgetter(0))
        failures = [*unpaired, *((int(rows[pair]), reason) for pair, reason in failed)]
        failures.sort(key=itemgetter(0))
        return Results(results.columns, rows[results.rows], failures)


class CompiledCalling:
    """`@bettong.compiled` functions, by the schema that they take."""

    def __init__(self, kernels: dict[Schema, Kernel], on_error: OnError) -> None:
        self._runners = {
            schema: _KernelRunner(kernel, stops=on_error == STOP) for schema, kernel in kernels.items()
        }
        self._spare: Array | None = None

    def call(self, batch: Batch, states: Records | None) -> Results:
        """See Calling."""
        runner, columns = self._runners[batch.schema], batch.columns
        if states is None:
            return runner.run(columns.length, columns.columns, (), 0)
        if self._spare is None:
            self._spare = np.empty_like(states.states[:1])
        arrays = [states.slots, states.states, self._spare]
        if not runner.deletes:
            return runner.run(columns.length, columns.columns, arrays, states.keys)
        deleted = np.zeros(batch.length, np.uint8)
        arrays += [states.table.first, deleted]
        results = runner.run(columns.length, columns.columns, arrays, states.keys)
        if (rows := np.flatnonzero(deleted)).size:
            states.table.delete(batch, states.slots, rows)
        return results


class _KernelRunner:
    """Runs one kernel, which stores results in arrays that lie in one block of memory.

    Each array of its own would cost half a microsecond, to allocate and to take its address: ten of them as much as
    five messages. Larger elements come first in the block, so that all are aligned.
    """

    def __init__(self, kernel: Kernel, *, stops: bool) -> None:
        form = kernel.form
        self.deletes = form.deletes
        self._kernel = kernel
        self._stops = stops
        self._several = form.returns is Returns.MANY
        # See Kernel: sources, violations, results. All fields that compiled functions give have a fixed width.
        fields = (np.dtype(field.dtype) for field in form.result_fields)
        violations = [np.dtype(np.uint8)] if self._several else []
        self._dtypes = [np.dtype(np.int64), *violations, *fields]
        # Bytes a row before each of them in a block, and of all.
        self._before = [0] * len(self._dtypes)
        self._width = 0
        for number in sorted(range(len(self._dtypes)), key=lambda number: -self._dtypes[number].alignment):
            self._before[number] = self._width
            self._width += self._dtypes[number].itemsize
        # Most small frames have no results: these are made once.
        self._no_results = self._results(self._arrays(self._block(0), 0, 0), [])
        self._cursor = np.zeros(3, np.int64)
        self._cursor_address = _address(self._cursor)

    def run(self, rows: int, columns: Sequence[Column], states: Sequence[Array], keys: int) -> Results:
        """The results of all rows. `states`: the arrays that the kernel takes for them."""
        cursor = self._cursor
        cursor[0], cursor[1], cursor[2] = -1, 0, 0
        room = max(rows, _ROOM_MIN) if self._several else rows
        block = self._block(room)
        failures: list[Failure] = []
        # The kernel takes addresses: this name keeps the arrays alive while it runs.
        taken = [*map(np.ascontiguousarray, columns), *states]
        addresses = [*map(_address, taken), self._cursor_address]
        start = 0
        while start < rows:
            base = _address(block)
            try:
                self._kernel.call(
                    start, rows, room, keys, *addresses, *[base + room * before for before in self._before]
                )
            except ANY_ERROR as error:
                row = _row_at_work(cursor, start, error)
                failures.append((row, reason_of(error)))
                if self._stops:
                    break
                start = row + 1
            else:
                if not cursor[2]:
                    break
                start, cursor[2] = int(cursor[0]), 0
                stored = self._arrays(block, room, int(cursor[1]))
                room *= 2
                block = self._block(room)
                for new, old in zip(self._arrays(block, room, len(stored[0])), stored, strict=True):
                    new[:] = old
        if not cursor[1]:
            return self._no_results._replace(failures=failures)
        return self._results(self._arrays(block, room, int(cursor[1])), failures)

    def _block(self, room: int) -> Array:
        """Room for so many results."""
        return np.empty(max(room, 1) * self._width, np.uint8)

    def _arrays(self, block: Array, room: int, count: int) -> list[Array]:
        """The first elements of a block's arrays."""
        return [
            np.frombuffer(block, dtype, count, room * before)
            for dtype, before in zip(self._dtypes, self._before, strict=True)
        ]

    def _results(self, arrays: list[Array], failures: list[Failure]) -> Results:
        kernel, (sources, *columns) = self._kernel, arrays
        if kernel.form.returns is Returns.WHETHER:
            return Results(None, sources, failures)
        assert kernel.form.output is not None  # noqa: S101 - a filter's alone has none
        violations = columns.pop(0) if self._several else None
        output = Columns(kernel.form.output, len(sources), tuple(columns))
        if violations is not None and violations.any():
            failures += [
                (int(sources[result]), kernel.reasons[violations[result] - 1])
                for result in np.flatnonzero(violations).tolist()
            ]
            fit = np.flatnonzero(violations == 0)
            output, sources = output.take(fit), sources.take(fit)
        return Results(output, sources, failures)


def _row_at_work(cursor: Array, start: int, error: BaseException) -> int:
    """The row that raised. Raises where none did, for calling the kernel again would never end."""
    row = int(cursor[0])
    if row < start:
        raise AssertionError("the kernel did not start") from error
    return row


def _address(array: Array) -> int:
    # Takes a seventh of the time of numpy's own way.
    address: int = _buffer_of(array).address
    return address
