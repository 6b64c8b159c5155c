"""Functions called message by message: plain Python.

Each call stands alone: what it raises, or what making its message raises, is a failure of that row, and the next row
goes on. A result is read the moment it is given, so what the function does to that object afterwards changes nothing.
"""

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter, length_hint
from typing import Any

import numpy as np

from bettong.application.on_error import STOP
from bettong.application.streams import Filtered, FlatMapped, Handler, Stateful, Stateless
from bettong.frames.fitting import fitting_values
from bettong.schema.schema import Schema
from bettong.user_errors import ANY_ERROR, reason_of
from bettong.worker.batch import Batch, NoKey
from bettong.worker.calling.results import Calling, Failure, Results
from bettong.worker.progress import FoldProgress
from bettong.worker.state.objects import ObjectTable
from bettong.worker.state.timers import KeyTimers

# Iterables that nobody means as several results.
_TEXTS = (str, bytes, bytearray, memoryview)


def messages_calling(node: Stateless, progress: FoldProgress) -> Calling[None]:
    """How plain Python functions without state are called."""
    if isinstance(node, Filtered):
        return _EachKept(node, progress)
    return _EachResult(node, progress)


class _Output:
    """The results of one batch: the values of their fields, by result."""

    def __init__(self, schema: Schema) -> None:
        names = [field.name for field in schema.fields]
        self.values: list[Any] = []
        self.rows: list[int] = []
        self.failures: list[Failure] = []
        self._read: Callable[[Any], Any] = attrgetter(*names)
        self._schema = schema
        self._is_single = len(names) == 1

    def add(self, result: Any, row: int) -> None:
        """Takes the result of a row. Raises what its attributes raise."""
        try:
            values = self._read(result)
        except AttributeError:
            self.failures.append((row, self._is_no(result)))
            return
        self.values.append(values)
        self.rows.append(row)

    def extend(self, results: Iterable[Any], row: int) -> None:
        """Takes all results of a row, or, when to make one of them raises, none."""
        if isinstance(results, _TEXTS):
            raise TypeError(f"returned {type(results).__name__}, expected an iterable of {self._schema.name}")
        found: list[Any] = []
        strange: list[Failure] = []
        for each in results:
            try:
                found.append(self._read(each))
            except AttributeError:
                strange.append((row, self._is_no(each)))
        self.values += found
        self.rows += [row] * len(found)
        self.failures += strange

    @property
    def count(self) -> tuple[int, int]:
        """How many results and failures there are."""
        return len(self.rows), len(self.failures)

    def keep(self, results: int, failures: int) -> None:
        """Drops all results and failures but the first ones."""
        del self.values[results:], self.rows[results:], self.failures[failures:]

    def results(self, length: int) -> Results:
        """The results of a batch of so many rows: those that do not fit the schema become failures."""
        values: list[list[Any]] = (
            [self.values]
            if self._is_single
            else [list(each) for each in zip(*self.values, strict=True)] or [[] for _ in self._schema.fields]
        )
        columns, violations = fitting_values(self._schema, values)
        rows = self.rows
        if violations:
            self.failures += [(rows[result], reason) for result, reason in violations.items()]
            rows = [row for result, row in enumerate(rows) if result not in violations]
        is_each = len(rows) == length and not self.failures and rows == list(range(length))
        return Results(columns, None if is_each else np.array(rows, np.int64), self.failures)

    def _is_no(self, value: object) -> str:
        return f"{type(value).__name__} is no {self._schema.name}"


class _EachResult:
    """`Stream.map` and `Stream.flat_map`. Of an iterable that raises half-way nothing counts."""

    def __init__(self, node: Stateless, progress: FoldProgress) -> None:
        self._node = node
        self._progress = progress

    def call(self, batch: Batch, states: None) -> Results:  # noqa: ARG002
        """See Calling."""
        function, output = self._node.function, _Output(self._node.schema)
        take = output.extend if isinstance(self._node, FlatMapped) else output.add
        rows = iter(range(batch.length))
        messages = iter(self._progress.messages(self._node.name, batch, rows))
        last = batch.length - 1
        while True:
            # How far the loop is can be read off `rows`, for to make a message may raise, too.
            try:
                for row, message in zip(rows, messages, strict=True):
                    take(function(message), row)
            except ANY_ERROR as error:
                output.failures.append((last - length_hint(rows), reason_of(error)))
                if self._node.on_error != STOP:
                    continue
            return output.results(batch.length)


class _EachKept:
    """`Stream.filter`."""

    def __init__(self, node: Stateless, progress: FoldProgress) -> None:
        self._node = node
        self._progress = progress

    def call(self, batch: Batch, states: None) -> Results:  # noqa: ARG002
        """See Calling."""
        function = self._node.function
        kept: list[int] = []
        failures: list[Failure] = []
        rows = iter(range(batch.length))
        messages = iter(self._progress.messages(self._node.name, batch, rows))
        last = batch.length - 1
        while True:
            try:
                for row, message in zip(rows, messages, strict=True):
                    if function(message):
                        kept.append(row)
            except ANY_ERROR as error:
                failures.append((last - length_hint(rows), reason_of(error)))
                if self._node.on_error != STOP:
                    continue
            return Results(None, np.array(kept, np.int64), failures)


class StatefulMessages:
    """`Stream.stateful` with one Python object a key.

    What a function had changed in the state before it raised stays, here and in every replay alike.
    """

    def __init__(self, node: Stateful, functions: Mapping[Schema, Handler], progress: FoldProgress) -> None:
        """`functions`: by what they take."""
        self._node = node
        self._functions = functions
        self._progress = progress
        self._looks = node.delete_when is not None or bool(node.timers)

    def call(self, batch: Batch, states: ObjectTable) -> Results:
        """See Calling."""
        if self._looks:
            return self._looking(batch, states)
        handler = self._functions[batch.schema]
        output = _Output(self._node.schema)
        take = output.extend if self._node.many else output.add
        find, create = states.get, states.create
        keys = iter(batch.key_values())
        messages = iter(self._progress.messages(self._node.name, batch, keys))
        last = batch.length - 1
        while True:
            # How far the loop is can be read off `keys`, so that it need not count.
            try:
                for key, message in zip(keys, messages, strict=True):
                    state = find(key)
                    if state is None:
                        state = create(key)
                    result = handler(message, state)
                    if result is not None:
                        take(result, last - length_hint(keys))
            except ANY_ERROR as error:
                output.failures.append((last - length_hint(keys), reason_of(error)))
                if self._node.on_error != STOP:
                    continue
            return output.results(batch.length)

    def _looking(self, batch: Batch, states: ObjectTable) -> Results:
        """The same with `delete_when=` and timers. A loop of its own, so that the other has nothing to look at."""
        handler, output = self._functions[batch.schema], _Output(self._node.schema)
        delete_when, timers = self._node.delete_when, states.timers
        note = timers.note if timers is not None else None
        take = output.extend if self._node.many else output.add
        kept = output.count
        keys = iter(batch.key_values())
        messages = iter(self._progress.messages(self._node.name, batch, keys))
        last = batch.length - 1
        while True:
            try:
                for key, message in zip(keys, messages, strict=True):
                    state = states.get(key)
                    if state is None:
                        state = states.create(key)
                    result = handler(message, state)
                    if result is not None:
                        take(result, last - length_hint(keys))
                    if delete_when is not None and delete_when(state):
                        states.delete(key, batch, last - length_hint(keys))
                    elif note is not None:
                        note(key, state)
                    kept = output.count
            except ANY_ERROR as error:
                output.keep(*kept)
                output.failures.append((last - length_hint(keys), reason_of(error)))
                kept = output.count
                if self._node.on_error != STOP:
                    continue
            if timers is not None and output.failures:
                _note_failed(timers, batch, states, output.failures)
            return output.results(batch.length)


def _note_failed(timers: KeyTimers, batch: Batch, states: ObjectTable, failures: Iterable[Failure]) -> None:
    """What a function had set before it raised stays, too."""
    keys = batch.key_values()
    for row, _ in failures:
        state = states.get(keys[row]) if not isinstance(keys[row], NoKey) else None
        if state is not None:
            timers.note_failed(keys[row], state)
