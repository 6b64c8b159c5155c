"""Stateful computations compiled by Numba: states in one numpy array, a record a key."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bettong.application.schema import Schema, schema_of
from bettong.application.streams import Stateful
from bettong.errors import ApplicationError
from bettong.frames.columns import Array, Columns
from bettong.worker.kernel import Kernel, compile_kernel
from bettong.worker.letters import Letters
from bettong.worker.rows import Rows
from bettong.worker.state_array import StateArray, check_fixed, first_state


class CompiledFold(StateArray):
    """`Stream.stateful` with `@bettong.compiled` functions. Same answers as PythonFold, at machine speed."""

    def __init__(self, node: Stateful, key: np.dtype[Any], kernels: dict[Schema, Kernel]) -> None:
        super().__init__(node, key)
        self._output = node.schema
        self._kernels = kernels

    def run(self, rows: Rows, letters: Letters) -> Rows:
        """See Operator. Folds the rows in order, each into the state of its key."""
        columns = rows.columns(self.name, letters)
        slots = self.slots(rows.key_column())
        cursor = np.array([-1, 0])
        sources = np.empty(columns.length, np.int64)
        results = [np.empty(columns.length, field.dtype) for field in self._output.fields]
        # The kernel takes addresses: these names keep the arrays alive while it runs.
        taken = [np.ascontiguousarray(column) for column in columns.columns]
        addresses = [_address(array) for array in (*taken, slots, self.states, cursor, sources, *results)]
        kernel, start = self._kernels[columns.schema], 0
        while start < columns.length:
            try:
                kernel(start, columns.length, self.keys, *addresses)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever the user's code raises is a dead letter
                failed = _row_at_work(cursor, start, error)
                letters.add(self.name, _with_text(error), rows.parent(failed))
                start = failed + 1
            else:
                break
        count = int(cursor[1])
        output = Columns(self._output, count, tuple(result[:count] for result in results))
        return rows.of_columns(output, sources[:count])


def compile_node(node: Stateful, *, cache: Path | None) -> dict[Schema, Kernel]:
    """The kernels of a stateful computation, one a schema that it takes. Slow (seconds) unless `cache` has them.

    Raises ApplicationError when a schema, the state or a function cannot be compiled.
    """
    if node.many:
        raise ApplicationError(f"compiled {node.name!r}: must return one message or None, not an iterable")
    first_state(node)
    state = schema_of(node.state)
    for schema in (*node.handlers, node.schema):
        check_fixed(node, schema)
    return {
        schema: compile_kernel(function, schema, state, node.schema, cache=cache)
        for schema, function in node.handlers.items()
    }


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
