"""Stateful computations as plain Python: a function of a message and its key's state, message by message."""

import io
import pickle
from collections.abc import Iterator
from copy import copy
from itertools import islice
from operator import length_hint
from typing import Any

from bettong.application.on_error import ANY_ERROR
from bettong.application.streams import Stateful
from bettong.application.ways import Way
from bettong.errors import ApplicationError, SnapshotError
from bettong.worker.given import several
from bettong.worker.letters import Letters
from bettong.worker.packing import pack, unpack
from bettong.worker.plain import plain
from bettong.worker.rows import NoKey, Rows
from bettong.worker.shapes import INCREMENT_KEYS, WHOLE_FROM, Migration, OldStates


class PythonFold:
    """`Stream.stateful` with one Python object a key.

    What a function raises makes a dead letter of that message; what it had changed in the state by then stays,
    here and in every replay alike.
    """

    def __init__(self, node: Stateful) -> None:
        self.name = node.name
        self._node = node
        self._states: dict[Any, Any] = {}
        # The keys that may have changed since the last increment; None: any of them.
        self._changed: set[Any] | None = None
        # The keys that the present round of writing all again has not come to.
        self._waiting: set[Any] = set()
        # A function that could run compiled sees and gives only what fits a schema, as it would there.
        self.exact = node.way is Way.COMPILED

    def run(self, rows: Rows, letters: Letters) -> Rows:
        """See Operator. Folds the rows in order, each into the state of its key."""
        if self.exact:
            rows.columns(self.name, letters)
        handler = self._node.handlers[rows.schema]
        make, states, many = self._node.state, self._states, self._node.many
        find = states.get
        results: list[Any] = []
        sources: list[int] = []
        values = rows.key_values()
        if self._changed is not None:
            try:
                self._changed.update(values)
            except ANY_ERROR:  # a NoKey raises what the user's function raised
                self._changed.update(key for key in values if not isinstance(key, NoKey))
        keys = iter(values)
        messages = iter(letters.progress.messages(self.name, rows, keys))
        last = rows.length - 1
        while True:
            # How far the loop is can be read off `keys`, so that it need not count.
            try:
                for key, message in zip(keys, messages, strict=True):
                    state = find(key)
                    if state is None:
                        state = states[key] = make()
                    result = handler(message, state)
                    if result is None:
                        continue
                    row = last - length_hint(keys)
                    if many:
                        found = several(result, state)
                        results.extend(found)
                        sources.extend([row] * len(found))
                    else:
                        results.append(copy(result) if result is state else result)
                        sources.append(row)
            except ANY_ERROR as error:
                letters.add(self.name, error, rows.parent(last - length_hint(keys)))
            else:
                break
        given = rows.of_messages(self._node.schema, results, rows.parents_of(sources))
        if self.exact:
            given.columns(self.name, letters)
        return given

    def dump(self) -> bytes:
        """The states of all keys, in an order that the keys alone decide."""
        return self._packed(dict(sorted(self._states.items(), key=lambda each: repr(each[0]))))

    def increment(self, *, begins: bool) -> bytes:
        """See Fold. Bettong's own stores alone are read back with `load`: it unpickles."""
        states, changed = self._states, self._changed
        if changed is None or len(states) <= max(INCREMENT_KEYS, WHOLE_FROM * len(changed)):
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
        data = self._packed(written)
        self._changed = set() if len(states) > INCREMENT_KEYS else None
        return data

    @property
    def settled(self) -> bool:
        """See Fold."""
        return not self._waiting

    def load(self, data: bytes, *, begins: bool, migration: Migration | None = None) -> None:
        """See Fold."""
        try:
            file = io.BytesIO(data)
            # Written by `increment`, behind a checksum, in our store.
            reader = OldStates(file) if migration else pickle.Unpickler(file)  # noqa: S301
            keys = reader.load()
            states = unpack(reader.load())
            written = dict(zip(keys, states, strict=True))
        except Exception as error:
            raise SnapshotError(f"state of {self.name!r}: {type(error).__name__}: {error}") from error
        if migration:
            written = {key: migration(old) for key, old in written.items()}
        if begins:
            self._waiting = set(self._states)
        self._states.update(written)
        self._waiting.difference_update(written)
        self._changed = set() if len(self._states) > INCREMENT_KEYS and not migration else None

    def _packed(self, states: dict[Any, Any]) -> bytes:
        try:
            return pickle.dumps(list(states), protocol=5) + pack(states.values())
        except Exception as error:
            raise ApplicationError(
                f"stateful {self.name!r}: a state cannot be pickled, as snapshots need"
                f" ({type(error).__name__}: {error}); keep only plain values and classes of a module in it"
            ) from error

    @property
    def keys(self) -> int:
        """How many keys have a state."""
        return len(self._states)

    def state_of(self, key: str | int | bytes) -> Any:
        """See Fold."""
        return plain(self._states.get(key))

    def items(self) -> Iterator[tuple[str | int | bytes, Any]]:
        """See Fold."""
        return ((key, plain(state)) for key, state in self._states.items())


def check_state(node: Stateful) -> None:
    """Raises ApplicationError for a state that no snapshot could hold."""
    try:
        pickle.dumps(node.state(), protocol=5)
    except Exception as error:
        raise ApplicationError(
            f"stateful {node.name!r}: a new state cannot be made and pickled, as snapshots need"
            f" ({type(error).__name__}: {error}); use classes and functions of a module"
        ) from error
