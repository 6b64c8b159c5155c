"""Stateful computations as plain Python: a function of a message and its key's state, message by message."""

import pickle
from typing import Any

from bettong.application.schema import Schema
from bettong.application.streams import Stateful
from bettong.errors import ApplicationError, SnapshotError
from bettong.worker.letters import Letters
from bettong.worker.rows import Rows


class PythonFold:
    """`Stream.stateful` with one Python object a key.

    What a function raises makes a dead letter of that message; what it had changed in the state by then stays,
    here and in every replay alike.
    """

    def __init__(self, node: Stateful) -> None:
        if node.schema is None:
            raise ApplicationError(f"{node.name!r} has no schema of its own")
        self.name = node.name
        self._node = node
        self._output: Schema = node.schema
        self._states: dict[Any, Any] = {}

    def run(self, rows: Rows, letters: Letters) -> Rows:
        """See Operator. Folds the rows in order, each into the state of its key."""
        handler = self._node.handlers[rows.schema]
        make, states = self._node.state, self._states
        find = states.get
        results: list[Any] = []
        parents: list[int] = []
        # How far the loop is can be read off this iterator, so that the loop itself need not count.
        keys = iter(rows.key_values())
        messages = iter(rows.messages())
        last = rows.length - 1
        collect = results.extend if self._node.many else results.append
        while True:
            try:
                for key, message in zip(keys, messages, strict=True):
                    state = find(key)
                    if state is None:
                        state = states[key] = make()
                    result = handler(message, state)
                    if result is not None:
                        if self._node.many:
                            result = list(result)
                            parents.extend([rows.parent(last - keys.__length_hint__())] * len(result))
                        else:
                            parents.append(rows.parent(last - keys.__length_hint__()))
                        collect(result)
            except Exception as error:  # noqa: BLE001 - whatever the user's code raises is a dead letter
                letters.add(self.name, error, rows.parent(last - keys.__length_hint__()))
            else:
                return rows.of_messages(self._output, results, parents)

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
