"""The states of one partition as one numpy array, a record a key: what folds over columns keep."""

import io
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from bettong.application.lifetime import Lifetime
from bettong.application.streams import Stateful
from bettong.application.timers import Clock, StateTimer
from bettong.errors import ApplicationError, SchemaError, SnapshotError
from bettong.frames.columns import Array, Columns
from bettong.schema.fields import Kind
from bettong.schema.key_types import KeyValue
from bettong.schema.schema import Schema, schema_of
from bettong.worker.batch import Batch
from bettong.worker.due import Due
from bettong.worker.fired import DueTimers, fired_schema, rows_of_column
from bettong.worker.jsonable import to_jsonable
from bettong.worker.state.event_lifetimes import EventSlotLifetimes
from bettong.worker.state.key_table import KeyTable, words_per_key
from bettong.worker.state.lifetimes import SlotLifetimes, stored_clocks
from bettong.worker.state.shapes import INCREMENT_KEYS, WHOLE_FROM, Migration
from bettong.worker.state.table import SavedStates
from bettong.worker.state.timers import SlotTimers, without_never


class Records(NamedTuple):
    """The states of a batch's rows: row i has that at `slots[i]` of `states`, whose first `keys` are in use."""

    slots: Array
    states: Array
    keys: int
    table: "RecordTable"


class RecordTable:
    """One record of an array a key. See StateTable."""

    def __init__(self, node: Stateful, key: np.dtype[Any], kind: Kind | None = None) -> None:
        """`kind`: of the key; text or an integer when it is not told."""
        self.name = node.name
        # What the functions of timers take.
        self.fired = fired_schema(kind or (Kind.TEXT if key.kind == "S" else Kind.INT), key)
        self._node = node
        # The state of a new key, an array of one.
        self.first = first_state(node)
        self._state = schema_of(node.state)
        self._key = key
        self._table = KeyTable(words_per_key(key))
        self.states = self._fresh(0)
        self._deleted = 0
        # By slot: whether the state may have changed since the last increment, and whether the present round of
        # writing all again has yet to come to it. Without `_changed`, any may have.
        self._changed: Array | None = None
        self._waiting = np.zeros(0, np.bool_)
        # By slot, where states can end: whether increments hold its key. And the words of such keys whose states have
        # ended since the last one.
        self._stored = np.zeros(0, np.bool_)
        self._ended: list[Array] = []
        self._ends = node.lifetime is not None or node.delete_when is not None
        self._lifetimes = _lifetimes(node.lifetime)
        self._timers = SlotTimers(node.timers) if node.timers else None

    def open(self, batch: Batch, *, renews: bool = True) -> Records:
        """See StateTable. New keys get a first state."""
        slots = self._table.slots(batch.key_column())
        self._make_room()
        if renews and self._lifetimes is not None:
            if isinstance(self._lifetimes, EventSlotLifetimes):
                self._lifetimes.renew(slots, batch.event_times())
            else:
                self._lifetimes.renew(slots)
        if self._timers is not None:
            self._timers.note(slots, self.states)
        if self._changed is not None:
            self._changed[slots] = True
        return Records(slots, self.states, self._table.count, self)

    def delete(self, batch: Batch, slots: Array, rows: Array) -> None:
        """The states at `slots[rows]` ended with those rows of a batch; they go on where a later row made a new one."""
        self._deleted += len(rows)
        if isinstance(self._lifetimes, EventSlotLifetimes):
            ends = np.full(len(self.states), len(slots))
            ends[slots[rows]] = rows
            behind = np.flatnonzero(ends[slots] < np.arange(len(slots)))
            if len(behind):
                self._lifetimes.restart(slots[behind], batch.event_times()[behind])
        last = np.empty(len(self.states), np.int64)
        last[slots] = np.arange(len(slots))
        ended = slots[rows]
        self._end(ended[last[ended] == rows])

    @property
    def due(self) -> Due:
        """See StateTable."""
        return self._timers.due(self.states) if self._timers is not None else Due()

    def take_due(self, log_ns: int, watermark_ns: int) -> list[DueTimers]:
        """See StateTable."""
        while self._timers is not None:
            slots, at_ns, timers = self._timers.take(log_ns, watermark_ns, self.states)
            if not len(slots):
                break
            if self._changed is not None:
                self._changed[slots] = True
            found = []
            for number, timer in enumerate(self._node.timers):
                own = np.flatnonzero(timers == number)
                own = own[~self._outlives(slots[own], at_ns[own], timer)]
                if len(own):
                    keys, times = self._keys_at(slots[own]).astype(self.fired.fields[0].dtype), at_ns[own]
                    order = np.lexsort((keys, times))
                    rows = rows_of_column(self.fired, keys[order], times[order])
                    found.append(DueTimers(timer.field, rows))
            if found:
                return found
        return []

    def _outlives(self, slots: Array, at_ns: Array, timer: StateTimer) -> Array:
        """Which timers are due after their states have ended, though both have come with the same record."""
        lifetime, lifetimes = self._node.lifetime, self._lifetimes
        if lifetime is None or lifetimes is None or lifetime.clock is not timer.clock:
            return np.zeros(len(slots), np.bool_)
        return np.asarray(at_ns > lifetimes.ends_ns(slots))

    def take_deleted(self) -> int:
        """See StateTable."""
        deleted, self._deleted = self._deleted, 0
        return deleted

    def note_clock(self, clock_ns: int) -> None:
        """See StateTable."""
        if isinstance(self._lifetimes, SlotLifetimes):
            self._lifetimes.note_clock(clock_ns)

    def expire(self, clock_ns: int) -> int:
        """See StateTable."""
        if self._lifetimes is None:
            return 0
        expired = self._lifetimes.expired(clock_ns)
        self._end(expired)
        return len(expired)

    @property
    def due_ns(self) -> int | None:
        """See StateTable."""
        return self._lifetimes.due_ns if self._lifetimes is not None else None

    def _end(self, slots: Array) -> None:
        """The states at these slots, each given once, end."""
        known = slots[slots < len(self._stored)]
        # Nobody knows of the others: so there are no more than the last increment has keys.
        known = known[self._stored[known]]
        if len(known):
            self._ended.append(self._table.keys[known])
        self._drop(slots)

    def _drop(self, slots: Array) -> None:
        """The keys at these slots are gone, and the slots as new."""
        if not len(slots):
            return
        self._table.remove(slots)
        self.states[slots] = self.first[0]
        if self._changed is not None:
            self._changed[slots] = False
        self._waiting[slots[slots < len(self._waiting)]] = False
        self._stored[slots[slots < len(self._stored)]] = False
        if self._lifetimes is not None:
            self._lifetimes.forget(slots)

    def dump(self, place: bytes = b"") -> SavedStates:  # noqa: ARG002 - arrays of numbers are not signed
        """The states of all keys, in the order of the keys."""
        slots = self._table.in_use()
        return self._saved(slots[np.lexsort(self._table.keys[slots].T)])

    def increment(self, *, begins: bool, place: bytes = b"") -> SavedStates:  # noqa: ARG002
        """See StateTable. Two arrays in numpy's own format: keys and states."""
        count, live, changed = self._table.count, self._table.live, self._changed
        written = np.flatnonzero(changed[:count]) if changed is not None else np.arange(0)
        if changed is None or live <= max(INCREMENT_KEYS, WHOLE_FROM * len(written)):
            saved = self._saved(slice(count) if live == count else self._table.in_use())
            self._waiting = np.zeros(0, np.bool_)
        else:
            if begins:
                self._waiting = self._table.used()
            self._waiting[written[written < len(self._waiting)]] = False
            others = np.flatnonzero(self._waiting)[: max(INCREMENT_KEYS, len(written))]
            self._waiting[others] = False
            saved = self._saved(np.concatenate([written, others]))
        saved = saved._replace(ended=_bytes_of(np.concatenate(self._ended)) if self._ended else b"")
        self._note_stored()
        self._changed = np.zeros(len(self.states), np.bool_) if live > INCREMENT_KEYS else None
        return saved

    @property
    def settled(self) -> bool:
        """See StateTable."""
        return not self._waiting.any()

    def load(
        self,
        data: SavedStates,
        *,
        log_ns: int,
        begins: bool,
        migration: Migration | None = None,
        place: bytes = b"",  # noqa: ARG002
    ) -> None:
        """See StateTable."""
        file = io.BytesIO(data.states)
        try:
            keys = np.load(file, allow_pickle=False)
            states = np.load(file, allow_pickle=False)
            ended = np.load(io.BytesIO(data.ended), allow_pickle=False) if data.ended else keys[:0]
            by_event = isinstance(self._lifetimes, EventSlotLifetimes)
            last_ns = (
                stored_clocks(data.last_ns, len(keys), log_ns, by_event=by_event) if self._lifetimes else None
            )
        except (ValueError, TypeError, EOFError, OSError) as error:
            raise SnapshotError(f"state of {self.name!r}: {error}") from None
        if migration and states.dtype.names:
            states = self._migrated(states, migration)
        shape = (len(states), self._table.words)
        if states.dtype != self.states.dtype or keys.dtype != np.uint64 or keys.shape != shape:
            raise SnapshotError(
                f"state of {self.name!r}: it has keys of {keys.shape[1:]} words and {states.dtype},"
                f" expected {self._table.words} and {self.states.dtype}"
            )
        if ended.dtype != np.uint64 or ended.shape[1:] != keys.shape[1:]:
            raise SnapshotError(
                f"state of {self.name!r}: it ends keys of {ended.shape[1:]} words of {ended.dtype}"
            )
        gone = self._table.find_of(np.ascontiguousarray(ended))
        self._drop(np.unique(gone[gone >= 0]))
        if begins:
            self._waiting = self._table.used()
        slots = self._table.slots_of(np.ascontiguousarray(keys))
        self._make_room()
        self.states[slots] = states
        if self._timers is not None:
            self._timers.rebuild()
        self._waiting[slots[slots < len(self._waiting)]] = False
        if self._lifetimes is not None and last_ns is not None:
            self._lifetimes.load(slots, last_ns)
        self._note_stored()
        tracked = self._table.live > INCREMENT_KEYS and not migration
        self._changed = np.zeros(len(self.states), np.bool_) if tracked else None

    def _saved(self, slots: Array | slice) -> SavedStates:
        last_ns = self._lifetimes.dump(slots) if self._lifetimes is not None else b""
        return SavedStates(_bytes_of(self._table.keys[slots], self.states[slots]), last_ns=last_ns)

    def _note_stored(self) -> None:
        """All keys are in increments, and none of those has ended."""
        self._ended = []
        if self._ends:
            self._stored = self._table.used()

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
        if self._lifetimes is not None:
            self._lifetimes.grow(len(self.states))

    @property
    def keys(self) -> int:
        """How many keys have a state."""
        return self._table.live

    def state_of(self, key: KeyValue) -> Any:
        """See StateTable."""
        column = key_column(key, self._key)
        slots = self._table.find(column) if column is not None else np.full(1, -1)
        return self._plain(int(slots[0])) if slots[0] >= 0 else None

    def items(self) -> Iterator[tuple[KeyValue, Any]]:
        """See StateTable."""
        slots = self._table.in_use()
        keys = self._keys_at(slots).tolist()
        return ((key, self._plain(slot)) for slot, key in zip(slots.tolist(), keys, strict=True))

    def _keys_at(self, slots: Array) -> Array:
        """The keys of these slots."""
        words = np.ascontiguousarray(self._table.keys[slots])
        if self._key.kind == "S":
            keys = words.view(f"S{words.itemsize * self._table.words}")
        else:
            keys = words.view(np.uint64 if self._key == np.uint64 else np.int64)
        return keys.ravel()

    def _plain(self, slot: int) -> Any:
        """A state as JSON can hold it."""
        record = self.states[slot]
        values = {field.name: record[field.name].item() for field in self._state.fields}
        for field in self._state.fields:
            if field.kind is Kind.TEXT:
                values[field.name] = values[field.name].decode("utf-8", "replace")
        return without_never(to_jsonable(values), self._node.timers)

    def _fresh(self, held: int) -> Any:
        """New states: enough to double those held, and never fewer than the table's next keys."""
        return np.repeat(self.first, max(held, 2 * self._table.count, 1024))


def _lifetimes(lifetime: Lifetime | None) -> SlotLifetimes | EventSlotLifetimes | None:
    if lifetime is None:
        return None
    return (EventSlotLifetimes if lifetime.clock is Clock.EVENT else SlotLifetimes)(lifetime.ttl_ns)


def _bytes_of(*arrays: Array) -> bytes:
    """Arrays in numpy's own format."""
    file = io.BytesIO()
    for each in arrays:
        np.save(file, each, allow_pickle=False)
    return file.getvalue()


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


def key_column(key: KeyValue, dtype: np.dtype[Any]) -> Array | None:
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
