"""Functions over whole columns: `@bettong.vectorized` in map, filter, flat_map and stateful.

A function is called with all rows of a batch. When it raises, the batch is halved, in order, down to single rows: that
changes nothing for other rows, for a row's result depends on earlier rows of its key alone. Results that do not fit
their schema become failures one by one.
"""

from collections.abc import Callable, Mapping
from functools import partial
from traceback import walk_tb
from typing import Any

import numpy as np

from bettong.application.execution_mode import ExecutionMode, refusal
from bettong.application.nodes.computation import Computation
from bettong.application.nodes.stateful import Handler, Stateful
from bettong.application.nodes.stateless import Stateless
from bettong.application.on_error import STOP
from bettong.application.returns import Returns
from bettong.frames.columns import Array, Columns
from bettong.schema.schema import Schema, schema_of
from bettong.user_errors import ANY_ERROR, reason_of
from bettong.worker.batch import Batch
from bettong.worker.calling.results import Results, joined
from bettong.worker.calling.vectors import (
    WrongColumnsError,
    keep_state,
    message_of,
    one_each_of,
    rows_kept,
    several_of,
    state_of,
)
from bettong.worker.state.key_table import DistinctSlots
from bettong.worker.state.records import Records, RecordTable


class ColumnsCalling:
    """`Stream.map`, `filter` and `flat_map` of a vectorized function."""

    def __init__(self, node: Stateless) -> None:
        self._node = node

    def call(self, batch: Batch, states: None) -> Results:  # noqa: ARG002
        """See Calling."""
        columns = batch.columns
        return _in_pieces(
            self._node, columns.length, lambda start, stop: self.over(columns.slice(start, stop))
        )

    def over(self, columns: Columns) -> Results:
        """What the function returns for these rows. Raises what it raises, and WrongColumnsError."""
        returned = self._node.function(message_of(columns))
        if self._node.returns is Returns.WHETHER:
            return Results(None, rows_kept(returned, columns.length))
        if self._node.returns is Returns.MANY:
            return several_of(self._node.schema, returned, columns.length)
        return one_each_of(self._node.schema, returned, columns.length)


class StatefulColumns:
    """`Stream.stateful` of vectorized functions."""

    def __init__(self, node: Stateful, functions: Mapping[Schema, Handler]) -> None:
        """`functions`: by their input schema."""
        self._node = node
        self._functions = functions
        self._state = schema_of(node.state)
        self._distinct = DistinctSlots()

    def call(self, batch: Batch, states: Records) -> Results:
        """See Calling."""
        columns = batch.columns
        return _in_pieces(
            self._node,
            columns.length,
            lambda start, stop: self.over(
                columns.slice(start, stop), states._replace(slots=states.slots[start:stop])
            ),
        )

    def over(self, columns: Columns, records: Records) -> Results:
        """What the function returns for these rows and their states.

        When it raises, states are as before, except that of a single row, which is as the function has left it.
        """
        states = records.states
        touched, state_rows = self._distinct.of(records.slots, capacity=len(states))
        state = state_of(self._state, states, touched)
        try:
            returned = self._results(columns, state, state_rows)
        except ANY_ERROR:
            if columns.length == 1:
                keep_state(self._state, states, touched, state)
            raise
        keep_state(self._state, states, touched, state)
        return returned

    def _results(self, columns: Columns, state: Any, state_rows: Array) -> Results:
        returned = self._functions[columns.schema](message_of(columns), state, state_rows)
        if returned is None:
            return Results(Columns.of_messages(self._node.schema, []), np.arange(0))
        if self._node.returns is Returns.MANY:
            return several_of(self._node.schema, returned, columns.length)
        return one_each_of(self._node.schema, returned, columns.length)


def try_stateless(node: Stateless) -> None:
    """Calls the function with a frame of no rows. Raises ApplicationError, naming function and line."""
    takes = node.parent.schema
    assert takes is not None  # noqa: S101 - checked when the application was built
    _try(node.function, lambda: ColumnsCalling(node).over(Columns.of_messages(takes, [])))


def try_stateful(node: Stateful, table: RecordTable) -> None:
    """The same for all functions of a stateful computation. `table`: a new one."""
    none = Records(np.empty(0, np.int32), table.states, 0, table)
    functions = [
        *node.handlers.items(),
        *((table.fired_parts or table.fired, timer.function) for timer in node.timers),
    ]
    for schema, function in functions:
        calling, columns = StatefulColumns(node, {schema: function}), Columns.of_messages(schema, [])
        _try(function, lambda calling=calling, columns=columns: calling.over(columns, none))  # type: ignore[misc]


def _try(function: Callable[..., Any], call: Callable[[], Results]) -> None:
    try:
        _strictly(call)
    except ANY_ERROR as error:
        file = function.__code__.co_filename
        lines = [line for frame, line in walk_tb(error.__traceback__) if frame.f_code.co_filename == file]
        reason = f"for a frame without rows: {type(error).__name__}: {error}"
        raise refusal(
            function, ExecutionMode.VECTORIZED, reason, line=lines[-1] if lines else None
        ) from error


def _in_pieces(node: Computation, rows: int, over: Callable[[int, int], Results]) -> Results:
    """The results of `over(start, stop)`, called for as few pieces as possible."""
    found: list[tuple[int, int, Results]] = []
    todo = [(0, rows)]
    while todo:
        start, stop = todo.pop()
        try:
            piece = _strictly(partial(over, start, stop))
        except ANY_ERROR as error:
            if stop - start > 1 and not isinstance(error, WrongColumnsError):
                middle = (start + stop) // 2
                todo += [(middle, stop), (start, middle)]
                continue
            reason = reason_of(error)
            nothing = None if node.returns is Returns.WHETHER else Columns.of_messages(node.schema, [])
            piece = Results(nothing, np.arange(0), [(row, reason) for row in range(stop - start)])
        found.append((start, stop, piece))
        if piece.failures and node.on_error == STOP:
            break
    return found[0][2] if len(found) == 1 else joined(node.schema, found)


def _strictly(call: Callable[[], Results]) -> Results:
    """Makes numpy raise where Python would."""
    with np.errstate(divide="raise", invalid="raise", over="ignore", under="ignore"):
        return call()
