"""The states of one partition as Python objects."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Any, Protocol

from bettong.application.joins.joined import Joined
from bettong.application.nodes.stateful import Stateful
from bettong.application.timers import NEVER
from bettong.application.windows.windowed import Windowed
from bettong.errors import ApplicationError, SnapshotError, StateChangedError
from bettong.routing import partitions_of_keys
from bettong.schema.fields import Field
from bettong.schema.key_types import KeyValue
from bettong.schema.schema import schema_of
from bettong.worker.batch import Batch
from bettong.worker.due import Due
from bettong.worker.fired import DueTimers, rows_of_keys
from bettong.worker.jsonable import to_jsonable
from bettong.worker.state import codec, reading
from bettong.worker.state.classes import Classes
from bettong.worker.state.event_lifetimes import EventKeyLifetimes
from bettong.worker.state.expiring_table import ExpiringTable
from bettong.worker.state.lifetimes import KeyLifetimes, LogKeyLifetimes, with_keys
from bettong.worker.state.pickles import SignedPickles
from bettong.worker.state.state_schemas import INCREMENT_KEYS, WHOLE_FROM, Migration
from bettong.worker.state.table import SavedStates
from bettong.worker.state.timers import KeyTimers, without_never

# Added to the scope of keys that have ended, so that their signature is not valid for states.
_ENDED = b"\0ended"
# The timers of states of windows: see `application.windows.states`.
WINDOW_TIMERS = ("due", "early", "timeout")


class StateCodec(Protocol):
    """States as bytes. `scope` says whose they are: application, stage, partition, offset, computation."""

    def encode(self, keys: Collection[Any], states: Collection[Any], scope: bytes) -> bytes:
        """The bytes of states by their keys. Raises UnfitError, or another error where they cannot be written."""

    def decode(self, data: bytes, scope: bytes, *, old: bool) -> tuple[list[Any], list[Any]]:
        """Keys and states. `old`: their classes may have changed. Raises any error for what it has not written."""


class PlainStates:
    """The safe form: see `codec` and `reading`."""

    def __init__(self, node: Stateful) -> None:
        self._classes = Classes(node)

    def encode(self, keys: Collection[Any], states: Collection[Any], scope: bytes) -> bytes:  # noqa: ARG002
        """See StateCodec."""
        return codec.encode(keys, states, self._classes)

    def decode(self, data: bytes, scope: bytes, *, old: bool) -> tuple[list[Any], list[Any]]:  # noqa: ARG002
        """See StateCodec."""
        return reading.decode(data, self._classes, old=old)


class ObjectTable(ExpiringTable[KeyLifetimes]):
    """One Python object a key. See StateTable."""

    def __init__(self, node: Stateful, state_key: bytes | None = None, key: Field | None = None) -> None:
        """`state_key` signs states that are pickles: see `bettong.Pickle`. `key`: its fixed width, if it has one."""
        super().__init__(node, LogKeyLifetimes, EventKeyLifetimes)
        self._key = key
        self._codec = _codec(node, state_key)
        self._states: dict[Any, Any] = {}
        # The keys that may have changed since the last increment; None: any of them.
        self._changed: set[Any] | None = None
        # The keys that the current round of writing all keys again has still to write.
        self._waiting: set[Any] = set()
        # Since the last increment: the keys that were made, and those in increments whose states have ended. `_made` is
        # None while nothing was saved that could hold any, and where no state can end.
        self._made: set[Any] | None = None
        self._ended: set[Any] = set()
        self._timers = KeyTimers(node.timers) if node.timers else None
        # Whether states were restored whose timers were not read yet.
        self._is_restored = False
        self.get = self._states.get

    def open(self, batch: Batch, *, renews: bool = True) -> ObjectTable:
        """See StateTable. Returns itself: `get` returns a key's state, None where it has none; `create` makes one."""
        if self._lifetimes is not None:
            self._lifetimes.open(batch, renews=renews)
        if self._changed is not None:
            with_keys(batch, self._changed.update)
            if self._is_whole(self._changed):
                self._changed = None  # the next increment holds all keys, whatever changes still
        return self

    def create(self, key: Any) -> Any:
        """Makes the first state of a key."""
        state = self._states[key] = self._node.state()
        if self._made is not None:
            self._made.add(key)
        if self._lifetimes is not None:
            self._lifetimes.begin(key)
        return state

    def delete(self, key: Any, batch: Batch, row: int) -> None:
        """Ends the state of a key at that row of the open batch: its next message finds a fresh one."""
        self._end((key,))
        self._deleted += 1
        if self._lifetimes is not None:
            self._lifetimes.restart(key, batch, row)

    def delete_or_rearm(self, key: Any, state: Any, batch: Batch, row: int) -> None:
        """Deletes the state of a key that keeps nothing, by `delete_when=`; else notes when it is due again."""
        delete_when = self._node.delete_when
        if delete_when is not None and delete_when(state):
            self.delete(key, batch, row)
        elif (timers := self.timers) is not None:
            timers.note(key, state)

    def delete_emptied(self, batch: Batch, rows: Sequence[int]) -> None:
        """Deletes the states of those rows' keys that keep nothing, by `delete_when=`."""
        delete_when = self._node.delete_when
        if delete_when is None or not rows:
            return
        keys = batch.key_values()
        for row in rows:
            state = self._states.get(keys[row])
            if state is not None and delete_when(state):
                self.delete(keys[row], batch, row)

    @property
    def timers(self) -> KeyTimers | None:
        """Call its `note` after each call of a function that may change a key's state. None without timers."""
        if self._is_restored and self._timers is not None:
            self._timers.rebuild(self._states)
            self._is_restored = False
        return self._timers

    @property
    def due(self) -> Due:
        """See StateTable."""
        timers = self.timers
        return timers.due if timers is not None else Due()

    def take_due(self, log_ns: int, watermark_ns: int) -> list[DueTimers]:
        """See StateTable."""
        timers = self.timers
        while due := timers.take_due(log_ns, watermark_ns) if timers is not None else []:
            for each in due:
                object.__setattr__(self._states[each.key], self._node.timers[each.timer].field, NEVER)
            if self._changed is not None:
                self._changed.update(each.key for each in due)
            found = []
            for number, timer in enumerate(self._node.timers):
                own = [each for each in due if each.timer == number]
                if (lifetimes := self._lifetimes_by_clock_of(timer)) is not None:
                    own = [each for each in own if each.at_ns <= lifetimes.end_ns(each.key)]
                rows = rows_of_keys([each.key for each in own], [each.at_ns for each in own], self._key)
                found += [DueTimers(timer.field, each) for each in rows]
            if found:
                return found
        return []

    def expire(self, clock_ns: int) -> int:
        """See StateTable."""
        if self._lifetimes is None:
            return 0
        # A key whose message could not be made has a lifetime, and no state.
        expired = [key for key in self._lifetimes.expired(clock_ns) if key in self._states]
        self._end(expired)
        return len(expired)

    def _end(self, keys: Collection[Any]) -> None:
        """Ends the states of these keys."""
        self._drop(keys)
        if self._made is not None:
            # Increments do not hold the others: so `_ended` has no more keys than the last one.
            self._ended.update(key for key in keys if key not in self._made)
            self._made.difference_update(keys)

    def _drop(self, keys: Collection[Any]) -> None:
        for key in keys:
            self._states.pop(key, None)
        self._waiting.difference_update(keys)
        if self._lifetimes is not None:
            self._lifetimes.forget(keys)
        if self._timers is not None:
            self._timers.forget(keys)

    def dump(self, scope: bytes = b"") -> SavedStates:
        """The states of all keys, in an order that the keys alone decide."""
        return self._saved(dict(sorted(self._states.items(), key=lambda each: repr(each[0]))), (), scope)

    def split(self, partitions: int, scope: bytes = b"") -> list[SavedStates]:
        """See StateTable."""
        parts: list[dict[Any, Any]] = [{} for _ in range(partitions)]
        homes = partitions_of_keys(list(self._states), partitions).tolist()
        for home, (key, state) in zip(homes, self._states.items(), strict=True):
            parts[home][key] = state
        return [self._saved(part, (), scope) for part in parts]

    def increment(self, *, begins: bool, scope: bytes = b"") -> SavedStates:
        """See StateTable."""
        states, changed = self._states, self._changed
        if changed is None or self._is_whole(changed):
            written = states
            self._waiting = set()
        else:
            if begins:
                self._waiting = set(states)
            self._waiting -= changed
            written = {key: states[key] for key in changed if key in states}
            others = list(islice(self._waiting, max(INCREMENT_KEYS, len(written))))
            self._waiting.difference_update(others)
            written |= {key: states[key] for key in others}
        saved = self._saved(written, self._ended, scope)
        self._note_stored()
        self._changed = set() if len(states) > INCREMENT_KEYS else None
        return saved

    def _is_whole(self, changed: Collection[Any]) -> bool:
        """Whether an increment that is made when these keys have changed holds all keys."""
        return len(self._states) <= max(INCREMENT_KEYS, WHOLE_FROM * len(changed))

    @property
    def round_complete(self) -> bool:
        """See StateTable."""
        return not self._waiting

    def load(
        self,
        data: SavedStates,
        *,
        log_ns: int,
        begins: bool,
        migration: Migration | None = None,
        scope: bytes = b"",
    ) -> None:
        """See StateTable."""
        try:
            keys, states = self._codec.decode(data.states, scope, old=migration is not None)
            written = dict(zip(keys, states, strict=True))
            ended = self._codec.decode(data.ended, scope + _ENDED, old=False)[0] if data.ended else []
            last_ns = self._stored_clocks(data, len(keys), log_ns)
        except StateChangedError as error:
            raise StateChangedError(f"state of {self.name!r}: {error}") from None
        except Exception as error:
            raise SnapshotError(f"state of {self.name!r}: {type(error).__name__}: {error}") from error
        if migration:
            written = {key: migration(old) for key, old in written.items()}
        self._check_times(written, "what migrate= made" if migration else "what was saved")
        self._drop(ended)
        if begins:
            self._waiting = set(self._states)
        self._states.update(written)
        self._is_restored = True
        self._waiting.difference_update(written)
        if self._lifetimes is not None and last_ns is not None:
            self._lifetimes.load(keys, last_ns)
        self._note_stored()
        self._changed = set() if len(self._states) > INCREMENT_KEYS and not migration else None

    def _check_times(self, states: dict[Any, Any], what: str) -> None:
        """Raises StateChangedError for states whose timers hold no times."""
        if self._timers is None:
            return
        for key, state in states.items():
            try:
                self._timers.times_of(state)
            except (ValueError, AttributeError) as error:
                raise StateChangedError(
                    f"state of {self.name!r}: {what} for key {key!r:.60}: {error}"
                ) from None

    def _note_stored(self) -> None:
        """All keys are in increments now, and none of them has ended."""
        self._ended = set()
        if self._ends:
            self._made = set()

    def _saved(self, states: dict[Any, Any], ended: Collection[Any], scope: bytes) -> SavedStates:
        return SavedStates(
            self._packed(states, scope),
            self._packed(dict.fromkeys(ended), scope + _ENDED) if ended else b"",
            self._lifetimes.dump(states) if self._lifetimes is not None else b"",
        )

    def _packed(self, states: dict[Any, Any], scope: bytes) -> bytes:
        try:
            return self._codec.encode(states, states.values(), scope)
        except Exception as error:
            raise ApplicationError(
                f"stateful {self.name!r}: a state cannot be saved: {_reason(error)}; {_remedy(self._node, error)}"
            ) from error

    @property
    def keys(self) -> int:
        """How many keys have a state."""
        return len(self._states)

    def state_of(self, key: KeyValue) -> Any:
        """See StateTable."""
        return self._shown(self._states.get(key))

    def key_values(self) -> list[KeyValue]:
        """See StateTable."""
        return list(self._states)

    def items(self) -> Iterator[tuple[KeyValue, Any]]:
        """See StateTable."""
        return ((key, self._shown(state)) for key, state in self._states.items())

    def columns(self, names: Sequence[str]) -> tuple[list[KeyValue], list[list[Any]]]:
        """See StateTable."""
        getter = schema_of(self._node.state).getter
        return list(self._states), [list(map(getter(name), self._states.values())) for name in names]

    def _shown(self, state: Any) -> Any:
        # States of windows have fields for timers that these windows may not need.
        unset = (
            WINDOW_TIMERS
            if isinstance(self._node, Windowed | Joined)
            else [each.field for each in self._node.timers]
        )
        return without_never(to_jsonable(state), unset)


def check_state(node: Stateful, state_key: bytes | None = None) -> None:
    """Raises ApplicationError for a state that cannot be made without arguments, or that no snapshot can hold."""
    of_node = _codec(node, state_key)
    try:
        new = node.state()
    except Exception as error:
        name = getattr(node.state, "__name__", "state")
        raise ApplicationError(
            f"stateful {node.name!r}: a new state cannot be made: {type(error).__name__}: {error}; a new key begins"
            f" with {name}(): give all fields a default, or state= a function without arguments that makes one"
        ) from error
    try:
        of_node.encode([""], [new], b"")
    except Exception as error:
        raise ApplicationError(
            f"stateful {node.name!r}: a new state cannot be saved: {_reason(error)}; {_remedy(node, error)}"
        ) from error


def _codec(node: Stateful, state_key: bytes | None) -> StateCodec:
    if node.state_codec is None:
        return PlainStates(node)
    if state_key is None:
        raise ApplicationError(
            f"stateful {node.name!r}: state_codec=bettong.Pickle needs a key: set BETTONG_STATE_KEY_FILE to a file of"
            " 32 random bytes or more that only you can read (`head -c 32 /dev/urandom`, mode 0600), on every machine"
            " that runs it"
        )
    return SignedPickles(state_key)


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, codec.UnfitError) else f"{type(error).__name__}: {error}"


def _remedy(node: Stateful, error: Exception) -> str:
    if isinstance(error, codec.UnfitError) and error.is_size:
        return "keep less in each state, or use more partitions (`bettong repartition`)"
    return (
        "keep plain values and such classes in it, or give stateful(...) state_codec=bettong.Pickle"
        if node.state_codec is None
        else "use classes and functions of a module"
    )
