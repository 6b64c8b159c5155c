"""The states of one partition as one numpy array, a record a key: what folds over columns keep."""

import io
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from bettong.application.fields import Kind
from bettong.application.schema import Schema, schema_of
from bettong.application.streams import Stateful
from bettong.errors import ApplicationError, SchemaError, SnapshotError
from bettong.frames.columns import Array, Columns
from bettong.worker.batch import Batch
from bettong.worker.jsonable import to_jsonable
from bettong.worker.state.key_table import KeyTable, words_per_key
from bettong.worker.state.shapes import INCREMENT_KEYS, WHOLE_FROM, Migration


class Records(NamedTuple):
    """The states of a batch's rows: row i has that at `slots[i]` of `states`, whose first `keys` are in use."""

    slots: Array
    states: Array
    keys: int


class RecordTable:
    """One record of an array a key. See StateTable."""

    def __init__(self, node: Stateful, key: np.dtype[Any]) -> None:
        self.name = node.name
        self._node = node
        self._first = first_state(node)
        self._state = schema_of(node.state)
        self._key = key
        self._table = KeyTable(words_per_key(key))
        self.states = self._fresh(0)
        # By slot: whether the state may have changed since the last increment, and whether the present round of
        # writing all again has yet to come to it. Without `_changed`, any may have.
        self._changed: Array | None = None
        self._waiting = np.zeros(0, np.bool_)

    def open(self, batch: Batch) -> Records:
        """See StateTable. New keys get a first state."""
        slots = self._table.slots(batch.key_column())
        self._make_room()
        if self._changed is not None:
            self._changed[slots] = True
        return Records(slots, self.states, self._table.count)

    def dump(self, place: bytes = b"") -> bytes:  # noqa: ARG002 - arrays of numbers are not signed
        """The states of all keys, in the order of the keys."""
        return self._written(np.lexsort(self._table.keys.T))

    def increment(self, *, begins: bool, place: bytes = b"") -> bytes:  # noqa: ARG002
        """See StateTable. Two arrays in numpy's own format: keys and states."""
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
        self._changed = np.zeros(len(self.states), np.bool_) if count > INCREMENT_KEYS else None
        return data

    @property
    def settled(self) -> bool:
        """See StateTable."""
        return not self._waiting.any()

    def load(
        self,
        data: bytes,
        *,
        begins: bool,
        migration: Migration | None = None,
        place: bytes = b"",  # noqa: ARG002
    ) -> None:
        """See StateTable."""
        file = io.BytesIO(data)
        try:
            keys = np.load(file, allow_pickle=False)
            states = np.load(file, allow_pickle=False)
        except (ValueError, EOFError, OSError) as error:
            raise SnapshotError(f"state of {self.name!r}: {error}") from None
        if migration and states.dtype.names:
            states = self._migrated(states, migration)
        shape = (len(states), self._table.words)
        if states.dtype != self.states.dtype or keys.dtype != np.uint64 or keys.shape != shape:
            raise SnapshotError(
                f"state of {self.name!r}: it has keys of {keys.shape[1:]} words and {states.dtype},"
                f" expected {self._table.words} and {self.states.dtype}"
            )
        if begins:
            self._waiting = np.ones(self._table.count, np.bool_)
        slots = self._table.slots_of(np.ascontiguousarray(keys))
        self._make_room()
        self.states[slots] = states
        self._waiting[slots[slots < len(self._waiting)]] = False
        tracked = self._table.count > INCREMENT_KEYS and not migration
        self._changed = np.zeros(len(self.states), np.bool_) if tracked else None

    def _written(self, slots: Array | slice) -> bytes:
        file = io.BytesIO()
        np.save(file, self._table.keys[slots], allow_pickle=False)
        np.save(file, self.states[slots], allow_pickle=False)
        return file.getvalue()

    def _migrated(self, states: Array, migration: Migration) -> Any:
        names = states.dtype.names or ()
        made = [migration(SimpleNamespace(**dict(zip(names, each, strict=True)))) for each in states.tolist()]
        return records_of(self._node, made)

    def _make_room(self) -> None:
        """As many states as the table has keys, and as many marks as states."""
        if self._table.count > len(self.states):
            fresh = self._fresh(len(self.states))
            self.states = np.concatenate([self.states, fresh])
            if self._changed is not None:
                self._changed = np.concatenate([self._changed, np.zeros(len(fresh), np.bool_)])

    @property
    def keys(self) -> int:
        """How many keys have a state."""
        return self._table.count

    def state_of(self, key: str | int | bytes) -> Any:
        """See StateTable."""
        column = key_column(key, self._key)
        slot = self._table.find(column) if column is not None else None
        return None if slot is None else self._plain(slot)

    def items(self) -> Iterator[tuple[str | int | bytes, Any]]:
        """See StateTable."""
        words = np.ascontiguousarray(self._table.keys)
        if self._key.kind == "S":
            keys = words.view(f"S{words.itemsize * self._table.words}")
        else:
            keys = words.view(np.uint64 if self._key == np.uint64 else np.int64)
        return ((key, self._plain(slot)) for slot, key in enumerate(keys.ravel().tolist()))

    def _plain(self, slot: int) -> Any:
        """A state as JSON can hold it."""
        record = self.states[slot]
        values = {field.name: record[field.name].item() for field in self._state.fields}
        for field in self._state.fields:
            if field.kind is Kind.TEXT:
                values[field.name] = values[field.name].decode("utf-8", "replace")
        return to_jsonable(values)

    def _fresh(self, held: int) -> Any:
        """New states: enough to double those held, and never fewer than the table's next keys."""
        return np.repeat(self._first, max(held, 2 * self._table.count, 1024))


def first_state(node: Stateful) -> Any:
    """The record that a new key starts with. Raises ApplicationError when the state cannot be one."""
    try:
        schema_of(node.state)
        return records_of(node, [node.state()])
    except (SchemaError, TypeError) as error:
        raise ApplicationError(f"{node.way.value} {node.name!r}: state: {error}") from None


def records_of(node: Stateful, states: list[Any]) -> Any:
    """States of the computation as records. Raises ApplicationError for what cannot be one."""
    try:
        schema = schema_of(node.state)
        check_fixed(node.way.value, node.name, schema)
        values = Columns.of_messages(schema, states)
    except SchemaError as error:
        raise ApplicationError(f"{node.way.value} {node.name!r}: state: {error}") from None
    records = np.zeros(len(states), state_dtype(schema))
    for field, column in zip(schema.fields, values.columns, strict=True):
        records[field.name] = column
    return records


def state_dtype(schema: Schema) -> np.dtype[Any]:
    """The record of one key's state: numbers as wide as Python's arithmetic needs them."""
    wide = {Kind.INT: np.dtype("<i8"), Kind.FLOAT: np.dtype("<f8"), Kind.BOOL: np.dtype("?")}
    return np.dtype([(field.name, wide.get(field.kind, field.dtype)) for field in schema.fields], align=True)


def key_column(key: str | int | bytes, dtype: np.dtype[Any]) -> Array | None:
    """A key as a column of one row; None for one that no message of that type can have."""
    if dtype.kind == "S" and not isinstance(key, int):
        data = (key.encode() if isinstance(key, str) else key).rstrip(b"\0")
        return np.array([data], dtype) if len(data) <= dtype.itemsize else None
    if dtype.kind in "iu" and isinstance(key, int):
        limits = np.iinfo(dtype)
        return np.array([key], dtype) if limits.min <= key <= limits.max else None
    return None


def check_fixed(way: str, name: str, schema: Schema) -> None:
    """Raises ApplicationError for fields whose width varies."""
    if loose := [field.name for field in schema.fields if field.dtype is None]:
        raise ApplicationError(
            f"{way} {name!r}: {schema.name}: {', '.join(loose)} has no fixed width;"
            " use Annotated[str, Width(n)] or Annotated[bytes, Width(n)]"
        )
