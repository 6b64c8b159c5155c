"""Functions called message by message: plain Python.

Each call stands alone: what it raises makes a failure of that row, and the next row goes on. A result is read the
moment it is given, so what the function does to that object afterwards changes nothing.
"""

from collections.abc import Callable, Iterable
from operator import attrgetter, length_hint
from typing import Any

import numpy as np

from bettong.application.on_error import ANY_ERROR
from bettong.application.schema import Schema
from bettong.application.streams import Filtered, FlatMapped, Stateful, Stateless
from bettong.frames.columns import fitting_values
from bettong.worker.batch import Batch
from bettong.worker.calling.results import Calling, Failure, Results
from bettong.worker.progress import FoldProgress
from bettong.worker.state.objects import ObjectTable

# Named once: a union made at each call would cost as much as the rest.
_FINISHED = (list, tuple)


def messages_calling(node: Stateless) -> Calling[None]:
    """How plain Python functions without state are called."""
    if isinstance(node, Filtered):
        return _EachKept(node)
    return _EachSeveral(node) if isinstance(node, FlatMapped) else _EachOne(node)


class _Output:
    """The results of one batch: the values of their fields, by result."""

    def __init__(self, schema: Schema) -> None:
        names = [field.name for field in schema.fields]
        self.read: Callable[[Any], Any] = attrgetter(*names)
        self.values: list[Any] = []
        self.rows: list[int] = []
        self.failures: list[Failure] = []
        self._schema = schema
        self._is_single = len(names) == 1

    def extend(self, results: Iterable[Any], row: int) -> None:
        """Takes all results of a row, or, when to make one of them raises, none."""
        try:
            # Results that are finished can be read again one by one, should one of them be of another class.
            found = list(map(self.read, results)) if isinstance(results, _FINISHED) else None
        except AttributeError:
            found = None
        strange: list[Failure] = []
        if found is None:
            found = []
            for each in results:
                try:
                    found.append(self.read(each))
                except AttributeError:
                    strange.append((row, self._is_no(each)))
        self.values += found
        self.rows += [row] * len(found)
        self.failures += strange

    def fail(self, row: int, error: BaseException) -> None:
        """A call of the function raised, or `read` of what it gave."""
        is_read = isinstance(error, AttributeError) and error.__traceback__ is not None
        if is_read and error.__traceback__.tb_next is None:  # type: ignore[union-attr]
            self.failures.append((row, self._is_no(error.obj)))  # type: ignore[attr-defined]
        else:
            self.failures.append((row, error))

    def results(self, length: int) -> Results:
        """The results of a batch of so many rows: those that do not fit the schema become failures."""
        values: list[list[Any]] = (
            [self.values]
            if self._is_single
            else [list(each) for each in zip(*self.values, strict=True)] or [[] for _ in self._schema.fields]
        )
        columns, misfits = fitting_values(self._schema, values)
        rows = self.rows
        if misfits:
            self.failures += [(rows[result], reason) for result, reason in misfits.items()]
            rows = [row for result, row in enumerate(rows) if result not in misfits]
        is_each = len(rows) == length and not self.failures and rows == list(range(length))
        return Results(columns, None if is_each else np.array(rows, np.int64), self.failures)

    def _is_no(self, value: object) -> str:
        return f"{type(value).__name__} is no {self._schema.name}"


class _EachOne:
    """`Stream.map`."""

    def __init__(self, node: Stateless) -> None:
        self._node = node

    def call(self, batch: Batch, states: None, progress: FoldProgress) -> Results:  # noqa: ARG002
        """See Calling."""
        function, output = self._node.function, _Output(self._node.schema)
        read, take, note = output.read, output.values.append, output.rows.append
        rows = iter(range(batch.length))
        for row, message in zip(rows, progress.messages(self._node.name, batch, rows), strict=True):
            try:
                take(read(function(message)))
            except ANY_ERROR as error:
                output.fail(row, error)
            else:
                note(row)
        return output.results(batch.length)


class _EachSeveral:
    """`Stream.flat_map`. An iterable that raises half-way gives nothing: all or none of a message's results."""

    def __init__(self, node: Stateless) -> None:
        self._node = node

    def call(self, batch: Batch, states: None, progress: FoldProgress) -> Results:  # noqa: ARG002
        """See Calling."""
        function, output = self._node.function, _Output(self._node.schema)
        rows = iter(range(batch.length))
        for row, message in zip(rows, progress.messages(self._node.name, batch, rows), strict=True):
            try:
                output.extend(function(message), row)
            except ANY_ERROR as error:
                output.fail(row, error)
        return output.results(batch.length)


class _EachKept:
    """`Stream.filter`."""

    def __init__(self, node: Stateless) -> None:
        self._node = node

    def call(self, batch: Batch, states: None, progress: FoldProgress) -> Results:  # noqa: ARG002
        """See Calling."""
        function = self._node.function
        kept: list[int] = []
        failures: list[Failure] = []
        rows = iter(range(batch.length))
        for row, message in zip(rows, progress.messages(self._node.name, batch, rows), strict=True):
            try:
                if function(message):
                    kept.append(row)
            except ANY_ERROR as error:
                failures.append((row, error))
        return Results(None, np.array(kept, np.int64), failures)


class StatefulMessages:
    """`Stream.stateful` with one Python object a key.

    What a function had changed in the state before it raised stays, here and in every replay alike.
    """

    def __init__(self, node: Stateful) -> None:
        self._node = node

    def call(self, batch: Batch, states: ObjectTable, progress: FoldProgress) -> Results:
        """See Calling."""
        handler, many = self._node.handlers[batch.schema], self._node.many
        output = _Output(self._node.schema)
        read, take, note = output.read, output.values.append, output.rows.append
        find, create = states.get, states.create
        keys = iter(batch.key_values())
        messages = iter(progress.messages(self._node.name, batch, keys))
        last = batch.length - 1
        while True:
            # How far the loop is can be read off `keys`, so that it need not count.
            try:
                for key, message in zip(keys, messages, strict=True):
                    state = find(key)
                    if state is None:
                        state = create(key)
                    result = handler(message, state)
                    if result is None:
                        continue
                    if many:
                        output.extend(result, last - length_hint(keys))
                    else:
                        take(read(result))
                        note(last - length_hint(keys))
            except ANY_ERROR as error:
                output.fail(last - length_hint(keys), error)
            else:
                return output.results(batch.length)
