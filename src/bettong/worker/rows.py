"""Rows: the messages of one frame on their way through a stage.

They are columns, message objects, or both, whichever was asked for; the other form is made when it is needed.
`parents` gives for each row the place, in the frame, of the message that it comes from: that message's key is
the row's key, and its place is what a dead letter names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from bettong.application.on_error import ANY_ERROR
from bettong.application.plan import Entrance
from bettong.application.schema import Schema
from bettong.frames.columns import Array, Columns, fitting
from bettong.worker.letters import Letters


@dataclass(slots=True)
class FrameKeys:
    """The keys of a frame's messages, in the form that a computation asks for."""

    entrance: Entrance
    columns: Columns
    # Places of messages that no function of the user's must see: they have no key, and no row.
    without: frozenset[int] = frozenset()
    _values: list[Any] | None = None

    def values(self) -> list[Any]:
        """One Python value (str, bytes or int) a message."""
        if self._values is None:
            key = self.entrance.key
            if isinstance(key, str):
                place = self.columns.schema.position(key)
                self._values = self.columns.values(place)
            elif key is None:
                raise AssertionError("the plan lets no keyless stream into a stateful computation")
            else:
                without = self.without
                self._values = [
                    None if place in without else _told(key, message)
                    for place, message in enumerate(self.columns)
                ]
        return self._values

    def column(self) -> Array:
        """The key field's fixed-width column; compiled computations were checked to have one."""
        key = self.entrance.key
        column = self.columns.columns[self.columns.schema.position(key)] if isinstance(key, str) else None
        if column is None or isinstance(column, pa.Array):
            raise AssertionError("the plan lets only fixed-width key fields into a compiled computation")
        return column


class NoKey:
    """Stands for a key that could not be told: to look up its state raises what the key function raised.

    The function gave a key when the message was partitioned, so this takes a changed or impure one.
    """

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __hash__(self) -> int:
        raise self.error


class Rows:
    """See the module. `parents` is None while rows and the frame's messages are the same."""

    __slots__ = ("_columns", "_messages", "keys", "length", "parents", "schema")

    def __init__(
        self,
        schema: Schema,
        keys: FrameKeys,
        form: Columns | list[Any],
        parents: Sequence[int] | Array | None,
    ) -> None:
        self.schema = schema
        self.keys = keys
        self.parents = parents
        self.length = form.length if isinstance(form, Columns) else len(form)
        self._columns = form if isinstance(form, Columns) else None
        self._messages = [] if isinstance(form, Columns) else form

    @classmethod
    def of_frame(cls, entrance: Entrance, columns: Columns) -> Rows:
        """The rows of a frame as it enters a stage."""
        return cls(columns.schema, FrameKeys(entrance, columns), columns, None)

    @classmethod
    def of_places(cls, entrance: Entrance, columns: Columns, places: Sequence[int]) -> Rows:
        """Those of a frame that are at these places, in order: the user's functions see no other."""
        kept = np.array(places, np.int64)
        keys = FrameKeys(entrance, columns, frozenset(range(columns.length)).difference(places))
        return cls(columns.schema, keys, columns.take(kept), kept)

    def of_messages(self, schema: Schema, messages: list[Any], parents: Sequence[int] | None) -> Rows:
        """Rows that a computation made of these; `parents` are places in the frame, None: as before."""
        return Rows(schema, self.keys, messages, self.parents if parents is None else parents)

    def of_columns(self, columns: Columns, sources: Array | None) -> Rows:
        """Rows that a computation made of the rows at `sources`; None: one of each."""
        if sources is None:
            return Rows(columns.schema, self.keys, columns, self.parents)
        parents = sources if self.parents is None else np.asarray(self.parents).take(sources)
        return Rows(columns.schema, self.keys, columns, parents)

    def slice(self, start: int, stop: int) -> Rows:
        """The rows from `start` up to but not including `stop`, as rows of their own."""
        form = self._messages[start:stop] if self._columns is None else self._columns.slice(start, stop)
        parents = range(start, stop) if self.parents is None else self.parents[start:stop]
        return Rows(self.schema, self.keys, form, parents)

    def messages(self) -> Iterable[Any]:
        """The rows as message objects. Those of columns are made one by one, anew for each reader."""
        return self._messages if self._columns is None else self._columns

    def columns(self, computation: str, letters: Letters) -> Columns:
        """The rows as columns. Rows whose values do not fit the schema become dead letters and leave."""
        if self._columns is None:
            self._columns, refused = fitting(self.schema, self._messages)
            for row, reason in refused.items():
                letters.add(computation, reason, self.parent(row))
            if refused:
                self.parents = [self.parent(row) for row in range(self.length) if row not in refused]
            self.length = self._columns.length
            self._messages = []
        return self._columns

    def parent(self, row: int) -> int:
        """The place in the frame of the message that a row comes from."""
        return row if self.parents is None else int(self.parents[row])

    def parents_of(self, rows: list[int]) -> list[int]:
        """The same for several rows."""
        parents = self.parents
        return rows if parents is None else [int(parents[row]) for row in rows]

    def key_values(self) -> list[Any]:
        """The key of each row."""
        values = self.keys.values()
        return values if self.parents is None else [values[parent] for parent in self.parents]

    def key_column(self) -> Array:
        """The key of each row, as a fixed-width column."""
        column = self.keys.column()
        return column if self.parents is None else column.take(np.asarray(self.parents))


def _told(key: Callable[[Any], Any], message: Any) -> Any:
    try:
        return key(message)
    except ANY_ERROR as error:
        return NoKey(error)
