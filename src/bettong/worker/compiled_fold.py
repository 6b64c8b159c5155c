"""Stateful computations compiled by Numba: states in one numpy array, a record a key."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bettong.application.fields import Kind
from bettong.application.schema import Schema, schema_of
from bettong.application.streams import Stateful
from bettong.errors import ApplicationError, SchemaError, SnapshotError
from bettong.frames.columns import Array, Columns
from bettong.worker.kernel import Kernel, compile_kernel, state_dtype
from bettong.worker.key_table import KeyTable, words_per_key
from bettong.worker.letters import Letters
from bettong.worker.plain import plain
from bettong.worker.rows import Rows


class CompiledFold:
    """`Stream.stateful` with `@bettong.compiled` functions. Same answers as PythonFold, at machine speed."""

    exact = True

    def __init__(self, node: Stateful, key: np.dtype[Any], kernels: dict[Schema, Kernel]) -> None:
        self.name = node.name
        self._output = node.schema
        self._kernels = kernels
        self._state = schema_of(node.state)
        self._first = first_state(node)
        self._key = key
        self._table = KeyTable(words_per_key(key))
        self._states = self._fresh(0)

    def run(self, rows: Rows, letters: Letters) -> Rows:
        """See Operator. Folds the rows in order, each into the state of its key."""
        columns = rows.columns(self.name, letters)
        slots = self._table.slots(rows.key_column())
        if self._table.count > len(self._states):
            self._states = np.concatenate([self._states, self._fresh(len(self._states))])
        cursor = np.array([-1, 0])
        sources = np.empty(columns.length, np.int64)
        results = [np.empty(columns.length, field.dtype) for field in self._output.fields]
        # The kernel takes addresses: these names keep the arrays alive while it runs.
        taken = [np.ascontiguousarray(column) for column in columns.columns]
        addresses = [_address(array) for array in (*taken, slots, self._states, cursor, sources, *results)]
        kernel, start = self._kernels[columns.schema], 0
        while start < columns.length:
            try:
                kernel(start, columns.length, self._table.count, *addresses)
            except Exception as error:  # noqa: BLE001 - whatever the user's code raises is a dead letter
                failed = _row_at_work(cursor, start, error)
                letters.add(self.name, _with_text(error), rows.parent(failed))
                start = failed + 1
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
        except (ValueError, EOFError, OSError) as error:
            raise SnapshotError(f"state of {self.name!r}: {error}") from None
        shape = (len(states), self._table.words)
        if states.dtype != self._states.dtype or keys.dtype != np.uint64 or keys.shape != shape:
            raise SnapshotError(
                f"state of {self.name!r}: it has keys of {keys.shape[1:]} words and {states.dtype},"
                f" expected {self._table.words} and {self._states.dtype}"
            )
        self._table.load(keys)
        self._states = np.concatenate([states, self._fresh(len(states))])

    @property
    def keys(self) -> int:
        """How many keys have a state."""
        return self._table.count

    def state_of(self, key: str | int | bytes) -> Any:
        """See Fold."""
        column = key_column(key, self._key)
        slot = self._table.find(column) if column is not None else None
        return None if slot is None else self._plain(slot)

    def items(self) -> Iterator[tuple[str | int | bytes, Any]]:
        """See Fold."""
        words = np.ascontiguousarray(self._table.keys)
        if self._key.kind == "S":
            keys = words.view(f"S{words.itemsize * self._table.words}")
        else:
            keys = words.view(np.uint64 if self._key == np.uint64 else np.int64)
        return ((key, self._plain(slot)) for slot, key in enumerate(keys.ravel().tolist()))

    def _plain(self, slot: int) -> Any:
        """A state as JSON can hold it."""
        record = self._states[slot]
        values = {field.name: record[field.name].item() for field in self._state.fields}
        for field in self._state.fields:
            if field.kind is Kind.TEXT:
                values[field.name] = values[field.name].decode("utf-8", "replace")
        return plain(values)

    def _fresh(self, held: int) -> Any:
        """New states: enough to double those held, and never fewer than the table's next keys."""
        return np.repeat(self._first, max(held, 2 * self._table.count, 1024))


def first_state(node: Stateful) -> Any:
    """The record that a new key starts with. Raises ApplicationError when the state cannot be one."""
    try:
        schema = schema_of(node.state)
        _check_fixed(node, schema)
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
    first_state(node)
    state = schema_of(node.state)
    for schema in (*node.handlers, node.schema):
        _check_fixed(node, schema)
    return {
        schema: compile_kernel(function, schema, state, node.schema, cache=cache)
        for schema, function in node.handlers.items()
    }


def key_column(key: str | int | bytes, dtype: np.dtype[Any]) -> Array | None:
    """A key as a column of one row; None for one that no message of that type can have."""
    if dtype.kind == "S" and not isinstance(key, int):
        data = (key.encode() if isinstance(key, str) else key).rstrip(b"\0")
        return np.array([data], dtype) if len(data) <= dtype.itemsize else None
    if dtype.kind in "iu" and isinstance(key, int):
        limits = np.iinfo(dtype)
        return np.array([key], dtype) if limits.min <= key <= limits.max else None
    return None


def _check_fixed(node: Stateful, schema: Schema) -> None:
    if loose := [field.name for field in schema.fields if field.dtype is None]:
        raise ApplicationError(
            f"compiled {node.name!r}: {schema.name}: {', '.join(loose)} has no fixed width;"
            " use Annotated[str, Width(n)] or Annotated[bytes, Width(n)]"
        )


def _row_at_work(cursor: Array, start: int, error: Exception) -> int:
    """The row that raised. Raises when no row did, for then going on would never end."""
    row = int(cursor[0])
    if row < start:
        raise AssertionError("the kernel did not start") from error
    return row


def _address(array: Array) -> int:
    # A third of the time that numpy takes to tell it.
    address: int = pa.py_buffer(array).address
    return address


def _with_text(error: Exception) -> Exception:
    """The exception as plain Python would raise it: compiled, text constants are bytes."""
    error.args = tuple(each.decode() if isinstance(each, bytes) else each for each in error.args)
    return error
