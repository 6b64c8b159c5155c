"""Functions over whole columns: `@bettong.vectorized` in map, filter, flat_map and stateful.

A function is called with all rows of a batch. When it raises, halves are tried in their order, down to single rows:
that changes nothing for the others, for what it gives for a row hangs on no row but those of its key before it.
"""

from collections.abc import Callable
from traceback import walk_tb
from typing import Any

import numpy as np

from bettong.application.on_error import ANY_ERROR, STOP, reason_of
from bettong.application.plan import Computation
from bettong.application.schema import schema_of
from bettong.application.streams import Filtered, FlatMapped, Stateful, Stateless
from bettong.application.ways import Way, refusal
from bettong.frames.columns import Array, Columns
from bettong.worker.batch import Batch
from bettong.worker.calling.results import Failure, Results
from bettong.worker.calling.vectors import (
    WrongColumnsError,
    columns_of,
    keep_state,
    message_of,
    pair_of,
    rows_kept,
    state_of,
)
from bettong.worker.progress import FoldProgress
from bettong.worker.state.key_table import Distinct
from bettong.worker.state.records import Records, RecordTable

# Results, and the row that each is of; None: one a row.
Given = tuple[Columns, Array | None]


class ColumnsCalling:
    """`Stream.map`, `filter` and `flat_map` of a vectorized function."""

    def __init__(self, node: Stateless) -> None:
        self._node = node

    def call(self, batch: Batch, states: None, progress: FoldProgress) -> Results:  # noqa: ARG002
        """See Calling."""
        columns = batch.columns
        return _in_pieces(
            self._node, columns.length, lambda start, stop: self.over(columns.slice(start, stop))
        )

    def over(self, columns: Columns) -> Given:
        """What the function gives for these rows. Raises what it raises, and SchemaError."""
        given = self._node.function(message_of(columns))
        if isinstance(self._node, Filtered):
            kept = rows_kept(given, columns.length)
            return columns.take(kept), kept
        if isinstance(self._node, FlatMapped):
            return pair_of(self._node.schema, given, columns.length)
        return columns_of(self._node.schema, given, columns.length), None


class StatefulColumns:
    """`Stream.stateful` of vectorized functions."""

    def __init__(self, node: Stateful) -> None:
        self._node = node
        self._state = schema_of(node.state)
        self._distinct = Distinct()

    def call(self, batch: Batch, states: Records, progress: FoldProgress) -> Results:  # noqa: ARG002
        """See Calling."""
        columns = batch.columns
        return _in_pieces(
            self._node,
            columns.length,
            lambda start, stop: self.over(
                columns.slice(start, stop), states._replace(slots=states.slots[start:stop])
            ),
        )

    def over(self, columns: Columns, records: Records) -> Given:
        """What the function gives for these rows and their states.

        States are as before when it raises; but those of a single row are as the function has left them.
        """
        states = records.states
        touched, places = self._distinct.of(records.slots, capacity=len(states))
        state = state_of(self._state, states, touched)
        try:
            given = self._given(columns, state, places)
        except ANY_ERROR:
            if columns.length == 1:
                keep_state(self._state, states, touched, state)
            raise
        keep_state(self._state, states, touched, state)
        return given

    def _given(self, columns: Columns, state: Any, places: Array) -> Given:
        given = self._node.handlers[columns.schema](message_of(columns), state, places)
        if given is None:
            return Columns.of_messages(self._node.schema, []), np.arange(0)
        if self._node.many:
            return pair_of(self._node.schema, given, columns.length)
        return columns_of(self._node.schema, given, columns.length), None


def try_stateless(node: Stateless) -> None:
    """Calls the function with a frame of no rows. Raises ApplicationError, naming function and line."""
    takes = node.parent.schema
    assert takes is not None  # noqa: S101 - checked when the application was built
    _try(node.function, lambda: ColumnsCalling(node).over(Columns.of_messages(takes, [])))


def try_stateful(node: Stateful, key: np.dtype[Any]) -> None:
    """The same for all functions of a stateful computation."""
    none = Records(np.empty(0, np.int32), RecordTable(node, key).states, 0)
    calling = StatefulColumns(node)
    for schema, function in node.handlers.items():
        columns = Columns.of_messages(schema, [])
        _try(function, lambda columns=columns: calling.over(columns, none))  # type: ignore[misc]


def _try(function: Callable[..., Any], call: Callable[[], Given]) -> None:
    try:
        _strictly(call)
    except ANY_ERROR as error:
        file = function.__code__.co_filename
        lines = [line for frame, line in walk_tb(error.__traceback__) if frame.f_code.co_filename == file]
        reason = f"for a frame without rows: {type(error).__name__}: {error}"
        raise refusal(function, Way.VECTORIZED, reason, line=lines[-1] if lines else None) from error


def _in_pieces(node: Computation, rows: int, over: Callable[[int, int], Given]) -> Results:
    """All that `over(start, stop)` gives, called with as few pieces as can be."""
    found: list[tuple[Columns, Array]] = []
    failures: list[Failure] = []
    todo = [(0, rows)]
    while todo:
        start, stop = todo.pop()
        try:
            output, sources = _strictly(lambda start=start, stop=stop: over(start, stop))  # type: ignore[misc]
        except ANY_ERROR as error:
            if stop - start > 1 and not isinstance(error, WrongColumnsError):
                middle = (start + stop) // 2
                todo += [(middle, stop), (start, middle)]
                continue
            reason = reason_of(error)
            failures += [(row, reason) for row in range(start, stop)]
            if node.on_error == STOP:
                break
        else:
            if sources is None and output.length == rows:
                return Results(output, None)
            found.append((output, np.arange(start, stop) if sources is None else sources + start))
    columns = Columns.concatenated(node.schema, [output for output, _ in found])
    return Results(columns, np.concatenate([np.arange(0), *(sources for _, sources in found)]), failures)


def _strictly(call: Callable[[], Given]) -> Given:
    """Numpy raises where Python would."""
    with np.errstate(divide="raise", invalid="raise", over="ignore", under="ignore"):
        return call()
