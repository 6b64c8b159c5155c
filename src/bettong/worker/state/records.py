"""The states of one partition as one numpy array, a record a key: what folds over columns keep."""

import io
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from bettong.application.nodes.stateful import Stateful
from bettong.errors import SnapshotError
from bettong.frames.columns import Array
from bettong.frames.composite_keys import packed_key, unpacked
from bettong.routing import partitions_of_keys
from bettong.schema.fields import Field, Kind
from bettong.schema.key_types import KeyValue
from bettong.worker.arrays import with_rows
from bettong.worker.batch import Batch
from bettong.worker.due import Due
from bettong.worker.fired import DueTimers, fired_of_parts, fired_schema, rows_of_column
from bettong.worker.jsonable import to_jsonable
from bettong.worker.state.event_lifetimes import EventSlotLifetimes
from bettong.worker.state.expiring_table import ExpiringTable
from bettong.worker.state.key_table import KeyTable, words_per_key
from bettong.worker.state.lifetimes import LogSlotLifetimes, SlotLifetimes
from bettong.worker.state.record_layout import first_state, layout_of, old_states, records_of
from bettong.worker.state.state_schemas import INCREMENT_KEYS, WHOLE_FROM, Migration
from bettong.worker.state.stored_arrays import bytes_of, read_array
from bettong.worker.state.table import SavedStates
from bettong.worker.state.timers import SlotTimers, without_never

# Room of a new table: for this many keys, or for fewer where a state is large.
_KEYS_AT_FIRST = 1024
_BYTES_AT_FIRST = 1 << 20


class Records(NamedTuple):
    """The states of a batch's rows: row i has that at `slots[i]` of `states`, whose first `keys` are in use."""

    slots: Array
    states: Array
    keys: int
    table: "RecordTable"


class RecordTable(ExpiringTable[SlotLifetimes]):
    """One record of an array a key. See StateTable."""

    def __init__(
        self,
        node: Stateful,
        key: np.dtype[Any],
        kind: Kind | None = None,
        parts: tuple[Field, ...] | None = None,
        *,
        first: Any = None,
    ) -> None:
        """`kind`: of the key; text or an integer when it is not given. `parts`: its fields, where it is a tuple.

        `first`: the state of a new key, an array of one; by default the node's.
        """
        super().__init__(node, LogSlotLifetimes, EventSlotLifetimes)
        # The input schema of timers' functions.
        self.fired = fired_schema(kind or (Kind.TEXT if key.kind == "S" else Kind.INT), key)
        self.first = first_state(node) if first is None else first
        # The layout of a state; None where the records are not a user's states.
        self._layout = layout_of(node) if first is None else None
        self._key = key
        self._parts = parts
        self.fired_parts = fired_of_parts(parts) if parts is not None else None
        self._table = KeyTable(words_per_key(key))
        self.states = self._fresh(0)
        # By slot: whether the state may have changed since the last increment; and whether the current round of writing
        # all again has still to write it. Without `_changed`, any may have.
        self._changed: Array | None = None
        self._waiting = np.zeros(0, np.bool_)
        # Where states can end: by slot, whether increments hold its key; and the words of such keys whose states have
        # ended since the last one.
        self._stored = np.zeros(0, np.bool_)
        self._ended: list[Array] = []
        self._timers = SlotTimers(node.timers) if node.timers else None

    def open(self, batch: Batch, *, renews: bool = True) -> Records:
        """See StateTable. New keys get a first state."""
        slots = self._table.slots(self._column_of(batch))
        self._make_room()
        if renews and self._lifetimes is not None:
            self._lifetimes.renew(slots, batch)
        if self._timers is not None:
            self._timers.note(slots, self.states)
        if self._changed is not None:
            self._changed[slots] = True
        return Records(slots, self.states, self._table.count, self)

    def _column_of(self, batch: Batch) -> Array:
        """The keys of a batch as a column. Fired rows may have only values: a timer does not know its key's fields."""
        if self._parts is None or not batch.keys.are_fired or batch.keys.columns.schema == self.fired_parts:
            return batch.key_column()
        packed = (packed_key(self._parts, key) for key in batch.key_values())
        return np.concatenate([np.empty(0, self._key), *(each for each in packed if each is not None)])

    def delete(self, batch: Batch, slots: Array, rows: Array) -> None:
        """The states at `slots[rows]` were deleted at those rows of a batch; a later row may have made a new one."""
        self._deleted += len(rows)
        if self._lifetimes is not None:
            self._lifetimes.restart(slots, batch, rows)
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
            slots, at_ns, timers = self._timers.take_due(log_ns, watermark_ns, self.states)
            if not len(slots):
                break
            if self._changed is not None:
                self._changed[slots] = True
            found = []
            for number, timer in enumerate(self._node.timers):
                own = np.flatnonzero(timers == number)
                if (lifetimes := self._lifetimes_by_clock_of(timer)) is not None:
                    own = own[at_ns[own] <= lifetimes.ends_ns(slots[own])]
                if len(own):
                    keys, times = self.keys_at(slots[own]), at_ns[own]
                    order = np.lexsort((keys, times))
                    found.append(self.due_timers(timer.field, keys[order], times[order]))
            if found:
                return found
        return []

    def keys_at(self, slots: Array) -> Array:
        """The keys of these slots, as the column of `fired`."""
        return self._keys_at(slots).astype(self.fired.fields[0].dtype)

    def due_timers(self, field: str, keys: Array, at_ns: Array) -> DueTimers:
        """Timers that fire, for keys as `keys_at` returns them."""
        return DueTimers(field, rows_of_column(self.fired_parts or self.fired, keys, at_ns, self._parts))

    def expire(self, clock_ns: int) -> int:
        """See StateTable."""
        if self._lifetimes is None:
            return 0
        expired = self._lifetimes.expired(clock_ns)
        self._end(expired)
        return len(expired)

    def _end(self, slots: Array) -> None:
        """Ends the states at these slots, each given once."""
        known = slots[slots < len(self._stored)]
        # Increments do not hold the others: so `_ended` has no more keys than the last one.
        known = known[self._stored[known]]
        if len(known):
            self._ended.append(self._table.keys[known])
        self._drop(slots)

    def _drop(self, slots: Array) -> None:
        """Removes the keys at these slots, and resets the slots."""
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

    def dump(self, scope: bytes = b"") -> SavedStates:  # noqa: ARG002 - arrays of numbers are not signed
        """The states of all keys, in the order of the keys."""
        slots = self._table.in_use()
        return self._saved(slots[np.lexsort(self._table.keys[slots].T)])

    def split(self, partitions: int, scope: bytes = b"") -> list[SavedStates]:  # noqa: ARG002 - as `dump`
        """See StateTable."""
        slots = self._table.in_use()
        homes = partitions_of_keys(self._key_values(slots), partitions)
        return [self._saved(slots[homes == partition]) for partition in range(partitions)]

    def increment(self, *, begins: bool, scope: bytes = b"") -> SavedStates:  # noqa: ARG002
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
        saved = saved._replace(ended=bytes_of(np.concatenate(self._ended)) if self._ended else b"")
        self._note_stored()
        self._changed = np.zeros(len(self.states), np.bool_) if live > INCREMENT_KEYS else None
        return saved

    @property
    def round_complete(self) -> bool:
        """See StateTable."""
        return not self._waiting.any()

    def load(
        self,
        data: SavedStates,
        *,
        log_ns: int,
        begins: bool,
        migration: Migration | None = None,
        scope: bytes = b"",  # noqa: ARG002
    ) -> None:
        """See StateTable."""
        file = io.BytesIO(data.states)
        try:
            keys = read_array(file, dimensions=2)
            states = read_array(file, dimensions=1)
            beside = self._read_beside(file)
            ended = read_array(io.BytesIO(data.ended), dimensions=2) if data.ended else keys[:0]
            last_ns = self._stored_clocks(data, len(keys), log_ns)
        except ValueError as error:
            raise SnapshotError(f"state of {self.name!r}: {error}") from None
        if migration and states.dtype.names:
            states = self._migrated(states, migration)
        shape = (len(states), self._table.words)
        if states.dtype != self.states.dtype or keys.dtype != np.uint64 or keys.shape != shape:
            raise SnapshotError(
                f"state of {self.name!r}: it has keys of {keys.shape[1:]} words and {states.dtype},"
                f" expected {self._table.words} and {self.states.dtype}"
            )
        if self._layout is not None and (fault := self._layout.faults(states)) is not None:
            raise SnapshotError(f"state of {self.name!r}: {fault}")
        if ended.dtype != np.uint64 or ended.shape[1:] != keys.shape[1:]:
            raise SnapshotError(
                f"state of {self.name!r}: it ends keys of {ended.shape[1:]} words of {ended.dtype}"
            )
        gone = self._table.find_of(np.ascontiguousarray(ended))
        self._drop(np.unique(gone[gone >= 0]))
        if begins:
            self._waiting = self._table.used()
        slots = self._table.slots_of(np.ascontiguousarray(keys))
        known = np.zeros(self._table.count, np.bool_)
        known[slots] = True
        if np.count_nonzero(known) != len(slots):
            raise SnapshotError(f"state of {self.name!r}: it has a key twice")
        self._make_room()
        self._take_over(slots, states, beside)
        if self._timers is not None:
            self._timers.rebuild()
        self._waiting[slots[slots < len(self._waiting)]] = False
        if self._lifetimes is not None and last_ns is not None:
            self._lifetimes.load(slots, last_ns)
        self._note_stored()
        tracked = self._table.live > INCREMENT_KEYS and not migration
        self._changed = np.zeros(len(self.states), np.bool_) if tracked else None

    def _migrated(self, states: Array, migration: Migration) -> Any:
        try:
            old = old_states(states)
        except (TypeError, ValueError, IndexError) as error:
            raise SnapshotError(f"state of {self.name!r}: no state has such fields: {error!s:.200}") from None
        return records_of(self._node, list(map(migration, old)))

    def _read_beside(self, file: io.BytesIO) -> Any:  # noqa: ARG002 - for tables that keep more
        """Reads what `_saved` wrote after the states. Raises ValueError."""
        return None

    def _take_over(self, slots: Array, states: Array, beside: Any) -> None:  # noqa: ARG002 - see _read_beside
        """Stores restored states at these slots. Raises SnapshotError when they cannot be states."""
        self.states[slots] = states

    def _saved(self, slots: Array | slice) -> SavedStates:
        last_ns = self._lifetimes.dump(slots) if self._lifetimes is not None else b""
        return SavedStates(bytes_of(self._table.keys[slots], self.states[slots]), last_ns=last_ns)

    def _note_stored(self) -> None:
        """All keys are in increments now, and none of them has ended."""
        self._ended = []
        if self._ends:
            self._stored = self._table.used()

    def _make_room(self) -> None:
        """Makes room for as many states as the table has keys, and as many marks as states."""
        if self._table.count > len(self.states):
            fresh = self._fresh(len(self.states))
            self.states = np.concatenate([self.states, fresh])
            if self._changed is not None:
                self._changed = with_rows(self._changed, len(self.states))
        if self._lifetimes is not None:
            self._lifetimes.grow(len(self.states))

    @property
    def keys(self) -> int:
        """How many keys have a state."""
        return self._table.live

    def state_of(self, key: KeyValue) -> Any:
        """See StateTable."""
        column = key_column(key, self._key) if self._parts is None else packed_key(self._parts, key)
        slots = self._table.find(column) if column is not None else np.full(1, -1)
        return self._jsonable(int(slots[0])) if slots[0] >= 0 else None

    def key_values(self) -> list[KeyValue]:
        """See StateTable."""
        return self._key_values(self._table.in_use())

    def items(self) -> Iterator[tuple[KeyValue, Any]]:
        """See StateTable."""
        slots = self._table.in_use()
        keys = self._key_values(slots)
        return ((key, self._jsonable(slot)) for slot, key in zip(slots.tolist(), keys, strict=True))

    def columns(self, names: Sequence[str]) -> tuple[list[KeyValue], list[list[Any]]]:
        """See StateTable."""
        slots = self._table.in_use()
        assert self._layout is not None  # noqa: S101 - see StateTable
        values = [self._layout.member(name).load(self.states[name][slots]) for name in names]
        return self._key_values(slots), values

    def _key_values(self, slots: Array) -> list[KeyValue]:
        """The keys of these slots as values."""
        found = self._keys_at(slots)
        return found.tolist() if self._parts is None else list(unpacked(self._parts, found))

    def _keys_at(self, slots: Array) -> Array:
        """The keys of these slots."""
        words = np.ascontiguousarray(self._table.keys[slots])
        if self._key.kind == "S":
            keys = words.view(f"S{words.itemsize * self._table.words}").astype(self._key)
        else:
            keys = words.view(np.uint64 if self._key == np.uint64 else np.int64)
        return keys.ravel()

    def _jsonable(self, slot: int) -> Any:
        """A state as JSON can hold it; see `to_jsonable`."""
        assert self._layout is not None  # noqa: S101 - tables of other records show theirs
        (state,) = self._layout.load(self.states[slot : slot + 1])
        return without_never(to_jsonable(state), [timer.field for timer in self._node.timers])

    def _fresh(self, held: int) -> Any:
        """New states: enough to double those held, and never fewer than the table's next keys."""
        few = min(_KEYS_AT_FIRST, max(1, _BYTES_AT_FIRST // self.first.itemsize))
        return np.repeat(self.first, max(held, 2 * self._table.count, few))


def key_column(key: KeyValue, dtype: np.dtype[Any]) -> Array | None:
    """A key as a column of one row; None for one that no message of that type can have."""
    if isinstance(key, tuple):
        return None
    if dtype.kind == "S" and not isinstance(key, int):
        data = (key.encode() if isinstance(key, str) else key).rstrip(b"\0")
        return np.array([data], dtype) if len(data) <= dtype.itemsize else None
    if dtype.kind in "iu" and isinstance(key, int):
        limits = np.iinfo(dtype)
        return np.array([key], dtype) if limits.min <= key <= limits.max else None
    return None
