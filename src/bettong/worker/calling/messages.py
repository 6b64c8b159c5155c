"""Calls functions message by message: plain Python.

Each call stands alone: what it raises, or what making its message raises, is a failure of that row, and the loop goes
on with the next row. A result is read as soon as it is returned, so later changes of that object have no effect.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import length_hint
from typing import Any

import numpy as np

from bettong.application.nodes.stateful import Handler, Stateful
from bettong.application.nodes.stateless import Stateless
from bettong.application.on_error import STOP
from bettong.application.returns import Returns
from bettong.schema.schema import Schema
from bettong.user_errors import ANY_ERROR, reason_of
from bettong.worker.batch import Batch, NoKey
from bettong.worker.calling.result_builder import ResultBuilder
from bettong.worker.calling.results import Calling, Failure, Results
from bettong.worker.progress import FoldProgress
from bettong.worker.state.objects import ObjectTable
from bettong.worker.state.timers import KeyTimers

# Rows whose states are looked up together: few enough that their memory stays in a core's own caches.
_AHEAD = 512


def messages_calling(node: Stateless, progress: FoldProgress) -> Calling[None]:
    """Calls plain Python functions without state."""
    if node.returns is Returns.WHETHER:
        return _EachKept(node, progress)
    return _EachResult(node, progress)


class _EachResult:
    """`Stream.map` and `Stream.flat_map`. Of an iterable that raises half-way no result counts."""

    def __init__(self, node: Stateless, progress: FoldProgress) -> None:
        self._node = node
        self._progress = progress

    def call(self, batch: Batch, states: None) -> Results:  # noqa: ARG002
        """See Calling."""
        function, output = self._node.function, ResultBuilder(self._node.schema)
        take = output.extend if self._node.returns is Returns.MANY else output.add
        rows = iter(range(batch.length))
        messages = iter(self._progress.messages(self._node.name, batch, rows))
        last = batch.length - 1
        while True:
            # What is left of `rows` says how far the loop is: making a message may raise, too.
            try:
                for row, message in zip(rows, messages, strict=True):
                    take(function(message), row)
            except ANY_ERROR as error:
                output.fail(last - length_hint(rows), reason_of(error))
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

    What a function changed in the state before it raised stays changed, here and in every replay.
    """

    def __init__(self, node: Stateful, functions: Mapping[Schema, Handler], progress: FoldProgress) -> None:
        """`functions`: by their input schema."""
        self._node = node
        self._functions = functions
        self._progress = progress
        self._reads_states = node.delete_when is not None or bool(node.timers)

    def call(self, batch: Batch, states: ObjectTable) -> Results:
        """See Calling."""
        if self._reads_states:
            return self._call_and_read(batch, states)
        handler = self._functions[batch.schema]
        output = ResultBuilder(self._node.schema)
        take = output.extend if self._node.returns is Returns.MANY else output.add
        find, create = states.get, states.create
        values = batch.key_values()
        keys, ahead = iter(values), _found_ahead(find, values)
        messages = iter(self._progress.messages(self._node.name, batch, keys))
        last = batch.length - 1
        while True:
            # What is left of `keys` says how far the loop is, so that it need not count.
            try:
                for key, found, message in zip(keys, ahead, messages, strict=True):
                    state = found
                    if state is None:  # when it was looked up
                        state = find(key)
                        if state is None:
                            state = create(key)
                    result = handler(message, state)
                    if result is not None:
                        take(result, last - length_hint(keys))
            except ANY_ERROR as error:
                output.fail(last - length_hint(keys), reason_of(error))
                if self._node.on_error != STOP:
                    continue
            return output.results(batch.length)

    def _call_and_read(self, batch: Batch, states: ObjectTable) -> Results:
        """The same with `delete_when=` and timers, read from each state. A loop of its own: the other reads none.

        Once it has deleted a state, those found ahead may be deleted too: each key is looked up again, now in a cache.
        """
        handler, output = self._functions[batch.schema], ResultBuilder(self._node.schema)
        delete_when, timers = self._node.delete_when, states.timers
        note = timers.note if timers is not None else None
        take = output.extend if self._node.returns is Returns.MANY else output.add
        kept, has_deleted = output.count, False
        find, create = states.get, states.create
        values = batch.key_values()
        keys, ahead = iter(values), _found_ahead(find, values)
        messages = iter(self._progress.messages(self._node.name, batch, keys))
        last = batch.length - 1
        while True:
            try:
                for key, found, message in zip(keys, ahead, messages, strict=True):
                    state = found
                    if state is None or has_deleted:
                        state = find(key)
                        if state is None:
                            state = create(key)
                    result = handler(message, state)
                    if result is not None:
                        take(result, last - length_hint(keys))
                    if delete_when is not None and delete_when(state):
                        states.delete(key, batch, last - length_hint(keys))
                        has_deleted = True
                    elif note is not None:
                        note(key, state)
                    kept = output.count
            except ANY_ERROR as error:
                output.keep(*kept)
                output.fail(last - length_hint(keys), reason_of(error))
                kept = output.count
                if self._node.on_error != STOP:
                    continue
            if timers is not None and output.failures:
                _note_failed(timers, batch, states, output.failures)
            return output.results(batch.length)


def _found_ahead(find: Callable[[Any], Any], keys: Sequence[Any]) -> Iterator[Any]:
    """The states of keys, looked up some rows ahead; None where there is none yet, or none can be looked up.

    Lookups in one loop of C: the CPU waits for the memory of several at a time.
    """
    return chain.from_iterable(
        _found_together(find, keys[start : start + _AHEAD]) for start in range(0, len(keys), _AHEAD)
    )


def _found_together(find: Callable[[Any], Any], keys: Sequence[Any]) -> list[Any]:
    try:
        return list(map(find, keys))
    except ANY_ERROR:  # a NoKey: raised again where its row is called
        return [None] * len(keys)


def _note_failed(timers: KeyTimers, batch: Batch, states: ObjectTable, failures: Iterable[Failure]) -> None:
    """Notes the timers of rows that failed: what a function set before it raised stays set, too."""
    keys = batch.key_values()
    for row, _ in failures:
        state = states.get(keys[row]) if not isinstance(keys[row], NoKey) else None
        if state is not None:
            timers.note_failed(keys[row], state)
