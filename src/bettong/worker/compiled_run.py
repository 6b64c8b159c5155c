"""Runs kernels over the rows of a frame, and the compiled computations without state: map, filter, flat_map."""

import numpy as np
import pyarrow as pa

from bettong.application.on_error import ANY_ERROR
from bettong.application.schema import Schema
from bettong.application.streams import Stateless
from bettong.frames.columns import Array, Columns
from bettong.worker.kernel import Gives, Kernel
from bettong.worker.letters import Letters
from bettong.worker.rows import Rows

# Rows of results that there is room for at first where a message may have several; doubled as often as it needs.
_ROOM_MIN = 256


class CompiledOperator:
    """`Stream.map`, `filter` and `flat_map` of a compiled function."""

    def __init__(self, node: Stateless, kernels: dict[Schema, Kernel]) -> None:
        self.name = node.name
        self._kernels = kernels

    def run(self, rows: Rows, letters: Letters) -> Rows:
        """See Operator."""
        columns = rows.columns(self.name, letters)
        return run_kernel(self._kernels[columns.schema], self.name, rows, columns, letters)


def run_kernel(
    kernel: Kernel,
    name: str,
    rows: Rows,
    columns: Columns,
    letters: Letters,
    *,
    states: tuple[Array, ...] = (),
    keys: int = 0,
) -> Rows:
    """The rows that a kernel makes of `columns`, which are those of `rows`. `states`: slots, states and a spare one."""
    several = kernel.form.gives is Gives.MANY
    cursor = np.array([-1, 0, 0])
    made = _Made(kernel, max(columns.length, _ROOM_MIN) if several else columns.length)
    # The kernel takes addresses: these names keep the arrays alive while it runs.
    taken = [np.ascontiguousarray(column) for column in columns.columns]
    given = [_address(array) for array in (*taken, *states, cursor)]
    start = 0
    while start < columns.length:
        try:
            kernel.call(start, columns.length, made.room, keys, *given, *map(_address, made.arrays))
        except ANY_ERROR as error:
            failed = _row_at_work(cursor, start, error)
            letters.add(name, _with_text(error), rows.parent(failed))
            start = failed + 1
        else:
            if not cursor[2]:
                break
            start, cursor[2] = int(cursor[0]), 0
            made = _Made(kernel, 2 * made.room, made)
    count = int(cursor[1])
    if kernel.form.gives is Gives.WHETHER:
        kept = made.sources[:count]
        return (
            rows.of_columns(columns, None)
            if count == columns.length
            else rows.of_columns(columns.take(kept), kept)
        )
    return _output(kernel, name, rows, letters, made, count)


class _Made:
    """Where a kernel stores results."""

    def __init__(self, kernel: Kernel, room: int, before: "_Made | None" = None) -> None:
        self.room = room
        self.sources = np.empty(room, np.int64)
        self.misfits = np.empty(room if kernel.form.gives is Gives.MANY else 1, np.uint8)
        self.results = [np.empty(room, field.dtype) for field in kernel.form.results]
        for old, new in zip(before.arrays if before else (), self.arrays, strict=False):
            new[: len(old)] = old

    @property
    def arrays(self) -> tuple[Array, ...]:
        return (self.sources, self.misfits, *self.results)


def _output(kernel: Kernel, name: str, rows: Rows, letters: Letters, made: _Made, count: int) -> Rows:
    assert kernel.form.output is not None  # noqa: S101 - a filter's alone has none
    output = Columns(kernel.form.output, count, tuple(result[:count] for result in made.results))
    sources = made.sources[:count]
    if kernel.form.gives is Gives.MANY and made.misfits[:count].any():
        for place in np.flatnonzero(made.misfits[:count]).tolist():
            letters.add(name, kernel.reasons[made.misfits[place] - 1], rows.parent(int(sources[place])))
        fit = np.flatnonzero(made.misfits[:count] == 0)
        output, sources = output.take(fit), sources.take(fit)
    return rows.of_columns(output, sources)


def _row_at_work(cursor: Array, start: int, error: BaseException) -> int:
    """The row that raised. Raises when no row did, for then going on would never end."""
    row = int(cursor[0])
    if row < start:
        raise AssertionError("the kernel did not start") from error
    return row


def _address(array: Array) -> int:
    # A third of the time that numpy takes to tell it.
    address: int = pa.py_buffer(array).address
    return address


def _with_text(error: BaseException) -> BaseException:
    """The exception as plain Python would raise it: compiled, text constants are bytes."""
    error.args = tuple(each.decode() if isinstance(each, bytes) else each for each in error.args)
    return error
