"""Computations over whole frames: `@bettong.vectorized` in map, filter, flat_map and stateful.

A function is called with all rows of a frame. When it raises, halves are tried in their order, down to single rows:
that changes nothing for the others, for what it gives for a row hangs on no row but those of its key before it.
"""

from collections.abc import Callable
from traceback import walk_tb
from typing import Any

import numpy as np

from bettong.application.on_error import ANY_ERROR
from bettong.application.schema import Schema
from bettong.application.streams import Filtered, FlatMapped, Stateful, Stateless
from bettong.application.ways import Way, refusal
from bettong.frames.columns import Array, Columns
from bettong.worker.key_table import Distinct
from bettong.worker.letters import Letters
from bettong.worker.rows import Rows
from bettong.worker.state_array import StateArray
from bettong.worker.vectors import (
    WrongColumnsError,
    columns_of,
    keep_state,
    message_of,
    pair_of,
    rows_kept,
    state_of,
)

# Results, and the row that each is of; None: one a row.
Given = tuple[Columns, Array | None]


class VectorizedOperator:
    """`Stream.map`, `filter` and `flat_map` of a vectorized function."""

    def __init__(self, node: Stateless) -> None:
        self.name = node.name
        self._node = node

    def run(self, rows: Rows, letters: Letters) -> Rows:
        """See Operator."""
        columns = rows.columns(self.name, letters)
        return _in_pieces(
            self.name,
            self._node.schema,
            rows,
            letters,
            lambda start, stop: self.over(columns.slice(start, stop)),
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


class VectorizedFold(StateArray):
    """`Stream.stateful` of vectorized functions."""

    def __init__(self, node: Stateful, key: np.dtype[Any]) -> None:
        super().__init__(node, key)
        self._distinct = Distinct()

    def run(self, rows: Rows, letters: Letters) -> Rows:
        """See Operator. Folds the rows in order, all those of a frame at once."""
        columns = rows.columns(self.name, letters)
        slots = self.slots(rows.key_column())
        return _in_pieces(
            self.name,
            self._node.schema,
            rows,
            letters,
            lambda start, stop: self.over(columns.slice(start, stop), slots[start:stop]),
        )

    def over(self, columns: Columns, slots: Array) -> Given:
        """What the function gives for these rows, whose states are at `slots`.

        States are as before when it raises; but those of a single row are as the function has left them.
        """
        touched, places = self._distinct.of(slots, capacity=len(self.states))
        state = state_of(self._state, self.states, touched)
        try:
            given = self._given(columns, state, places)
        except ANY_ERROR:
            if columns.length == 1:
                keep_state(self._state, self.states, touched, state)
            raise
        keep_state(self._state, self.states, touched, state)
        return given

    def _given(self, columns: Columns, state: Any, places: Array) -> Given:
        given = self._node.handlers[columns.schema](message_of(columns), state, places)
        if given is None:
            return Columns.of_messages(self._node.schema, []), np.arange(0)
        if self._node.many:
            return pair_of(self._node.schema, given, columns.length)
        return columns_of(self._node.schema, given, columns.length), None


def try_operator(node: Stateless) -> None:
    """Calls the function with a frame of no rows. Raises ApplicationError, naming function and line."""
    takes = node.parent.schema
    assert takes is not None  # noqa: S101 - checked when the application was built
    _try(node.function, lambda: VectorizedOperator(node).over(Columns.of_messages(takes, [])))


def try_fold(node: Stateful, key: np.dtype[Any]) -> None:
    """The same for all functions of a stateful computation."""
    fold = VectorizedFold(node, key)
    for schema, function in node.handlers.items():
        columns = Columns.of_messages(schema, [])
        _try(function, lambda columns=columns: fold.over(columns, np.empty(0, np.int32)))  # type: ignore[misc]


def _try(function: Callable[..., Any], call: Callable[[], Given]) -> None:
    try:
        _strictly(call)
    except ANY_ERROR as error:
        file = function.__code__.co_filename
        lines = [line for frame, line in walk_tb(error.__traceback__) if frame.f_code.co_filename == file]
        reason = f"for a frame without rows: {type(error).__name__}: {error}"
        raise refusal(function, Way.VECTORIZED, reason, line=lines[-1] if lines else None) from error


def _in_pieces(
    name: str, schema: Schema, rows: Rows, letters: Letters, over: Callable[[int, int], Given]
) -> Rows:
    """All that `over(start, stop)` gives, called with as few pieces as can be."""
    found: list[tuple[Columns, Array]] = []
    todo = [(0, rows.length)]
    while todo:
        start, stop = todo.pop()
        try:
            output, sources = _strictly(lambda start=start, stop=stop: over(start, stop))  # type: ignore[misc]
        except ANY_ERROR as error:
            if stop - start > 1 and not isinstance(error, WrongColumnsError):
                middle = (start + stop) // 2
                todo += [(middle, stop), (start, middle)]
                continue
            for row in range(start, stop):
                letters.add(name, error, rows.parent(row))
        else:
            if sources is None and output.length == rows.length:
                return rows.of_columns(output, None)
            found.append((output, np.arange(start, stop) if sources is None else sources + start))
    columns = Columns.concatenated(schema, [output for output, _ in found])
    return rows.of_columns(columns, np.concatenate([np.arange(0), *(sources for _, sources in found)]))


def _strictly(call: Callable[[], Given]) -> Given:
    """Numpy raises where Python would."""
    with np.errstate(divide="raise", invalid="raise", over="ignore", under="ignore"):
        return call()
