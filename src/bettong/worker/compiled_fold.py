"""Stateful computations compiled by Numba: states in one numpy array, a record a key."""

import io
from pathlib import Path
from typing import Any

import numpy as np

from bettong.application.schema import Schema, schema_of
from bettong.application.streams import Stateful
from bettong.errors import ApplicationError, SchemaError, SnapshotError
from bettong.frames.columns import Columns
from bettong.worker.kernel import Kernel, compile_kernel, state_dtype
from bettong.worker.key_table import KeyTable, words_per_key
from bettong.worker.letters import Letters
from bettong.worker.rows import Rows


class CompiledFold:
    """`Stream.stateful` with `@bettong.compiled` functions. Same answers as PythonFold, at machine speed."""

    def __init__(self, node: Stateful, key: np.dtype[Any], kernels: dict[Schema, Kernel]) -> None:
        if node.schema is None:
            raise ApplicationError(f"{node.name!r} has no schema of its own")
        self.name = node.name
        self._output: Schema = node.schema
        self._kernels = kernels
        self._first = first_state(node)
        self._table = KeyTable(words_per_key(key))
        self._states = self._fresh(0)

    def run(self, rows: Rows, letters: Letters) -> Rows:
        """See Operator. Folds the rows in order, each into the state of its key."""
        columns = rows.columns(self.name, letters)
        slots = self._table.slots(rows.key_column())
        if self._table.count > len(self._states):
            self._states = np.concatenate([self._states, self._fresh(len(self._states))])
        kernel = self._kernels[columns.schema]
        cursor = np.zeros(2, np.int64)
        sources = np.empty(columns.length, np.int64)
        results = [np.empty(columns.length, field.dtype) for field in self._output.fields]
        start = 0
        while start < columns.length:
            try:
                kernel(start, *columns.columns, slots, self._states, cursor, sources, *results)
            except Exception as error:  # noqa: BLE001 - whatever the user's code raises is a dead letter
                letters.add(self.name, error, rows.parent(int(cursor[0])))
                start = int(cursor[0]) + 1
            else:
                break
        count = int(cursor[1])
        output = Columns(self._output, count, tuple(result[:count] for result in results))
        return rows.of_columns(output, sources[:count])

    def dump(self) -> bytes:
        """The states of all keys: two arrays in numpy's own format."""
        file = io.BytesIO()
        np.save(file, self._table.keys, allow_pickle=False)
        np.save(file, self._states[: self._table.count], allow_pickle=False)
        return file.getvalue()

    def load(self, data: bytes) -> None:
        """Takes over states that `dump` wrote. Raises SnapshotError when they are of another layout."""
        file = io.BytesIO(data)
        try:
            keys = np.load(file, allow_pickle=False)
            states = np.load(file, allow_pickle=False)
        except ValueError as error:
            raise SnapshotError(f"state of {self.name!r}: {error}") from None
        if states.dtype != self._states.dtype or len(keys) != len(states):
            raise SnapshotError(f"state of {self.name!r}: it has {states.dtype}, expected {self._states.dtype}")
        self._table.load(keys)
        self._states = np.concatenate([states, self._fresh(len(states))])

    @property
    def keys(self) -> int:
        """How many keys have a state."""
        return self._table.count

    def _fresh(self, held: int) -> Any:
        """New states: enough to double those held, and never fewer than the table's next keys."""
        return np.repeat(self._first, max(held, 2 * self._table.count, 1024))


def first_state(node: Stateful) -> Any:
    """The record that a new key starts with. Raises ApplicationError when the state cannot be one."""
    try:
        if not isinstance(node.state, type):
            raise SchemaError(f"{node.state!r} is no dataclass")
        schema = schema_of(node.state)
        values = Columns.of_messages(schema, [node.state()])
        record = np.zeros(1, state_dtype(schema))
    except (SchemaError, TypeError) as error:
        raise ApplicationError(f"compiled {node.name!r}: state: {error}") from None
    for field, column in zip(schema.fields, values.columns, strict=True):
        record[field.name] = column
    return record


def compile_node(node: Stateful, *, cache: Path | None) -> dict[Schema, Kernel]:
    """The kernels of a stateful computation, one a schema that it takes. Slow (seconds) unless `cache` has them.

    Raises ApplicationError when a schema, the state or a function cannot be compiled.
    """
    if node.many:
        raise ApplicationError(f"compiled {node.name!r}: must return one message or None, not an iterable")
    if node.schema is None:
        raise ApplicationError(f"{node.name!r} has no schema of its own")
    first_state(node)
    for schema in (*node.handlers, node.schema):
        if not schema.fixed:
            try:
                _ = schema.dtype
            except SchemaError as error:
                raise ApplicationError(f"compiled {node.name!r}: {error}") from None
    state = schema_of(node.state)  # type: ignore[arg-type]  # first_state checked that it is a class
    return {
        schema: compile_kernel(function, schema, state, node.schema, cache=cache)
        for schema, function in node.handlers.items()
    }
