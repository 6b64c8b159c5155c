"""Stateful computations compiled by Numba: states in one numpy array, a record a key."""

import io
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
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
from bettong.worker.shapes import INCREMENT_KEYS, WHOLE_FROM, Migration


class CompiledFold:
    """`Stream.stateful` with `@bettong.compiled` functions. Same answers as PythonFold, at machine speed."""

    exact = True

    def __init__(self, node: Stateful, key: np.dtype[Any], kernels: dict[Schema, Kernel]) -> None:
        self.name = node.name
        self._node = node
        self._output = node.schema
        self._kernels = kernels
        self._state = schema_of(node.state)
        self._first = first_state(node)
        self._key = key
        self._table = KeyTable(words_per_key(key))
        self._states = self._fresh(0)
        # By slot: whether the state may have changed since the last increment, and whether the present round of
        # writing all again has yet to come to it. Without `_changed`, any may have.
        self._changed: Array | None = None
        self._waiting = np.zeros(0, np.bool_)

    def run(self, rows: Rows, letters: Letters) -> Rows:
        """See Operator. Folds the rows in order, each into the state of its key."""
        columns = rows.columns(self.name, letters)
        slots = self._table.slots(rows.key_column())
        self._make_room()
        if self._changed is not None:
            self._changed[slots] = True
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
            except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever the user's code raises is a dead letter
                failed = _row_at_work(cursor, start, error)
                letters.add(self.name, _with_text(error), rows.parent(failed))
                start = failed + 1
            else:
                break
        count = int(cursor[1])
        output = Columns(self._output, count, tuple(result[:count] for result in results))
        return rows.of_columns(output, sources[:count])

    def dump(self) -> bytes:
        """The states of all keys, in the order of the keys."""
        return self._written(np.lexsort(self._table.keys.T))

    def increment(self, *, begins: bool) -> bytes:
        """See Fold. Two arrays in numpy's own format: keys and states."""
        count, changed = self._table.count, self._changed
        written = np.flatnonzero(changed[:count]) if changed is not None else np.arange(0)
        if changed is None or count <= max(INCREMENT_KEYS, WHOLE_FROM * len(written)):
            data = self._written(slice(count))
            self._waiting = np.zeros(0, np.bool_)
        else:
            if begins:
                self._waiting = np.ones(count, np.bool_)
            self._waiting[written[written < len(self._waiting)]] = False
            others = np.flatnonzero(self._waiting)[: max(INCREMENT_KEYS, len(written))]
            self._waiting[others] = False
            data = self._written(np.concatenate([written, others]))
        self._changed = np.zeros(len(self._states), np.bool_) if count > INCREMENT_KEYS else None
        return data

    @property
    def settled(self) -> bool:
        """See Fold."""
        return not self._waiting.any()

    def load(self, data: bytes, *, begins: bool, migration: Migration | None = None) -> None:
        """See Fold."""
        file = io.BytesIO(data)
        try:
            keys = np.load(file, allow_pickle=False)
            states = np.load(file, allow_pickle=False)
        except (ValueError, EOFError, OSError) as error:
            raise SnapshotError(f"state of {self.name!r}: {error}") from None
        if migration and states.dtype.names:
            states = self._migrated(states, migration)
        shape = (len(states), self._table.words)
        if states.dtype != self._states.dtype or keys.dtype != np.uint64 or keys.shape != shape:
            raise SnapshotError(
                f"state of {self.name!r}: it has keys of {keys.shape[1:]} words and {states.dtype},"
                f" expected {self._table.words} and {self._states.dtype}"
            )
        if begins:
            self._waiting = np.ones(self._table.count, np.bool_)
        slots = self._table.slots_of(np.ascontiguousarray(keys))
        self._make_room()
        self._states[slots] = states
        self._waiting[slots[slots < len(self._waiting)]] = False
        tracked = self._table.count > INCREMENT_KEYS and not migration
        self._changed = np.zeros(len(self._states), np.bool_) if tracked else None

    def _written(self, slots: Array | slice) -> bytes:
        file = io.BytesIO()
        np.save(file, self._table.keys[slots], allow_pickle=False)
        np.save(file, self._states[slots], allow_pickle=False)
        return file.getvalue()

    def _migrated(self, states: Array, migration: Migration) -> Any:
        names = states.dtype.names or ()
        made = [migration(SimpleNamespace(**dict(zip(names, each, strict=True)))) for each in states.tolist()]
        return records_of(self._node, made)

    def _make_room(self) -> None:
        """As many states as the table has keys, and as many marks as states."""
        if self._table.count > len(self._states):
            fresh = self._fresh(len(self._states))
            self._states = np.concatenate([self._states, fresh])
            if self._changed is not None:
                self._changed = np.concatenate([self._changed, np.zeros(len(fresh), np.bool_)])

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
        schema_of(node.state)
        return records_of(node, [node.state()])
    except (SchemaError, TypeError) as error:
        raise ApplicationError(f"compiled {node.name!r}: state: {error}") from None


def records_of(node: Stateful, states: list[Any]) -> Any:
    """States of the computation as records. Raises ApplicationError for what cannot be one."""
    try:
        schema = schema_of(node.state)
        _check_fixed(node, schema)
        values = Columns.of_messages(schema, states)
    except SchemaError as error:
        raise ApplicationError(f"compiled {node.name!r}: state: {error}") from None
    records = np.zeros(len(states), state_dtype(schema))
    for field, column in zip(schema.fields, values.columns, strict=True):
        records[field.name] = column
    return records


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
