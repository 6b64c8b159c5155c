"""Batches: rows on their way through a stage.

A batch is columns, the key of each row, and each row's provenance: the message of the frame that it comes from. It
never changes. A caller that needs messages as objects makes its own, so that what a user's function does to its message
stays invisible to others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from bettong.application.plan import StageInput
from bettong.frames.columns import Array, Columns
from bettong.frames.composite_keys import packed
from bettong.immutable import immutable
from bettong.schema.schema import Schema
from bettong.schema.values import values_of
from bettong.user_errors import ANY_ERROR
from bettong.worker.event_times import EventTimes
from bettong.worker.message_watermarks import MessageWatermarks


@dataclass(slots=True)
class FrameKeys:
    """The keys of a frame's messages, in the form that a computation asks for, made once."""

    entry: StageInput
    columns: Columns
    # Indices of messages that no user function may see: they have no key, and no row.
    without: frozenset[int] = frozenset()
    # One key a message, once they are known.
    _values: list[Any] | None = None
    # Whether the rows come from timers that fired, not from messages.
    are_fired: bool = False

    def values(self) -> list[Any]:
        """One Python value (str, bytes, int, or a tuple of them) a message."""
        if self._values is None:
            key = self.entry.key
            if isinstance(key, str):
                self._values = self.columns.values(self.columns.schema.position(key))
            elif isinstance(key, tuple):
                parts = [self.columns.values(self.columns.schema.position(part)) for part in key]
                self._values = list(zip(*parts, strict=True)) if parts else [()] * self.columns.length
            elif key is None:
                raise AssertionError("the plan lets no keyless stream into a stateful computation")
            else:
                self._values = self._computed(key)
        return self._values

    def value(self, index: int) -> Any:
        """The key of one message, without making those of the others.

        None where it has none, and where a user's function computes keys and was not called yet.
        """
        if self._values is not None:
            return self._values[index]
        key = self.entry.key
        if index in self.without or key is None or callable(key):
            return None
        return (
            self._part(key, index) if isinstance(key, str) else tuple(self._part(part, index) for part in key)
        )

    def _part(self, field: str, index: int) -> Any:
        position = self.columns.schema.position(field)
        return values_of(
            self.columns.schema.fields[position], self.columns.columns[position][index : index + 1]
        )[0]

    def _computed(self, key: Callable[[Any], Any]) -> list[Any]:
        """The keys that the user's function returns. Making a message may run the user's code, too."""
        found: list[Any] = [None] * self.columns.length
        kept = [index for index in range(self.columns.length) if index not in self.without]
        messages = iter(self.columns.take(np.array(kept, np.int64)) if self.without else self.columns)
        for index in kept:
            try:
                found[index] = key(next(messages))
            except ANY_ERROR as error:
                found[index] = NoKey(error)
        return found

    def column(self) -> Array:
        """The keys as a fixed-width column, which compiled computations need. Several fields: see `composite_keys`."""
        key = self.entry.key
        if key is None or callable(key):
            raise AssertionError("the plan lets only key fields into a compiled computation")
        if isinstance(key, str):
            return self._fixed(key)
        schema = self.columns.schema
        fields = [schema.fields[schema.position(part)] for part in key]
        return packed(fields, [self._fixed(part) for part in key], self.columns.length)

    def _fixed(self, field: str) -> Array:
        column = self.columns.columns[self.columns.schema.position(field)]
        if isinstance(column, pa.Array):
            raise AssertionError("the plan lets only fixed-width key fields into a compiled computation")  # noqa: TRY004 - no type of the user's
        return column


class NoKey:
    """Stands for a key that could not be computed: its hash raises what the key function raised.

    The function returned a key when the message was partitioned, so it has changed since, or is impure.
    """

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __hash__(self) -> int:
        raise self.error


@immutable(eq=False)
class Batch:
    """Rows of one schema. `sources`: for each row, the index of its message in the frame; None: row i is message i.

    `times`: event times of the frame's messages; None in a stage that needs none. `watermarks`: those before the
    messages; None in a stage that does not judge lateness.
    """

    columns: Columns
    keys: FrameKeys
    sources: Array | None = None
    times: EventTimes | None = None
    watermarks: MessageWatermarks | None = None

    @classmethod
    def of_frame(cls, entry: StageInput, columns: Columns) -> Batch:
        """The messages of a frame as it enters a stage."""
        return cls(columns, FrameKeys(entry, columns))

    @classmethod
    def of_part(cls, entry: StageInput, columns: Columns, indices: Sequence[int]) -> Batch:
        """The messages of a frame at these indices, in order: the user's functions see no other."""
        kept = np.array(indices, np.int64)
        keys = FrameKeys(entry, columns, frozenset(range(columns.length)).difference(indices))
        return cls(columns.take(kept), keys, kept)

    @classmethod
    def merged(cls, batches: Sequence[Batch]) -> Sequence[Batch]:
        """The rows of several batches of one frame, by message, then by batch: one batch if they have one schema.

        So what follows does not depend on how messages were cut into frames.
        """
        filled = [batch for batch in batches if batch.columns.length]
        return filled if len(filled) < 2 else list(cls._in_order(filled))

    @classmethod
    def _in_order(cls, filled: Sequence[Batch]) -> Iterator[Batch]:
        numbers = np.repeat(np.arange(len(filled)), [batch.length for batch in filled])
        order = np.argsort(np.concatenate([batch.all_sources() for batch in filled]), kind="stable")
        if len({batch.schema for batch in filled}) == 1:
            yield cls.concatenated(filled).take(order)
            return
        begins = np.cumsum([0, *(batch.length for batch in filled)])
        numbers = numbers[order]
        starts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(order)]
        for start, stop in pairwise(starts):
            number = int(numbers[start])
            first = int(order[start] - begins[number])
            yield filled[number].slice(first, first + stop - start)

    @classmethod
    def concatenated(cls, batches: Sequence[Batch]) -> Batch:
        """The rows of batches of one schema and one frame, one batch after the other; at least one batch."""
        columns = Columns.concatenated(batches[0].schema, [batch.columns for batch in batches])
        sources = np.concatenate([batch.all_sources() for batch in batches])
        return cls(columns, batches[0].keys, sources, batches[0].times, batches[0].watermarks)

    @property
    def schema(self) -> Schema:
        """The schema of its rows."""
        return self.columns.schema

    @property
    def length(self) -> int:
        """How many rows it has."""
        return self.columns.length

    def at(self, times: EventTimes) -> Batch:
        """The same rows, with the event times of the frame's messages."""
        return Batch(self.columns, self.keys, self.sources, times, self.watermarks)

    def judged_by(self, watermarks: MessageWatermarks) -> Batch:
        """The same rows, with the watermarks before the frame's messages."""
        return Batch(self.columns, self.keys, self.sources, self.times, watermarks)

    def derived(self, columns: Columns, rows: Array | None) -> Batch:
        """What was made of these rows. `rows`: for each row of `columns`, its row here; None: one each."""
        if rows is None:
            return Batch(columns, self.keys, self.sources, self.times, self.watermarks)
        sources = rows if self.sources is None else self.sources.take(rows)
        return Batch(columns, self.keys, sources, self.times, self.watermarks)

    def take(self, rows: Array) -> Batch:
        """Those rows, in that order."""
        return self.derived(self.columns.take(rows), rows)

    def slice(self, start: int, stop: int) -> Batch:
        """The rows from `start` up to but not including `stop`."""
        sources = np.arange(start, stop) if self.sources is None else self.sources[start:stop]
        return Batch(self.columns.slice(start, stop), self.keys, sources, self.times, self.watermarks)

    def before(self, source: int) -> Batch:
        """The rows of messages before that one."""
        return self.slice(0, int(np.searchsorted(self.all_sources(), source)))

    def source(self, row: int) -> int:
        """The index in the frame of the message that a row comes from."""
        return row if self.sources is None else int(self.sources[row])

    def all_sources(self) -> Array:
        """The same for every row."""
        return np.arange(self.length) if self.sources is None else self.sources

    def key_values(self) -> list[Any]:
        """The key of each row."""
        values = self.keys.values()
        return values if self.sources is None else [values[source] for source in self.sources.tolist()]

    def key_column(self) -> Array:
        """The key of each row, as a fixed-width column."""
        column = self.keys.column()
        return column if self.sources is None else column.take(self.sources)

    def event_times(self) -> Array:
        """The event time of each row: its message's, or that at which the timer or window that led to it was due."""
        assert self.times is not None  # noqa: S101 - asked only in stages that need times
        times = self.times.values()
        return times if self.sources is None else times.take(self.sources)

    def message_watermarks(self) -> Array:
        """The watermark before each row's message, or before what led to it fired. A row older than that is late."""
        assert self.watermarks is not None  # noqa: S101 - asked only in stages that judge lateness
        return self.watermarks.of_messages(self.all_sources())
