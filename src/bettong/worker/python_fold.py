"""Stateful computations as plain Python: a function of a message and its key's state, message by message."""

import pickle
from collections.abc import Iterator
from operator import length_hint
from typing import Any

from bettong.application.compiled import is_compiled
from bettong.application.streams import Stateful
from bettong.errors import ApplicationError, SnapshotError
from bettong.worker.letters import Letters
from bettong.worker.plain import plain
from bettong.worker.rows import Rows


class PythonFold:
    """`Stream.stateful` with one Python object a key.

    What a function raises makes a dead letter of that message; what it had changed in the state by then stays,
    here and in every replay alike.
    """

    def __init__(self, node: Stateful) -> None:
        self.name = node.name
        self._node = node
        self._states: dict[Any, Any] = {}
        # A function that could run compiled sees and gives only what fits a schema, as it would there.
        self.exact = any(map(is_compiled, node.handlers.values()))

    def run(self, rows: Rows, letters: Letters) -> Rows:
        """See Operator. Folds the rows in order, each into the state of its key."""
        if self.exact:
            rows.columns(self.name, letters)
        handler = self._node.handlers[rows.schema]
        make, states, many = self._node.state, self._states, self._node.many
        find = states.get
        results: list[Any] = []
        parents: list[int] = []
        keys = iter(rows.key_values())
        messages = iter(rows.messages())
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
                    parent = rows.parent(last - length_hint(keys))
                    if many:
                        several = list(result)
                        results.extend(several)
                        parents.extend([parent] * len(several))
                    else:
                        results.append(result)
                        parents.append(parent)
            except Exception as error:  # noqa: BLE001 - whatever the user's code raises is a dead letter
                letters.add(self.name, error, rows.parent(last - length_hint(keys)))
            else:
                break
        given = rows.of_messages(self._node.schema, results, parents)
        if self.exact:
            given.columns(self.name, letters)
        return given

    def dump(self) -> bytes:
        """The states of all keys. Bettong's own stores alone are read back with `load`: it unpickles."""
        return pickle.dumps(self._states, protocol=5)

    def load(self, data: bytes) -> None:
        """Takes over states that `dump` wrote. Raises SnapshotError when they cannot be read."""
        try:
            self._states = pickle.loads(data)  # noqa: S301 - written by `dump`, behind a checksum, in our store
        except Exception as error:
            raise SnapshotError(f"state of {self.name!r}: {type(error).__name__}: {error}") from error

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
